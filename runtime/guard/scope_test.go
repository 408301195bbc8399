package guard

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

// session is a statement, where it runs, and what it gives: a value, "" for no rows, or a code.
type session struct {
	name, sql string
	path      []string
	temp      string
	p         wire.Permissions
	want      string
}

func sessions() []session {
	only := func(schema, table string) wire.Permissions {
		return wire.Permissions{Grants: []wire.Permission{grantOf(schema, table, "all")}}
	}
	hide := only("*", "*")
	hide.Rows = []wire.RowPolicy{{Catalog: "*", Schema: "main", Table: "*", Predicate: "v = 'nothing'"}}
	return []session{
		{"main", "FROM a", nil, "", only("*", "*"), "main.a"},
		{"path", "FROM a", []string{"s"}, "", only("*", "*"), "s.a"},
		{"path alone", "FROM a", []string{"s"}, "", only("s", "*"), "s.a"},
		{"main behind the path", "FROM b", []string{"s"}, "", only("*", "*"), "main.b"},
		{"not main behind the path", "FROM b", []string{"s"}, "", only("s", "*"), "Catalog"},
		{"policies behind the path", "FROM a", []string{"s"}, "", hide, "s.a"},
		{"no way around policies", "FROM b", []string{"s"}, "", hide, "Catalog"},
		{"catalog and path", "FROM lake.a", []string{"s"}, "", only("s", "*"), "s.a"},
		{"case", "FROM A", []string{"S"}, "", only("s", "a"), "s.a"},
		{"no permission", "FROM a", []string{"s"}, "", only("main", "*"), "permission"},
		{"two", "FROM a", []string{"s", "z"}, "", only("*", "*"), "s.a"},
		{"one of two", "FROM a", []string{"s", "z"}, "", only("s", "*"), "permission"},
		{"two and policies", "FROM a", []string{"s", "main"}, "", hide, "permission"},
		{"two and a name", "FROM s.a", []string{"s", "main"}, "", hide, "s.a"},
		{"temporary", "FROM a", nil, "a", only("z", "*"), "temp.a"},
		{"temporary main", "FROM main.a", nil, "a", only("z", "*"), "temp.a"},
		{"temporary path", "FROM a", []string{"s"}, "a", only("z", "*"), "temp.a"},
		{"temporary other", "FROM s.a", []string{"s"}, "a", only("s", "*"), "s.a"},
		{"lake and temporary", "FROM lake.main.a", nil, "a", only("main", "*"), "main.a"},
		{"lake and no permission", "FROM lake.main.a", nil, "a", only("z", "*"), "permission"},
		{"temporary and policies", "FROM a", nil, "a", hide, "temp.a"},
		{"hidden", "FROM a", nil, "", hide, ""},
		{"hidden and temporary", "FROM lake.main.a", nil, "a", hide, ""},
		{"generated name", "SELECT (SELECT max(v) FROM a)", nil, "a", hide, "temp.a"},
		{"table expression", "WITH a AS (SELECT 'x' AS v) FROM a", nil, "a", only("z", "*"), "x"},
	}
}

// TestNamesMeanWhatTheEngineFinds runs statements in sessions with other search paths and temporary
// objects, and asserts that what was judged is what DuckDB reads.
func TestNamesMeanWhatTheEngineFinds(t *testing.T) {
	setup := []string{"CREATE SCHEMA s", "CREATE SCHEMA z", "CREATE TABLE a AS SELECT 'main.a' AS v", "CREATE TABLE s.a AS SELECT 's.a' AS v",
		"CREATE TABLE b AS SELECT 'main.b' AS v", "CREATE TABLE z.c AS SELECT 'z.c' AS v", "CREATE TABLE c AS SELECT 'main.c' AS v"}
	g := newGuard(t)
	for _, test := range sessions() {
		t.Run(test.name, func(t *testing.T) {
			p := lake(t, setup...)
			if len(test.path) > 0 {
				run(t, p, "SET search_path = '"+strings.Join(test.path, ",")+"'")
			}
			s := of(t, g, test.p)
			s.Path, s.Temporary = test.path, map[string]bool{}
			if test.temp != "" {
				run(t, p, "CREATE TEMP TABLE "+test.temp+" AS SELECT 'temp."+test.temp+"' AS v")
				s.Temporary[test.temp] = true
			}
			st, err := g.Check(t.Context(), test.sql, s)
			if err != nil {
				if code(err) != test.want {
					t.Errorf("got %v, want %s", err, test.want)
				}
				return
			}
			rows, err := p.rows(st.SQL)
			got := ""
			switch {
			case err != nil:
				got, _, _ = strings.Cut(err.Error(), " ")
			case len(rows) > 0:
				got = rows[0][0]
			}
			if got != test.want {
				t.Errorf("%s gives %q (%v), want %q", st.SQL, got, err, test.want)
			}
		})
	}
}

// TestViewsCannotBeRedirected asserts that a view reads what it was judged by, whatever the search path
// and the temporary objects are of who creates and reads it.
func TestViewsCannotBeRedirected(t *testing.T) {
	g := newGuard(t)
	p := lake(t, "CREATE SCHEMA s", "CREATE TABLE a AS SELECT 'main' AS v", "CREATE TABLE s.a AS SELECT 's' AS v")
	create := func(sql string, path ...string) {
		t.Helper()
		s := owner()
		s.Path = path
		st, err := g.Check(t.Context(), sql, s)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		run(t, p, st.SQL)
	}
	create("CREATE VIEW bare AS FROM a")
	create("CREATE VIEW s.elsewhere AS SELECT v FROM a WHERE main.a.v IS NOT NULL")
	create("CREATE VIEW half AS FROM main.a")
	create("CREATE VIEW half2 AS FROM lake.a AS x")
	create("CREATE VIEW deep AS WITH x AS (FROM a) SELECT v FROM x WHERE v IN (FROM a)")
	create("CREATE VIEW shadow AS WITH a AS (SELECT 'cte' AS v) FROM a")
	create("CREATE TEMP VIEW mine AS FROM a")
	run(t, p, "USE lake.s", "CREATE TEMP TABLE a AS SELECT 'temp' AS v", "CREATE TEMP TABLE x AS SELECT 'temp' AS v")
	for view, want := range map[string]string{"main.bare": "main", "s.elsewhere": "main", "main.half": "main", "main.half2": "main",
		"main.deep": "main", "main.shadow": "cte", "temp.mine": "main"} {
		rows, err := p.rows("FROM " + view)
		if err != nil || len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s: %v, %v, want %s", view, rows, err, want)
		}
	}
	s := owner()
	s.Temporary = map[string]bool{"a": true}
	if _, err := g.Check(t.Context(), "CREATE VIEW v AS FROM a", s); code(err) != string(NotAllowed) {
		t.Errorf("a view of the lake over a temporary table: %v", err)
	}
	s.Temporary, s.Path = nil, []string{"s", "main"}
	if _, err := g.Check(t.Context(), "CREATE VIEW v AS FROM a", s); code(err) != string(NotAuthorized) {
		t.Errorf("a view over a table that is in one of two schemas: %v", err)
	}
}

// TestCatalogIsFiltered asserts what a user with few rights sees of the catalog.
func TestCatalogIsFiltered(t *testing.T) {
	g := newGuard(t)
	p := lake(t, append(everything(), "CREATE VIEW seen AS SELECT 1 AS x", "CREATE VIEW unseen AS SELECT 2 AS x", "CREATE TEMP TABLE mine (a INTEGER)",
		"CREATE SCHEMA empty")...)
	s := of(t, g, policies(grantOf("main", "customers", "select"), grantOf("MAIN", "seen", "select"), grantOf("s", "*", "insert")))
	tests := map[string][]string{
		"SELECT table_name FROM information_schema.tables":                                 {"customers", "items", "mine", "seen"},
		"SELECT tables.table_name FROM INFORMATION_SCHEMA.TABLES":                          {"customers", "items", "mine", "seen"},
		"SELECT information_schema.tables.table_name FROM information_schema.tables":       {"customers", "items", "mine", "seen"},
		"SELECT t.table_name FROM system.information_schema.tables t":                      {"customers", "items", "mine", "seen"},
		"SELECT column_name FROM information_schema.columns":                               {"a", "id", "id", "name", "region", "what", "x"},
		"SELECT schema_name FROM information_schema.schemata":                              {"main", "main", "s"},
		"SELECT table_name || coalesce(view_definition, '') FROM information_schema.views": {"seen"},
		"SHOW TABLES":             {"customers", "mine", "seen"},
		"FROM (SHOW TABLES)":      {"customers", "mine", "seen"},
		"SHOW TABLES FROM lake":   {"customers", "seen"},
		"SHOW TABLES FROM S":      {"items"},
		"SHOW TABLES FROM lake.s": {"items"},
		"SELECT name FROM (SHOW TABLES FROM s) UNION ALL (SHOW TABLES)":                                                                            {"customers", "items", "mine", "seen"},
		"SELECT count(*)::VARCHAR FROM information_schema.tables WHERE EXISTS (FROM information_schema.columns c WHERE c.table_name = 'salaries')": {"0"},
		"SELECT count(*)::VARCHAR FROM information_schema.table_constraints":                                                                       {"0"},
		"WITH tables AS (FROM information_schema.tables) SELECT table_name FROM tables":                                                            {"customers", "items", "mine", "seen"},
	}
	for sql, want := range tests {
		st, err := g.Check(t.Context(), sql, s)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		_, got := result(t, p, st.SQL, st.Original)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", st.SQL, diff)
		}
	}
	for what, test := range map[string]struct {
		grants []wire.Permission
		want   []string // with that of temporary objects
	}{
		"tables of one name": {[]wire.Permission{grantOf("*", "items", "select"), grantOf("*", "MINE", "select")}, []string{"main", "s"}},
		"no table":           {[]wire.Permission{grantOf("acl", "nope", "select"), grantOf("nope", "*", "all")}, []string{"main"}},
		"all of a schema":    {[]wire.Permission{grantOf("Empty", "*", "create")}, []string{"empty", "main"}},
		"every table":        {[]wire.Permission{grantOf("*", "*", "select")}, []string{"acl", "empty", "main", "main", "s"}},
	} {
		few := wire.Permissions{Grants: test.grants, Columns: policies().Columns}
		st, err := g.Check(t.Context(), "SELECT schema_name FROM information_schema.schemata", of(t, g, few))
		if err != nil {
			t.Errorf("schemata with %s: %v", what, err)
			continue
		}
		if _, got := result(t, p, st.SQL, st.Original); !cmp.Equal(got, test.want) {
			t.Errorf("schemata with %s: %v, want %v\n%s", what, got, test.want, st.SQL)
		}
	}
	for _, sql := range []string{"FROM information_schema.referential_constraints", "CREATE VIEW v AS FROM information_schema.tables",
		"CREATE VIEW v AS FROM (SHOW TABLES FROM s)", "SHOW TABLES FROM acl", "SHOW TABLES FROM lake.nowhere", "FROM (SELECT (SELECT max(table_name) FROM information_schema.tables))"} {
		if _, err := g.Check(t.Context(), sql, s); err == nil {
			t.Errorf("%s is allowed", sql)
		}
	}
	st, err := g.Check(t.Context(), "FROM information_schema.views", Scope{Catalog: "lake", Rights: rights(wire.Permissions{Admin: true}, "lake")})
	if err != nil || st.SQL != "FROM information_schema.views" || st.Restricted {
		t.Errorf("an administrator: %+v, %v", st, err)
	}
}

// TestErrorsTellNoHiddenNames computes expressions that fail on every column of every view of the catalog: none is
// computed on a row that the user does not see.
func TestErrorsTellNoHiddenNames(t *testing.T) {
	g := newGuard(t)
	p := lake(t, "CREATE TABLE seen (a INTEGER)", "CREATE SCHEMA canary_s", "CREATE TABLE canary_s.canary_t (canary_c INTEGER NOT NULL DEFAULT 1)",
		"CREATE VIEW canary_s.canary_v AS SELECT 'canary' AS canary_d", "CREATE TABLE canary_t (a INTEGER NOT NULL)")
	s := of(t, g, wire.Permissions{Grants: []wire.Permission{grantOf("main", "seen", "select")}})
	places := []string{"SELECT count(*) FROM (SELECT name AS v FROM (SHOW TABLES)) WHERE {} IS NOT NULL",
		"SELECT count(*) FROM (SHOW TABLES FROM main) AS s(v) WHERE {} IS NOT NULL"}
	for name := range catalogViews() {
		for _, column := range columns(t, p, "FROM information_schema."+name) {
			read := "SELECT count(*) FROM (SELECT " + column + "::VARCHAR AS v FROM information_schema." + name + ")"
			places = append(places, read+" WHERE {} IS NOT NULL", read+" JOIN range(2) AS r(i) ON i > 0 AND {} IS NOT NULL")
		}
	}
	for turn, place := range places {
		hidden := strings.ReplaceAll(place, "{}", "(CASE WHEN contains(v, 'canary') THEN {} END)")
		for _, sql := range append(raisingIn(place, turn)[:2], raisingIn(hidden, turn)...) {
			st, err := g.Check(t.Context(), sql, s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.rows(st.SQL); err != nil && (strings.Contains(err.Error(), "canary_") || strings.HasPrefix(err.Error(), "Binder Error")) {
				t.Errorf("%s: %v", st.SQL, err)
			}
		}
	}
}

// TestViewsOfTheCatalogAreKnown asserts that what a view of information_schema is filtered by exists,
// and that it hides every column whose name says that it is a definition.
func TestViewsOfTheCatalogAreKnown(t *testing.T) {
	p := instance(t)
	for name, view := range catalogViews() {
		have := columns(t, p, "FROM information_schema."+name)
		for _, want := range append([]string{view.catalog, view.schema, view.table, view.column}, view.hidden...) {
			if want != "" && !slices.Contains(have, want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
		for _, one := range have {
			if strings.Contains(one, "definition") || strings.HasSuffix(one, "_text") || strings.HasSuffix(one, "_expression") {
				if !slices.Contains(view.hidden, one) {
					t.Errorf("%s shows %s", name, one)
				}
			}
		}
	}
}
