// Package node is the `qod node` process: one DuckDB with one DuckLake attached, behind Flight SQL.
//
// It runs what it is asked to run exactly once, streams results, keeps the sessions that have state and
// their transactions, and says what it is and does to the manager. Every call carries an assertion of the
// edge; what a statement may do is the guard's verdict. Which node gets a statement, queues, retries and
// logins are the edge's; starting and stopping the process is a backend's.
//
// How a statement runs:
//
//	read   prepared at GetFlightInfo for its schema, run at DoGet inside BEGIN TRANSACTION READ ONLY
//	other  run once, at GetFlightInfo or DoPut; what it answered is kept for DoGet
//
// A session is free until a statement leaves something on its connection. From then on it has a lane: one
// connection, one statement at a time. A transaction of the protocol takes the session's lane, so that
// temporary tables live on from one transaction to the next; a second one at the same time gets a lane of
// its own. A statement without transaction id beside a transaction of the protocol runs on a connection
// of its own. Metadata is read in the session's lane when nobody is on it, so that it shows what the
// transaction did, and beside it otherwise, so that an unread stream never blocks it.
//
// The guard judges a statement by the rights of its user and by what unqualified names mean on the lane:
// the search path and the temporary objects. It does so when the statement arrives, and again in the lane
// if names mean something else by then. What it rewrote keeps the columns' names of what the client sent.
// The engine's errors pass a veil on their way to clients and logs: users who may not see everything are
// not told which names there are, and those with policies on a table of the statement only the class.
//
// DuckDB's memory limit does not count what functions make. While statements run the node watches what its
// process takes, ends those that take too much, and at last itself, before the host has to.
package node
