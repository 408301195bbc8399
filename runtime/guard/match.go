package guard

import (
	"slices"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Matches reports whether DuckDB, having prepared the statement in the node, takes it for the same
// kind. The node does not run a statement of which this is false: then one of the two misread it.
func Matches(s Statement, prepared duckdb.StatementType) bool {
	return slices.Contains(types(s.Kind), prepared)
}

func types(k Kind) []duckdb.StatementType {
	switch k {
	case Select:
		return []duckdb.StatementType{duckdb.StatementTypeSelect}
	case Insert:
		return []duckdb.StatementType{duckdb.StatementTypeInsert}
	case Update:
		return []duckdb.StatementType{duckdb.StatementTypeUpdate}
	case Delete, Truncate:
		return []duckdb.StatementType{duckdb.StatementTypeDelete}
	case Merge:
		return []duckdb.StatementType{duckdb.StatementTypeMergeInto}
	case CreateTable, CreateTableAs, CreateView, CreateSchema:
		return []duckdb.StatementType{duckdb.StatementTypeCreate}
	case AlterTable, AlterView:
		return []duckdb.StatementType{duckdb.StatementTypeAlter}
	case DropTable, DropView, DropSchema:
		return []duckdb.StatementType{duckdb.StatementTypeDrop}
	case Begin, Commit, Rollback:
		return []duckdb.StatementType{duckdb.StatementTypeTransaction}
	case Use, Set:
		return []duckdb.StatementType{duckdb.StatementTypeSet}
	case Explain:
		return []duckdb.StatementType{duckdb.StatementTypeExplain}
	}
	return nil
}
