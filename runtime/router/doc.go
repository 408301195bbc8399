// Package router says which node of a pool gets a statement. It is pure: it sees the members of the
// pool and their load, and remembers nothing. Admission, queues and retries are the edge's.
package router
