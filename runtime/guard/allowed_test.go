package guard

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// statements reads testdata/NAME.sql: one statement a line, in Go's quotes if it begins with one.
func statements(t testing.TB, name string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, `"`) {
			if line, err = strconv.Unquote(line); err != nil {
				t.Fatalf("%s: %s: %v", name, line, err)
			}
		}
		out = append(out, line)
	}
	return out
}

// instance is a connection to an empty DuckDB.
func instance(t testing.TB) *parser { return connected(t, empty(t)) }

// empty is an empty DuckDB.
func empty(t testing.TB) duckdb.Database {
	t.Helper()
	var db duckdb.Database
	if duckdb.Open(":memory:", &db) != duckdb.StateSuccess {
		t.Fatal("DuckDB does not open")
	}
	t.Cleanup(func() { duckdb.Close(&db) })
	return db
}

func connected(t testing.TB, db duckdb.Database) *parser {
	t.Helper()
	p := &parser{}
	if duckdb.Connect(db, &p.conn) != duckdb.StateSuccess {
		t.Fatal("DuckDB does not connect")
	}
	t.Cleanup(p.close)
	return p
}

// TestAllowed asserts of every statement that it is allowed and that DuckDB, when it prepares what the
// guard returns, takes it for the same kind.
func TestAllowed(t *testing.T) {
	g := newGuard(t)
	p := instance(t)
	for _, sql := range statements(t, "lake") {
		if _, err := p.rows(sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, sql := range statements(t, "allowed") {
		st, err := g.Check(t.Context(), sql, owner())
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		var prepared duckdb.PreparedStatement
		if duckdb.Prepare(p.conn, st.SQL, &prepared) != duckdb.StateSuccess {
			t.Errorf("%s: DuckDB does not prepare it: %s", sql, duckdb.PrepareError(prepared))
		} else if got := duckdb.PreparedStatementType(prepared); !Matches(st, got) {
			t.Errorf("%s is %s; DuckDB's type %d does not match", sql, st.Kind, got)
		}
		duckdb.DestroyPrepare(&prepared)
	}
	for _, sql := range statements(t, "allowed_lake") {
		if _, err := g.Check(t.Context(), sql, owner()); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestMatchesNothingElse(t *testing.T) {
	for _, kind := range []Kind{Select, Insert, Update, Delete, Truncate, Merge, CreateTable, CreateTableAs, CreateView, CreateSchema,
		AlterTable, AlterView, DropTable, DropView, DropSchema, Begin, Commit, Rollback, Use, Set, Explain} {
		matches := 0
		for prepared := duckdb.StatementTypeInvalid; prepared <= duckdb.StatementTypeMergeInto; prepared++ {
			if Matches(Statement{Kind: kind}, prepared) {
				matches++
			}
		}
		if matches != 1 {
			t.Errorf("%s matches %d types, want 1", kind, matches)
		}
	}
	for _, prepared := range []duckdb.StatementType{duckdb.StatementTypeCopy, duckdb.StatementTypeAttach, duckdb.StatementTypeCall,
		duckdb.StatementTypePragma, duckdb.StatementTypeMulti, duckdb.StatementTypeInvalid} {
		if Matches(Statement{Kind: Select}, prepared) || Matches(Statement{}, prepared) {
			t.Errorf("type %d matches", prepared)
		}
	}
}

// TestTPCH asserts that the queries of TPC-H are allowed and read-only.
func TestTPCH(t *testing.T) {
	dir := os.Getenv("QOD_TEST_EXTENSION_DIR")
	found, err := filepath.Glob(filepath.Join(dir, "*", "*", "tpch.duckdb_extension"))
	if dir == "" || err != nil || len(found) == 0 {
		t.Fatal("QOD_TEST_EXTENSION_DIR has no VERSION/PLATFORM/tpch.duckdb_extension")
	}
	p := instance(t)
	if _, err := p.rows("LOAD '" + found[0] + "'"); err != nil {
		t.Fatal(err)
	}
	queries, err := p.rows("SELECT query FROM tpch_queries() ORDER BY query_nr")
	if err != nil {
		t.Fatal(err)
	}
	if len(queries) != 22 {
		t.Fatalf("%d queries", len(queries))
	}
	g := newGuard(t)
	for i, row := range queries {
		st, err := g.Check(t.Context(), row[0], owner())
		if err != nil || st.Kind != Select || !st.ReadOnly || len(st.Tables) == 0 {
			t.Errorf("query %d: %+v, %v", i+1, st, err)
		}
	}
}
