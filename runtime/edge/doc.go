// Package edge is Flight SQL in front: it authenticates a call, finds the session's node and forwards
// gRPC frames both ways, one by one, without decoding record batches.
//
//	client → authenticate → authorize → route → admit → node → frames → client
//
// Of each call it reads the first message, to learn the statement's text or the sealed handle. All that
// outlives a call is in bearers and handles, or is told by the nodes, so that a second edge, or one
// that has just started, goes on with a session where another left it. Who may do what is package
// access's; which node, package router's; what a statement really is and touches, the node's guard's.
package edge
