package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go-bindings"
	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

// lake is a connection to a DuckDB, which has a DuckLake of the name "lake" in use.
func lake(t testing.TB, statements ...string) *parser {
	return lakeIn(t, empty(t), t.TempDir(), statements...)
}

// lakeIn puts a DuckLake of the name "lake", whose files lie in a directory, into a DuckDB.
func lakeIn(t testing.TB, db duckdb.Database, dir string, statements ...string) *parser {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(os.Getenv("QOD_TEST_EXTENSION_DIR"), "*", "*", "ducklake.duckdb_extension"))
	if err != nil || len(found) == 0 {
		t.Fatal("QOD_TEST_EXTENSION_DIR has no VERSION/PLATFORM/ducklake.duckdb_extension")
	}
	p := connected(t, db)
	run(t, p, append([]string{"LOAD '" + found[0] + "'",
		fmt.Sprintf("ATTACH 'ducklake:%s' AS lake (DATA_PATH '%s')", filepath.Join(dir, "m.db"), filepath.Join(dir, "data")),
		"USE lake"}, statements...)...)
	return p
}

func run(t testing.TB, p *parser, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := p.rows(sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// everything is the data of these tests. Policies hide what is not EU, and the numbers of cards.
func everything() []string {
	return []string{
		"CREATE SCHEMA s", "CREATE SCHEMA acl",
		"CREATE TABLE orders (id INTEGER, region VARCHAR, customer INTEGER, amount DOUBLE, card VARCHAR, st STRUCT(a INTEGER, b VARCHAR))",
		`INSERT INTO orders SELECT i, CASE WHEN i % 3 = 0 THEN 'EU' WHEN i % 3 = 1 THEN 'US' END, i % 4, i * 1.5,
			'4000' || i, {'a': i, 'b': 'x' || i} FROM range(1, 13) r(i)`,
		"CREATE TABLE customers (id INTEGER, name VARCHAR, region VARCHAR, ssn VARCHAR)",
		"INSERT INTO customers VALUES (0, 'anna', 'EU', 's0'), (1, 'bert', 'US', 's1'), (2, 'carl', 'EU', 's2'), (3, 'dora', NULL, 's3'), (4, 'emil', 'ASIA', 's4')",
		"CREATE TABLE events (id INTEGER, n INTEGER)", "INSERT INTO events SELECT i, i * 10 FROM range(8) r(i)",
		"CREATE TABLE s.items (id INTEGER, what VARCHAR)", "INSERT INTO s.items VALUES (3, 'x'), (4, 'y')",
		"CREATE TABLE acl.regions (usr VARCHAR, region VARCHAR)",
		"INSERT INTO acl.regions VALUES ('o''hara', 'EU'), ('o''hara', 'ASIA'), ('other', 'US')",
		"CREATE TABLE salaries (id INTEGER, pay INTEGER)", "CREATE TABLE scratch (id INTEGER, card VARCHAR)",
	}
}

// carriedOut makes everything into what the user of these tests sees.
func carriedOut() []string {
	return append(everything(),
		"DELETE FROM orders WHERE region IS DISTINCT FROM 'EU' AND NOT amount > 15", "UPDATE orders SET card = '**' || right(card, 1)",
		"DELETE FROM customers WHERE region IS NULL OR region NOT IN ('EU', 'ASIA')", "ALTER TABLE customers DROP COLUMN ssn")
}

// policies are those of these tests, for a user with these grants; without any, with all.
func policies(grants ...wire.Permission) wire.Permissions {
	if len(grants) == 0 {
		grants = []wire.Permission{{Catalog: "*", Schema: "*", Table: "*", Privileges: []string{"all"}}}
	}
	return wire.Permissions{
		Grants: grants,
		Rows: []wire.RowPolicy{
			{Catalog: "lake", Schema: "main", Table: "Orders", Predicate: "region = 'EU'"},
			{Catalog: "*", Schema: "main", Table: "orders", Predicate: "orders.amount > 15 -- large"},
			{Catalog: "lake", Schema: "*", Table: "customers",
				Predicate: "EXISTS (SELECT 1 FROM acl.regions AS a WHERE usr = current_user AND a.region = customers.region)"},
		},
		Columns: []wire.ColumnPolicy{
			{Catalog: "lake", Schema: "main", Table: "orders", Column: "card", Expression: "'**' || right(card, 1)"},
			{Catalog: "lake", Schema: "main", Table: "customers", Column: "SSN"},
		},
		Principal: &wire.Principal{User: "o'hara", Tenant: "acme", Roles: []string{"a", "b"}},
	}
}

// of is the scope of a user with these permissions, whose policies are compiled.
func of(t testing.TB, g *Guard, p wire.Permissions) Scope {
	t.Helper()
	r, err := g.Rights(t.Context(), p, "lake")
	if err != nil {
		t.Fatal(err)
	}
	return Scope{Catalog: "lake", Rights: r, Prepared: true}
}

// result is the names of a query's columns and its rows as text, sorted.
func result(t *testing.T, p *parser, sql, named string) ([]string, []string) {
	t.Helper()
	names := columns(t, p, sql)
	if named != "" {
		original := columns(t, p, named)
		if len(original) != len(names) {
			t.Fatalf("%s has %d columns, %s has %d", sql, len(names), named, len(original))
		}
		names = original
	}
	rows, err := p.rows("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM (" + sql + ") AS everything")
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	out := make([]string, len(rows))
	for i, row := range rows {
		out[i] = strings.Join(row, "|")
	}
	slices.Sort(out)
	return names, out
}

func columns(t *testing.T, p *parser, sql string) []string {
	t.Helper()
	var r duckdb.Result
	defer duckdb.DestroyResult(&r)
	if duckdb.Query(p.conn, sql, &r) != duckdb.StateSuccess {
		t.Fatalf("%s: %s", sql, duckdb.ResultError(&r))
	}
	names := make([]string, duckdb.ColumnCount(&r))
	for i := range names {
		names[i] = duckdb.ColumnName(&r, duckdb.IdxT(i))
	}
	return names
}

// TestPoliciesAreCarriedOut compares queries over tables with policies with the same queries over tables
// in which the policies have been carried out by hand.
func TestPoliciesAreCarriedOut(t *testing.T) {
	g := newGuard(t)
	real, copied := lake(t, everything()...), lake(t, carriedOut()...)
	s := of(t, g, policies())
	for _, sql := range statements(t, "policies") {
		t.Run(sql, func(t *testing.T) {
			st, err := g.Check(t.Context(), sql, s)
			if err != nil {
				t.Fatal(err)
			}
			names, rows := result(t, real, st.SQL, st.Original)
			wantNames, wantRows := result(t, copied, sql, "")
			if diff := cmp.Diff(wantNames, names); diff != "" {
				t.Errorf("%s\ncolumns (-want +got):\n%s", st.SQL, diff)
			}
			if diff := cmp.Diff(wantRows, rows); diff != "" {
				t.Errorf("%s\nrows (-want +got):\n%s", st.SQL, diff)
			}
			again, err := g.Check(t.Context(), sql, s)
			if diff := cmp.Diff(st, again); diff != "" || err != nil {
				t.Errorf("checked again: %v %s", err, diff)
			}
		})
	}
}

// underPolicies is a statement and the permissions it runs with.
type underPolicies struct {
	sql string
	p   wire.Permissions
}

func changes() []underPolicies {
	rowsOnly := policies()
	rowsOnly.Columns = nil
	return []underPolicies{
		{"INSERT INTO scratch SELECT id, card FROM orders", policies()},
		{"INSERT INTO scratch SELECT id, (SELECT max(card) FROM orders) FROM customers", policies()},
		{"WITH x AS (FROM orders) INSERT INTO scratch SELECT id, card FROM x", policies()},
		{"CREATE TABLE scratch2 AS SELECT id, card FROM orders", policies()},
		{"CREATE OR REPLACE TABLE scratch AS FROM orders", policies()},
		{"INSERT INTO orders (id, region, card) VALUES (99, 'EU', '123')", rowsOnly},
		{"UPDATE events SET n = o.amount FROM orders o WHERE o.id = events.id", policies()},
		{"UPDATE events SET n = (SELECT max(id) FROM orders) WHERE id IN (SELECT id FROM customers)", policies()},
		{"DELETE FROM events USING orders WHERE orders.id = events.id", policies()},
		{"DELETE FROM events WHERE id IN (FROM (SELECT id FROM customers))", policies()},
		{"MERGE INTO events USING orders AS o ON o.id = events.id WHEN MATCHED THEN UPDATE SET n = 0 WHEN NOT MATCHED THEN INSERT VALUES (o.id, 1)", policies()},
		{"MERGE INTO events USING customers USING (id) WHEN MATCHED THEN DELETE", policies()},
		{"UPDATE orders SET amount = amount + 100", rowsOnly},
		{"UPDATE orders SET amount = -1 WHERE id > 2", rowsOnly},
		{"UPDATE main.orders AS o SET amount = -1, card = 'x' WHERE o.id > 2 OR true", rowsOnly},
		{"UPDATE orders SET amount = e.n FROM events e WHERE e.id = orders.id", rowsOnly},
		{"UPDATE customers SET name = 'x'", rowsOnly},
		{"UPDATE orders SET amount = 0 WHERE customer IN (SELECT id FROM customers)", rowsOnly},
		{"DELETE FROM orders", rowsOnly},
		{"DELETE FROM orders WHERE true", rowsOnly},
		{"DELETE FROM lake.orders WHERE id < 5", rowsOnly},
		{"DELETE FROM orders o USING customers c WHERE o.customer = c.id", rowsOnly},
		{"DELETE FROM customers c WHERE c.name IS NOT NULL", rowsOnly},
	}
}

// TestChangesUnderPolicies compares what changes leave behind in the same way.
func TestChangesUnderPolicies(t *testing.T) {
	g := newGuard(t)
	tests := changes()
	hidden := map[string]string{"orders": "region IS DISTINCT FROM 'EU' AND NOT amount > 15",
		"customers": "region IS NULL OR region NOT IN ('EU', 'ASIA')"}
	real, whole, partial := lake(t, everything()...), lake(t, everything()...), lake(t, carriedOut()...)
	for table, where := range hidden {
		run(t, whole, "DELETE FROM "+table+" WHERE "+where)
		run(t, real, "CREATE TEMP TABLE hidden_"+table+" AS FROM "+table+" WHERE "+where) // to be found as it was
	}
	for _, test := range tests {
		t.Run(test.sql, func(t *testing.T) {
			copied := whole
			shown := map[string]string{"orders": "FROM orders", "customers": "FROM customers"}
			if test.p.Columns != nil {
				copied = partial
				shown["orders"] = "SELECT * REPLACE ('**' || right(card, 1) AS card) FROM orders"
				shown["customers"] = "SELECT * EXCLUDE (ssn) FROM customers"
			}
			st, err := g.Check(t.Context(), test.sql, of(t, g, test.p))
			if err != nil {
				t.Fatal(err)
			}
			run(t, real, "BEGIN", st.SQL)
			defer run(t, real, "ROLLBACK")
			run(t, copied, "BEGIN", test.sql)
			defer run(t, copied, "ROLLBACK")
			for _, table := range []string{"orders", "customers", "events", "scratch", "s.items"} {
				sql := "FROM " + table
				if hidden[table] != "" {
					if _, missing := result(t, real, "FROM temp.hidden_"+table+" EXCEPT ALL FROM "+table, ""); len(missing) > 0 {
						t.Errorf("%s\nchanged hidden rows of %s: %v", st.SQL, table, missing)
					}
					sql = shown[table] + " EXCEPT ALL " + strings.Replace(shown[table], "FROM ", "FROM temp.hidden_", 1)
				}
				_, got := result(t, real, sql, "")
				_, want := result(t, copied, "FROM "+table, "")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\n%s (-want +got):\n%s", st.SQL, table, diff)
				}
			}
		})
	}
}

// TestOldVersionsUnderPolicies asserts that the AT clause moves to the table, with the policies kept.
func TestOldVersionsUnderPolicies(t *testing.T) {
	g := newGuard(t)
	p := lake(t, "CREATE TABLE t AS SELECT i AS id, i % 2 AS odd FROM range(10) r(i)", "DELETE FROM t", "CREATE TABLE one AS SELECT 1 AS id")
	s := of(t, g, wire.Permissions{Grants: []wire.Permission{grantOf("*", "*", "all")},
		Rows: []wire.RowPolicy{{Catalog: "lake", Schema: "*", Table: "t", Predicate: "odd = 1"}}})
	for sql, want := range map[string]string{
		"SELECT count(*)::VARCHAR FROM t":                                                           "0",
		"SELECT count(*)::VARCHAR FROM t AT (VERSION => 1)":                                         "5",
		"SELECT count(*)::VARCHAR FROM main.t AS x AT (VERSION => 1) JOIN one USING (id)":           "1",
		"SELECT count(*)::VARCHAR FROM t x (a, b) AT (VERSION => 1) WHERE b = 1":                    "5",
		"SELECT count(*)::VARCHAR FROM x: t AT (VERSION => 1) WHERE x.odd = 1":                      "5",
		"SELECT (SELECT count(*) FROM t AT (VERSION => 1)) || '/' || (SELECT count(*) FROM t) AS n": "5/0",
	} {
		st, err := g.Check(t.Context(), sql, s)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if rows, err := p.rows(st.SQL); err != nil || len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s: %v, %v, want %s", st.SQL, rows, err, want)
		}
	}
}

// TestMissingColumnsFail asserts that a policy about a column that the table lacks closes the table.
func TestMissingColumnsFail(t *testing.T) {
	g := newGuard(t)
	p := lake(t, everything()...)
	missing := []wire.Permissions{
		{Rows: []wire.RowPolicy{{Catalog: "*", Schema: "*", Table: "events", Predicate: "tenant = 'x'"}}},
		{Columns: []wire.ColumnPolicy{{Catalog: "*", Schema: "*", Table: "events", Column: "ssn"}}},
		{Columns: []wire.ColumnPolicy{{Catalog: "*", Schema: "*", Table: "events", Column: "ssn", Expression: "left(ssn, 1)"}}},
	}
	for _, one := range missing {
		one.Grants = []wire.Permission{grantOf("*", "*", "all")}
		st, err := g.Check(t.Context(), "SELECT id::VARCHAR FROM events", of(t, g, one))
		if err != nil {
			t.Fatal(err)
		}
		if rows, err := p.rows(st.SQL); err == nil {
			t.Errorf("%s gives %v", st.SQL, rows)
		}
	}
}

// TestRightsAreInTheCache asserts that a rewritten statement is not given to others.
func TestRightsAreInTheCache(t *testing.T) {
	g := newGuard(t)
	texts := map[string]bool{}
	for _, region := range []string{"EU", "US", "EU", "US"} {
		p := policies()
		p.Rows = []wire.RowPolicy{{Catalog: "*", Schema: "*", Table: "orders", Predicate: "region = '" + region + "'"}}
		for _, path := range [][]string{nil, {"s"}} {
			s := of(t, g, p)
			s.Path = path
			st, err := g.Check(t.Context(), "FROM orders", s)
			if err != nil || !strings.Contains(st.SQL, "= '"+region+"'") || strings.Contains(st.SQL, `"s"."orders"`) != (path != nil) {
				t.Errorf("%s in %v: %s, %v", region, path, st.SQL, err)
			}
			texts[st.SQL] = true
		}
	}
	if len(texts) != 4 {
		t.Errorf("%d texts for four scopes", len(texts))
	}
	if st, err := g.Check(t.Context(), "FROM orders", owner()); err != nil || st.SQL != "FROM orders" || st.Protected {
		t.Errorf("without policies: %+v, %v", st, err)
	}
}
