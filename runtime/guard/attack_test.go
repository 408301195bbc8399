package guard

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/runtime/wire"
)

// analyst may read orders and customers under policies, read and write events, and nothing else.
func analyst() wire.Permissions {
	return policies(grantOf("main", "orders", "select"), grantOf("main", "customers", "select"),
		grantOf("main", "events", "select", "insert", "update", "delete"))
}

// TestAttacks asserts that statements that go beyond the rights are refused, and with the same words
// whether what they name exists or not.
func TestAttacks(t *testing.T) {
	tests := map[string][]string{
		string(NotAuthorized): {
			"FROM salaries", "SELECT (SELECT max(pay) FROM salaries)", "WITH orders AS (FROM lake.main.salaries) FROM orders",
			"WITH salaries AS (SELECT 1 AS a) FROM main.salaries", "WITH salaries AS (FROM salaries) FROM salaries", "TABLE salaries",
			"INSERT INTO events FROM salaries", "UPDATE events SET n = 1 FROM salaries", "DELETE FROM events USING salaries",
			"MERGE INTO events USING salaries USING (id) WHEN MATCHED THEN DELETE", "UPDATE events SET n = (SELECT max(pay) FROM salaries)",
			"INSERT INTO salaries VALUES (1, 2)", "CREATE TABLE t AS FROM orders", "CREATE VIEW v AS FROM events", "DROP TABLE events",
			"ALTER TABLE events ADD COLUMN x INTEGER", "TRUNCATE orders", "DELETE FROM orders", "UPDATE orders SET id = 1", "DESCRIBE salaries",
			"SUMMARIZE salaries", "EXPLAIN FROM salaries", "EXPLAIN ANALYZE INSERT INTO salaries VALUES (1, 2)", "CREATE SCHEMA x", "DROP SCHEMA main",
			"USE acl", "SET search_path = 'main,acl'", "FROM acl.regions", "CREATE TEMP VIEW v AS FROM salaries", "CREATE TEMP TABLE x AS FROM acl.regions",
			"CREATE TABLE x (a INTEGER REFERENCES salaries (id))", "INSERT OR REPLACE INTO orders VALUES (1)", "FROM orders, salaries AT (VERSION => 1)",
			"FROM (DESCRIBE salaries)", "SHOW TABLES FROM acl", "FROM orders AT (VERSION => (SELECT max(id) FROM salaries))", "ALTER TABLE events RENAME TO x",
		},
		string(NotAllowed): {
			"CREATE TEMP VIEW v AS FROM orders", "CREATE TEMP TABLE v AS SELECT (SELECT max(id) FROM orders)", "FROM (SELECT (SELECT max(id) FROM orders))",
			"DESCRIBE SELECT (SELECT max(id) FROM orders)", "SELECT alias((SELECT max(id) FROM orders)) AS x", "FROM orders AT (VERSION => 1)",
			"FROM customers AS c AT (VERSION => 1)", "FROM ONLY orders", "FROM orders *", "SELECT x FROM (SELECT EXISTS (FROM orders)) x",
			"PIVOT events ON n IN (1) USING sum((SELECT max(id) FROM orders)), count(*)", "WITH x AS (SELECT 1 + (SELECT max(id) FROM orders)) FROM x",
			"SELECT (SELECT x FROM (SELECT (SELECT max(id) FROM orders)) x) AS y", "SUMMARIZE SELECT (SELECT max(card) FROM orders)",
			"INSERT INTO events SELECT 1, n FROM (SELECT (SELECT max(id) FROM orders)) x(n)", "EXPLAIN FROM orders", "EXPLAIN ANALYZE FROM customers",
			"UNPIVOT events ON (id + (SELECT max(id) FROM orders)), n", "FROM events UNPIVOT (v FOR k IN ((id + (SELECT max(id) FROM orders)), n))",
		},
	}
	g := newGuard(t)
	s := of(t, g, analyst())
	for want, list := range tests {
		for _, sql := range list {
			if st, err := g.Check(t.Context(), sql, s); code(err) != want {
				t.Errorf("%s: %v (%s), want %s", sql, err, st.SQL, want)
			}
		}
	}
	_, there := g.Check(t.Context(), "FROM salaries", s)
	_, gone := g.Check(t.Context(), "FROM nowhere", s)
	if there == nil || gone == nil || strings.ReplaceAll(there.Error(), "salaries", "nowhere") != gone.Error() {
		t.Errorf("%v differs from %v", there, gone)
	}
}

// TestRefusedUnderPolicies asserts what may not be done to a table with policies, even with all privileges.
func TestRefusedUnderPolicies(t *testing.T) {
	rowsOnly, columnsOnly := policies(), policies()
	rowsOnly.Columns, columnsOnly.Rows = nil, nil
	either := []string{"MERGE INTO orders USING events USING (id) WHEN MATCHED THEN DELETE", "ALTER TABLE orders ADD COLUMN x INTEGER",
		"ALTER TABLE orders RENAME card TO number", "ALTER TABLE orders RENAME TO x", "CREATE VIEW v AS FROM orders", "CREATE TEMP VIEW v AS FROM orders",
		"CREATE TABLE x (a INTEGER REFERENCES orders (id))", "INSERT OR REPLACE INTO orders (id) VALUES (1)",
		"INSERT INTO orders (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET card = 'x'"}
	tests := []struct {
		p    wire.Permissions
		list []string
	}{
		{rowsOnly, append(either, "TRUNCATE orders", "DROP TABLE orders", "CREATE OR REPLACE TABLE orders (a INTEGER)", "CREATE OR REPLACE VIEW orders AS SELECT 1",
			"DROP SCHEMA main CASCADE")},
		{columnsOnly, append(either, "UPDATE orders SET id = 1", "DELETE FROM orders WHERE id = 1", "DELETE FROM orders USING events WHERE orders.id = events.id",
			"DELETE FROM orders RETURNING card", "INSERT INTO orders (id) VALUES (1) RETURNING card")},
	}
	g := newGuard(t)
	for _, test := range tests {
		s := of(t, g, test.p)
		for _, sql := range test.list {
			if _, err := g.Check(t.Context(), sql, s); code(err) != string(NotAllowed) || !strings.Contains(err.Error(), "polic") {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	for _, sql := range []string{"INSERT INTO orders (id) VALUES (1)", "DELETE FROM orders", "TRUNCATE orders", "DROP TABLE orders", "FROM orders AS o"} {
		if st, err := g.Check(t.Context(), sql, of(t, g, columnsOnly)); err != nil || !st.Protected {
			t.Errorf("%s under column policies: %v", sql, err)
		}
	}
}

// TestNoPlaceHidesAProtectedTable puts a table with policies in every place where a table can stand: it is
// substituted there, or the statement is refused.
func TestNoPlaceHidesAProtectedTable(t *testing.T) {
	g := newGuard(t)
	s := of(t, g, policies())
	allowed := 0
	for _, place := range statements(t, "places") {
		for _, table := range []string{"orders", "main.orders", "lake.orders", `lake."main"."Orders"`, "ORDERS AS o", "orders o (x)", "/* x */orders/* y */"} {
			sql := fill(place, table)
			st, err := g.Check(t.Context(), sql, s)
			if err != nil {
				if c := code(err); c != string(NotAllowed) && c != string(NotAuthorized) && c != "syntax" {
					t.Errorf("%s: %v", sql, err)
				}
				continue
			}
			allowed++
			if !st.Protected || !strings.Contains(st.SQL, "'EU'") {
				t.Errorf("%s becomes %s", sql, st.SQL)
			}
		}
	}
	if allowed < 200 {
		t.Errorf("only %d statements are allowed", allowed)
	}
}

// TestMissingColumnsOfPoliciesAreNotOthers asserts that a statement around a table cannot give a meaning
// to the columns that a policy names and the table has not.
func TestMissingColumnsOfPoliciesAreNotOthers(t *testing.T) {
	g := newGuard(t)
	p := lake(t, everything()...)
	for _, predicate := range []string{"tenant = 'mine'", "id IN (SELECT r.usr FROM acl.regions r WHERE tenant = 'mine')",
		"EXISTS (SELECT 1 FROM acl.regions WHERE r.tenant = 'mine')", "events.tenant = 'mine'", "EXISTS (SELECT tenant = 'mine')"} {
		permissions := policies()
		permissions.Columns = nil
		permissions.Rows = []wire.RowPolicy{{Catalog: "*", Schema: "*", Table: "events", Predicate: predicate}}
		s := of(t, g, permissions)
		for _, sql := range []string{"SELECT (SELECT max(n) FROM events) AS n FROM (SELECT 'mine' AS tenant) r",
			"FROM (SELECT 'mine' AS tenant) r, LATERAL (FROM events)", "FROM (SELECT {'tenant': 'mine'} AS events) r, (SELECT * FROM events) x",
			"FROM (SELECT 'mine' AS tenant) events, (FROM main.events AS e) r", "DELETE FROM events USING (SELECT 'mine' AS tenant) r",
			"UPDATE events SET n = 0 FROM (SELECT 'mine' AS tenant) r WHERE r.tenant = 'mine'"} {
			st, err := g.Check(t.Context(), sql, s)
			if err != nil {
				continue
			}
			run(t, p, "BEGIN")
			if rows, err := p.rows(st.SQL); err == nil {
				t.Errorf("policy %s: %s gives %v", predicate, st.SQL, rows)
			}
			run(t, p, "ROLLBACK")
		}
	}
}

// TestErrorsTellNothingOfHiddenRows puts expressions that fail on hidden values in many places: none is
// computed on a hidden row. The table has more rows than one vector, since DuckDB learns while it reads which
// of its filters to compute first.
func TestErrorsTellNothingOfHiddenRows(t *testing.T) {
	g := newGuard(t)
	for n, predicate := range []string{"k = 1", "v = '1' AND k < 5", "k = 1 OR length(v) = 1", "v IN ('1', 'b')", "contains('1', v)",
		"k IN (SELECT u.k FROM acl.u)", "EXISTS (SELECT 1 FROM acl.u WHERE u.k = t.k)", "k = (SELECT max(u.k) FROM acl.u)",
		"k NOT IN (SELECT u.k + r.k FROM acl.u, s.r)", "EXISTS (SELECT 1 FROM acl.u JOIN s.r ON u.k < r.k WHERE u.k = t.k AND r.k > t.k)"} {
		t.Run(predicate, func(t *testing.T) {
			t.Parallel()
			p := lake(t, "CREATE SCHEMA acl", "CREATE TABLE acl.u (k INTEGER)", "INSERT INTO acl.u VALUES (1)", "CREATE TABLE sink (k INTEGER)",
				"CREATE SCHEMA s", "CREATE TABLE s.r AS SELECT i AS k FROM range(1, 60000) r(i)",
				"CREATE TABLE t AS SELECT k, CASE WHEN k = 1 THEN '1' ELSE 'CANARY' || k END AS v, k AS w, v AS x FROM s.r")
			s := of(t, g, wire.Permissions{Grants: []wire.Permission{grantOf("*", "*", "all")},
				Rows: []wire.RowPolicy{{Catalog: "*", Schema: "main", Table: "t", Predicate: predicate}}})
			for i, place := range statements(t, "raising") {
				for _, sql := range raisingIn(place, i+n) {
					st, err := g.Check(t.Context(), sql, s)
					if err != nil {
						t.Fatal(err)
					}
					run(t, p, "BEGIN")
					if _, err := p.rows(st.SQL); err != nil && (strings.Contains(err.Error(), "CANARY") || strings.HasPrefix(err.Error(), "Binder Error")) {
						t.Errorf("%s: %v", st.SQL, err)
					}
					run(t, p, "ROLLBACK")
				}
			}
		})
	}
}

// raisingIn fills a place with expressions that fail: with those of which DuckDB believes that they cannot, and a
// third of the others, another one each turn.
func raisingIn(place string, turn int) []string {
	believed := []string{"v::UUID", "CAST(v AS STRUCT(a INTEGER))"}
	others := []string{"CAST(v AS INTEGER)", "CAST(v AS DATE)", "error(v)", "strptime(v, '%Y')", "regexp_extract('a', v || '(')", "json_extract(v, '$')",
		"CAST(v AS BOOLEAN)", "repeat(v, 10)::INTEGER", "date_trunc(v, DATE '2024-01-01')", "v::DECIMAL(3, 1)"}
	if !strings.Contains(place, "{}") {
		return []string{place}
	}
	for i := turn % 3; i < len(others); i += 3 {
		believed = append(believed, others[i])
	}
	for i, one := range believed {
		believed[i] = strings.ReplaceAll(place, "{}", one)
	}
	return believed
}

// FuzzPolicies changes statements over tables with policies and asserts that those that are allowed name
// no such table but in what the guard puts there.
func FuzzPolicies(f *testing.F) {
	for _, sql := range statements(f, "policies") {
		f.Add(sql)
	}
	for _, place := range statements(f, "places") {
		f.Add(fill(place, "orders AS o (x) AT (VERSION => 1)"))
		f.Add(fill(place, "main.orders"))
	}
	g := newGuard(f)
	p := policies()
	p.Columns = nil
	r, err := g.Rights(f.Context(), p, "lake")
	if err != nil {
		f.Fatal(err)
	}
	s := Scope{Catalog: "lake", Rights: r, Prepared: true, Temporary: map[string]bool{"a": true}}
	f.Fuzz(func(t *testing.T, sql string) {
		st, err := g.Check(t.Context(), sql, s)
		if err != nil || st.Class == wire.DDL {
			return
		}
		a, err := g.analyse(t.Context(), st.SQL, "lake")
		if err != nil {
			t.Fatalf("%q becomes %q: %v", sql, st.SQL, err)
		}
		for _, one := range a.references {
			name := strings.ToLower(one.table.Name)
			if one.head || name != "orders" && name != "customers" || strings.EqualFold(one.table.Schema, "s") {
				continue
			}
			if !strings.HasPrefix(st.SQL[max(one.at, 0):], `"lake"."main"."`+name+`" AS "p`) && places(s, one) {
				t.Fatalf("%q becomes %q, which reads %s", sql, st.SQL, name)
			}
		}
	})
}

// places reports whether a reference may be to a table of the lake with policies.
func places(s Scope, r reference) bool {
	for _, p := range s.resolve(r.table) {
		if !p.temporary && s.Rights.protection(p.schema, p.table) != nil {
			return true
		}
	}
	return false
}
