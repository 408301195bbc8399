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
// Every place that names a table is found, with its offset in the text. A name is resolved as the engine
// will resolve it in the session (Scope), and is completed in the text where another resolution would make
// a difference. What it means is judged by the user's Rights, privilege by privilege. Policies are applied
// by rewriting: in the place of a table comes a query of what they leave of it. All else stays byte for
// byte. The rewritten statement is read again like any other and has to show what was meant, else it is
// refused. Views are judged when they are created.
//
// The guard runs nothing and knows no session: the node has to say what the search path and the temporary
// objects are, and that no other databases are within reach.
package guard
