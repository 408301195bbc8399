package guard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

func grantOf(schema, table string, privileges ...string) wire.Permission {
	return wire.Permission{Catalog: "lake", Schema: schema, Table: table, Privileges: privileges}
}

// taken says what each statement takes.
func taken() map[string][]wire.Permission {
	one := func(table string, privileges ...string) []wire.Permission {
		var out []wire.Permission
		for _, p := range privileges {
			out = append(out, grantOf("main", table, p))
		}
		return out
	}
	both := func(a, b []wire.Permission) []wire.Permission { return append(a, b...) }
	whole := []string{"select", "insert", "update", "delete", "create", "alter", "drop"}
	return map[string][]wire.Permission{
		"FROM t":                                both(one("t", "select"), nil),
		"SELECT 1 WHERE 1 IN (SELECT a FROM T)": one("t", "select"),
		"FROM t, u":                             both(one("t", "select"), one("u", "select")),
		"DESCRIBE t":                            one("t", "select"),
		"SUMMARIZE t":                           one("t", "select"),
		"SHOW t":                                one("t", "select"),
		"EXPLAIN FROM t":                        one("t", "select"),
		"EXPLAIN ANALYZE DELETE FROM t":         one("t", "delete"),
		"WITH t AS (FROM u) FROM t":             one("u", "select"),
		"INSERT INTO t VALUES (1)":              one("t", "insert"),
		"INSERT INTO t FROM u":                  both(one("t", "insert"), one("u", "select")),
		"INSERT INTO t VALUES (1) RETURNING a":  one("t", "insert", "select"),
		"INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING":              one("t", "insert"),
		"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2": one("t", "insert", "select", "update"),
		"INSERT OR REPLACE INTO t VALUES (1)":                          one("t", "insert", "update"),
		"UPDATE t SET a = 1":                                           one("t", "update", "select"),
		"UPDATE t SET a = u.a FROM u":                                  both(one("t", "update", "select"), one("u", "select")),
		"DELETE FROM t":                                                one("t", "delete"),
		"DELETE FROM t WHERE a = 1":                                    one("t", "delete", "select"),
		"DELETE FROM t USING u":                                        both(one("t", "delete", "select"), one("u", "select")),
		"DELETE FROM t RETURNING a":                                    one("t", "delete", "select"),
		"TRUNCATE t":                                                   one("t", "delete"),
		"MERGE INTO t USING u USING (a) WHEN MATCHED THEN DELETE":      both(one("t", "update", "insert", "delete", "select"), one("u", "select")),
		"CREATE TABLE t (a INTEGER)":                                   one("t", "create"),
		"CREATE TABLE t (a INTEGER REFERENCES u (a))":                  both(one("t", "create"), one("u", "select")),
		"CREATE TABLE t AS FROM u":                                     both(one("t", "create"), one("u", "select")),
		"CREATE OR REPLACE TABLE t AS FROM u":                          both(one("t", "create", "drop"), one("u", "select")),
		"CREATE VIEW t AS FROM u":                                      both(one("t", "create"), one("u", "select")),
		"CREATE TEMP TABLE x AS FROM u":                                one("u", "select"),
		"CREATE TEMP VIEW x AS FROM u":                                 one("u", "select"),
		"ALTER TABLE t ADD COLUMN b INTEGER":                           one("t", "alter"),
		"ALTER TABLE t RENAME a TO b":                                  one("t", "alter"),
		"ALTER TABLE t RENAME TO u":                                    both(one("t", whole...), one("u", whole...)),
		"ALTER VIEW t RENAME TO u":                                     both(one("t", whole...), one("u", whole...)),
		"DROP TABLE t":                                                 one("t", "drop"),
		"DROP VIEW t":                                                  one("t", "drop"),
		"CREATE OR REPLACE SCHEMA z":                                   {grantOf("z", "*", "create"), grantOf("z", "*", "drop")},
		"CREATE SCHEMA z":                                              {grantOf("z", "*", "create")},
		"DROP SCHEMA z CASCADE":                                        {grantOf("z", "*", "drop")},
		"USE z":                                                        {grantOf("z", "any", "insert")},
		"SET schema = 'lake.z'":                                        {grantOf("z", "any", "insert")},
		"SHOW TABLES FROM z":                                           {grantOf("z", "any", "insert")},
		"FROM z.t":                                                     {grantOf("z", "t", "select")},
		"FROM lake.z.t, main.t":                                        {grantOf("z", "*", "select"), grantOf("main", "t", "select")},
	}
}

// TestPrivileges asserts for each statement that it is allowed with these grants, and with none of them
// left out.
func TestPrivileges(t *testing.T) {
	tests := taken()
	g := newGuard(t)
	for sql, grants := range tests {
		check := func(list []wire.Permission) string {
			s := Scope{Catalog: "lake", Rights: rights(wire.Permissions{Grants: append(list, grantOf("else", "where", "all"))}, "lake")}
			_, err := g.Check(t.Context(), sql, s)
			return code(err)
		}
		if got := check(grants); got != "allowed" {
			t.Errorf("%s: %s with all of %v", sql, got, grants)
		}
		for i := range grants {
			less := append(append([]wire.Permission{}, grants[:i]...), grants[i+1:]...)
			if got := check(less); got != string(NotAuthorized) {
				t.Errorf("%s: %s without %v", sql, got, grants[i])
			}
		}
	}
}

func TestRightsSee(t *testing.T) {
	p := policies(grantOf("main", "Orders", "select"), grantOf("S", "*", "insert"),
		wire.Permission{Catalog: "other", Schema: "*", Table: "*", Privileges: []string{"all"}})
	p.Columns = append(p.Columns, wire.ColumnPolicy{Catalog: "lake", Schema: "main", Table: "orders", Column: "st"})
	r := of(t, newGuard(t), p).Rights
	got := map[string]bool{
		"admin": r.Admin(), "empty": r.Empty(), "orders": r.Sees("MAIN", "orders"), "events": r.Sees("main", "events"), "s.x": r.Sees("s", "x"),
		"main": r.SeesSchema("main"), "s": r.SeesSchema("s"), "acl": r.SeesSchema("acl"), "id": r.SeesColumn("main", "orders", "id"),
		"masked": r.SeesColumn("main", "orders", "card"), "denied": r.SeesColumn("main", "ORDERS", "ST"), "unseen": r.SeesColumn("main", "events", "id"),
	}
	want := map[string]bool{"admin": false, "empty": false, "orders": true, "events": false, "s.x": true, "main": true, "s": true, "acl": false,
		"id": true, "masked": true, "denied": false, "unseen": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	admin := rights(wire.Permissions{Admin: true}, "lake")
	if !admin.Admin() || admin.Empty() || !admin.SeesColumn("a", "b", "c") || !rights(wire.Permissions{}, "lake").Empty() {
		t.Error("an administrator does not see everything, or nobody sees something")
	}
}

// TestColumnPoliciesAreUnited asserts that a denial counts before a mask and two masks are a denial.
func TestColumnPoliciesAreUnited(t *testing.T) {
	policy := func(column, expression string) wire.ColumnPolicy {
		return wire.ColumnPolicy{Catalog: "*", Schema: "*", Table: "t", Column: column, Expression: expression}
	}
	p := wire.Permissions{Columns: []wire.ColumnPolicy{policy("a", "upper(a)"), policy("A", "upper(a)"), policy("b", "upper(b)"),
		policy("b", "lower(b)"), policy("b", "lower(b)"), policy("c", "upper(c)"), policy("c", ""), policy("d", ""), policy("d", "upper(d)")}}
	got := of(t, newGuard(t), p).Rights.protection("x", "t")
	if diff := cmp.Diff([]string{"b", "c", "d"}, got.denied); diff != "" || len(got.masks) != 1 || got.masks[0].column != "a" || got.bad {
		t.Errorf("%s%+v", diff, got)
	}
}

// TestBadPoliciesCloseTheTable asserts that a policy that is not understood makes its table, and only
// that, inaccessible.
func TestBadPoliciesCloseTheTable(t *testing.T) {
	predicates := []string{"", "a =", "a = 1, b = 2", "a = 1) OR (true", "a = 1; true", "a = ?", "a = $x", "read_csv('x') = a", "a IN (FROM read_csv('x'))",
		"a IN (SELECT b FROM u)", "a IN (SELECT b FROM other.main.u)", "a IN (SELECT b FROM __ducklake_metadata_lake.u)", "getenv('x') = a",
		"a IN (SELECT b FROM lake.u)", "a = current_user", "a = 1 AS x", "true) FROM (SELECT 1", "a IN (WITH x AS (SELECT 1) FROM x)",
		"a IN (SELECT b FROM main.u, main.v)", "a IN (SELECT b FROM (SELECT 1) x)", "list_contains([1], lambda x: x = a)", "a IN (SELECT u.* FROM main.u)",
		"a = /* ", "#1 = a", "a::nothing = 1", "a IN (SELECT b FROM information_schema.tables)", "*", "a IN (SELECT b FROM main.u AT (VERSION => 1))"}
	masks := []string{"b", "a || b", "(SELECT a)", "a || ?", "upper(a), b", "current_user", "t.a", "read_text(a)", "a AS b", "*"}
	g := newGuard(t)
	check := func(p wire.Permissions, text string) {
		t.Helper()
		p.Grants = []wire.Permission{grantOf("*", "*", "all")}
		s := of(t, g, p)
		for _, sql := range []string{"FROM t", "INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE VIEW v AS FROM t"} {
			_, err := g.Check(t.Context(), sql, s)
			if code(err) != string(NotAuthorized) || !strings.Contains(err.Error(), "ask an administrator") {
				t.Errorf("%s with policy %q: %v", sql, text, err)
			}
		}
		if _, err := g.Check(t.Context(), "FROM u", s); err != nil {
			t.Errorf("FROM u with policy %q: %v", text, err)
		}
	}
	for _, text := range predicates {
		check(wire.Permissions{Rows: []wire.RowPolicy{{Catalog: "*", Schema: "*", Table: "t", Predicate: text}}}, text)
	}
	for _, text := range masks {
		check(wire.Permissions{Columns: []wire.ColumnPolicy{{Catalog: "*", Schema: "*", Table: "t", Column: "a", Expression: text}}}, text)
	}
}

// TestPrincipal asserts that the words for the user are values, whatever they hold.
func TestPrincipal(t *testing.T) {
	who := &wire.Principal{User: "o'hara\" OR true --", Tenant: "acme", Roles: []string{"it's", "b"}}
	got, ok := principal("CURRENT_USER = a AND current_tenant <> b.current_user AND \"current_roles\" IN current_roles AND x = ANY (current_groups)", who)
	want := `'o''hara" OR true --' = a AND 'acme' <> b.current_user AND "current_roles" IN CAST(['it''s', 'b'] AS VARCHAR[]) AND x = ANY (CAST([] AS VARCHAR[]))`
	if !ok || got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, ok := principal("a = current_groups", nil); ok {
		t.Error("a policy about nobody is usable")
	}
}
