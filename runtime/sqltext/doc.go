// Package sqltext reads SQL by DuckDB's lexical rules and no further: tokens, single statements, what a
// statement probably does, and a form of it that is fit for logs. It knows no grammar: what a statement
// is and may touch is decided by package guard, inside the node.
package sqltext
