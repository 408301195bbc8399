package guard

import "github.com/qod-io/qod/runtime/wire"

// Kind is what a statement is.
type Kind string

// The kinds that are allowed.
const (
	Select        Kind = "SELECT" // also FROM, VALUES, TABLE, DESCRIBE, SUMMARIZE, SHOW, PIVOT
	Insert        Kind = "INSERT"
	Update        Kind = "UPDATE"
	Delete        Kind = "DELETE"
	Truncate      Kind = "TRUNCATE"
	Merge         Kind = "MERGE"
	CreateTable   Kind = "CREATE TABLE"
	CreateTableAs Kind = "CREATE TABLE AS"
	CreateView    Kind = "CREATE VIEW"
	CreateSchema  Kind = "CREATE SCHEMA"
	AlterTable    Kind = "ALTER TABLE"
	AlterView     Kind = "ALTER VIEW"
	DropTable     Kind = "DROP TABLE"
	DropView      Kind = "DROP VIEW"
	DropSchema    Kind = "DROP SCHEMA"
	Begin         Kind = "BEGIN"
	Commit        Kind = "COMMIT"
	Rollback      Kind = "ROLLBACK"
	Use           Kind = "USE"
	Set           Kind = "SET"
	Explain       Kind = "EXPLAIN"
)

// Scope is on whose behalf, and where, a statement is checked.
type Scope struct {
	// Catalog is the name of the lake in SQL.
	Catalog string
	// Path is the schemas of the session's search path, in order. Empty: "main".
	Path []string
	// Temporary holds the folded names of the session's temporary tables and views.
	Temporary map[string]bool
	// Rights are those of the user on this database.
	Rights *Rights
	// Prepared says that values for parameters are bound before the statement runs.
	Prepared bool
}

// Table is a table, view or schema that a statement touches, as the statement names it. Catalog and
// Schema are empty where it does not say them; Name is empty for a schema.
type Table struct {
	Catalog, Schema, Name string
	// Privilege is the one that touching it takes: select, insert, update, delete, create, alter, drop.
	Privilege string
}

// Setting is a setting and its value, as SET gives them.
type Setting struct {
	Name  string // in lower case
	Value string
}

// Statement is a statement that may run.
type Statement struct {
	// SQL is the one statement, with blanks in place of comments and, where policies apply, rewritten.
	// It is what was judged, so it is what has to run, and not the text given.
	SQL string
	// Original is empty, or the statement before the rewriting, from which the result takes the names of
	// its columns: those that DuckDB generates from SQL would show the policies.
	Original string
	// Protected says that it touches a table with policies for this user: errors carry no values.
	Protected bool
	// Restricted says that the user does not see everything: the engine's catalog errors are not shown.
	Restricted bool
	Class      wire.Class
	Kind       Kind
	// ReadOnly says that running it changes nothing in the lake and nothing in the session.
	ReadOnly bool
	// Leaves says that it leaves state in the session: a setting or a temporary object.
	Leaves bool
	// Temporary says that what it writes or creates is a temporary object.
	Temporary bool
	// Returning says that INSERT, UPDATE, DELETE or MERGE returns rows.
	Returning bool
	// Parameters says that it has parameters.
	Parameters bool
	// Explains is the kind of the statement that EXPLAIN explains, else empty. Analyze says that this
	// statement is executed as well.
	Explains Kind
	Analyze  bool
	// ReadOnlyBegin says that BEGIN asks for a read-only transaction.
	ReadOnlyBegin bool
	// Setting is what SET sets, else nil.
	Setting *Setting
	// NoOp says that the statement asks for what is so anyway: answer success and run nothing.
	NoOp bool
	// Tables lists what it touches, without common table expressions.
	Tables []Table
}

// analysis is what the text of a statement says, whoever runs it.
type analysis struct {
	Statement
	// open says that no permission is needed.
	open bool
	// references are all places that name a table, a view or a schema; columns those that name a column
	// with a qualifier of at least two parts.
	references []reference
	columns    []column
	change     change
}
