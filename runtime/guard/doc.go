// Package guard decides what a statement is and whether it may run, before anything of it is bound:
// binding opens files and network connections. It parses with DuckDB itself, in a second instance of
// the process that has no catalog and is locked down, and allows what is on its lists: kinds of
// statement, syntax tree nodes, functions, table functions, names. What is not known is refused.
//
// A SELECT-like statement is read whole as DuckDB's own syntax tree. Of INSERT, UPDATE, DELETE, MERGE,
// CREATE, ALTER and DROP, for which DuckDB gives no tree, a small exact grammar reads the head; all
// expressions and queries inside are put together as one SELECT and read as a tree. What the grammar
// does not know is refused.
//
// In this form a user has all rights on a database or none. What each statement touches, and how, is
// found nevertheless (Statement.Tables): finer permissions will be judged by it. The guard runs nothing
// and knows no session: names without a catalog are taken to be in the lake or in temp, which the node
// has to make sure of, and views are judged when they are created.
package guard
