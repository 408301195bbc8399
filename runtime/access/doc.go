// Package access says who a caller is and what it may do. A [Directory] is computed from one snapshot of
// the store and never changes; a [Holder] swaps in the next one, so that a revoked grant or a disabled
// user counts from the next call on. It also remembers failed logins, to slow down who guesses. The package
// does no IO, except that logins by a token of an issuer may fetch that one's keys. What a statement touches is judged by the guard in the node, and the bearers of sessions
// belong to the edge.
package access
