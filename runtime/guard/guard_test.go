package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

func newGuard(t testing.TB) *Guard {
	t.Helper()
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// rights are those of a permission set without policies, or an administrator's.
func rights(p wire.Permissions, catalog string) *Rights {
	r, err := new(Guard).Rights(context.Background(), p, catalog)
	if err != nil {
		panic(err)
	}
	return r
}

// owner is a user with everything on the lake.
func owner() Scope {
	all := wire.Permission{Catalog: "lake", Schema: "*", Table: "*", Privileges: []string{"all"}}
	return Scope{Catalog: "lake", Rights: rights(wire.Permissions{Grants: []wire.Permission{all}}, "lake")}
}

// code returns the code of a refusal, "syntax", or the error itself.
func code(err error) string {
	var refusal *Refusal
	var syntax *SyntaxError
	switch {
	case err == nil:
		return "allowed"
	case errors.As(err, &refusal):
		return string(refusal.Code)
	case errors.As(err, &syntax):
		return "syntax"
	}
	return err.Error()
}

func TestCheckSaysWhatAStatementIs(t *testing.T) {
	table := func(name, privilege string) Table { return Table{Name: name, Privilege: privilege} }
	tests := map[string]Statement{
		"select 1": {Class: wire.Read, Kind: Select, ReadOnly: true},
		"from a, lake.s.b": {Class: wire.Read, Kind: Select, ReadOnly: true,
			Tables: []Table{table("a", "select"), {Catalog: "lake", Schema: "s", Name: "b", Privilege: "select"}}},
		"with recursive a as (from a union all from a), b as (from c) from a, b, main.b": {
			Class: wire.Read, Kind: Select, ReadOnly: true,
			Tables: []Table{{Schema: "main", Name: "b", Privilege: "select"}, table("a", "select"), table("c", "select")}},
		"select (with a as (select 1) from a), (from a)": {Class: wire.Read, Kind: Select, ReadOnly: true,
			Tables: []Table{table("a", "select")}},
		"with a as (select 1) from a at (version => 1)": {Class: wire.Read, Kind: Select, ReadOnly: true,
			Tables: []Table{table("a", "select")}},
		"with a as (select 1) from (describe a)": {Class: wire.Read, Kind: Select, ReadOnly: true,
			Tables: []Table{table("a", "select")}},
		"insert into a select * from b returning x": {Class: wire.Write, Kind: Insert, Returning: true,
			Tables: []Table{table("a", "insert"), table("b", "select")}},
		"with b as (select 1) insert into b from b": {Class: wire.Write, Kind: Insert, Tables: []Table{table("b", "insert")}},
		"insert into temp.a values (1)": {Class: wire.Write, Kind: Insert, Temporary: true,
			Tables: []Table{{Catalog: "temp", Name: "a", Privilege: "insert"}}},
		"update a set x = (select y from b) from c where d": {Class: wire.Write, Kind: Update,
			Tables: []Table{table("a", "update"), table("b", "select"), table("c", "select")}},
		"truncate a": {Class: wire.Write, Kind: Truncate, Tables: []Table{table("a", "delete")}},
		"create temp table a as from b": {Class: wire.DDL, Kind: CreateTableAs, Temporary: true, Leaves: true,
			Tables: []Table{table("a", "create"), table("b", "select")}},
		"create or replace view a as from b": {Class: wire.DDL, Kind: CreateView,
			SQL:    `create or replace view a as from "lake"."main".b`,
			Tables: []Table{table("a", "create"), table("a", "drop"), table("b", "select")}},
		"drop schema lake.s":          {Class: wire.DDL, Kind: DropSchema, Tables: []Table{{Catalog: "lake", Schema: "s", Privilege: "drop"}}},
		"begin":                       {Class: wire.Transaction, Kind: Begin},
		"start transaction read only": {Class: wire.Transaction, Kind: Begin, ReadOnlyBegin: true},
		"end":                         {Class: wire.Transaction, Kind: Commit},
		"abort work":                  {Class: wire.Transaction, Kind: Rollback},
		"use lake.s": {Class: wire.Setting, Kind: Use, Leaves: true,
			Tables: []Table{{Catalog: "lake", Schema: "s", Privilege: "select"}}},
		"set search_path = 'a,temp'": {Class: wire.Setting, Kind: Set, Leaves: true, Setting: &Setting{"search_path", "a,temp"},
			Tables: []Table{{Schema: "a", Privilege: "select"}, {Catalog: "temp", Privilege: "select"}}},
		"SET TimeZone TO 'UTC'": {Class: wire.Setting, Kind: Set, NoOp: true, Setting: &Setting{"timezone", "UTC"}},
		"explain insert into a values (1)": {Class: wire.Read, Kind: Explain, Explains: Insert, ReadOnly: true,
			Tables: []Table{table("a", "insert")}},
		"explain (analyze, format json) delete from a": {Class: wire.Write, Kind: Explain, Explains: Delete, Analyze: true,
			Tables: []Table{table("a", "delete")}},
	}
	g := newGuard(t)
	for sql, want := range tests {
		t.Run(sql, func(t *testing.T) {
			got, err := g.Check(t.Context(), sql, owner())
			if err != nil {
				t.Fatal(err)
			}
			if want.SQL == "" {
				want.SQL = sql
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckReturnsTheTextThatWasJudged(t *testing.T) {
	g := newGuard(t)
	got, err := g.Check(t.Context(), " ; /* a */ select\u00a01 -- '\n + /* /* */ */ '\u00a0--' ; -- end", owner())
	if err != nil {
		t.Fatal(err)
	}
	if want := "select  1     \n +             '\u00a0--'"; got.SQL != want {
		t.Errorf("got %q, want %q", got.SQL, want)
	}
}

func TestCheckPermissions(t *testing.T) {
	grant := func(catalog, schema, table string, privileges ...string) wire.Permissions {
		return wire.Permissions{Grants: []wire.Permission{{Catalog: catalog, Schema: schema, Table: table, Privileges: privileges}}}
	}
	tests := map[string]struct {
		permissions wire.Permissions
		granted     bool
	}{
		"none":          {wire.Permissions{}, false},
		"administrator": {wire.Permissions{Admin: true}, true},
		"this":          {grant("LAKE", "*", "*", "all"), true},
		"every":         {grant("*", "*", "*", "all"), true},
		"another":       {grant("other", "*", "*", "all"), false},
		"unset":         {grant("lake", "", "", "all"), false},
	}
	open := []string{"select 1", "with t as (select 1) from t", "begin", "commit", "rollback", "explain select 1", "set timezone = 'UTC'",
		"select * from range(3)"}
	closed := []string{"from t", "explain from t", "select (from t)", "with t as (from t) from t", "insert into t values (1)",
		"create temp table t (a int)", "drop table t", "use lake", "show tables", "from information_schema.tables", "describe t",
		"create schema s", "with t as (select 1) from (summarize t)", "set schema = 'main'", "values ((from t))", "show tables from main"}
	g := newGuard(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := Scope{Catalog: "lake", Rights: rights(test.permissions, "lake")}
			for _, sql := range open {
				if _, err := g.Check(t.Context(), sql, s); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
			}
			want := string(NotAuthorized)
			if test.granted {
				want = "allowed"
			}
			for _, sql := range closed {
				if _, err := g.Check(t.Context(), sql, s); code(err) != want {
					t.Errorf("%s: got %v, want %s", sql, err, want)
				}
			}
		})
	}
}

// TestCheckSeesPermissionsChange asserts that what is cached is not a permission.
func TestCheckSeesPermissionsChange(t *testing.T) {
	g := newGuard(t)
	for _, want := range []string{"allowed", "permission", "allowed"} {
		s := owner()
		if want != "allowed" {
			s.Rights = rights(wire.Permissions{}, "lake")
		}
		if _, err := g.Check(t.Context(), "from t", s); code(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	other := Scope{Catalog: "other", Rights: rights(wire.Permissions{Admin: true}, "other")}
	if _, err := g.Check(t.Context(), "from lake.main.t", owner()); err != nil {
		t.Error(err)
	}
	if _, err := g.Check(t.Context(), "from lake.main.t", other); code(err) != string(BadName) {
		t.Errorf("the name of one lake is valid in another: %v", err)
	}
}

func TestCheckParameters(t *testing.T) {
	g := newGuard(t)
	for _, sql := range []string{"select ?", "select $1 + $2", "insert into t values ($a)", "from t limit ?", "from t at (version => ?)"} {
		s := owner()
		if _, err := g.Check(t.Context(), sql, s); code(err) != "syntax" {
			t.Errorf("%s without values: %v", sql, err)
		}
		s.Prepared = true
		got, err := g.Check(t.Context(), sql, s)
		if err != nil || !got.Parameters || got.SQL != sql {
			t.Errorf("%s: got %+v, %v", sql, got, err)
		}
	}
}

func TestCheckLimits(t *testing.T) {
	nest := func(n int, left, core, right string) string {
		return "select " + strings.Repeat(left, n) + core + strings.Repeat(right, n)
	}
	tests := map[string]struct{ sql, want string }{
		"long":             {"select '" + strings.Repeat("x", maxBytes-9) + "'", "allowed"},
		"too long":         {"select '" + strings.Repeat("x", maxBytes) + "'", "too_large"},
		"brackets":         {nest(200, "(", "1", ")"), "allowed"},
		"too many":         {nest(201, "(", "1", ")"), "too_large"},
		"many lists":       {nest(100_000, "[", "1", "]"), "too_large"},
		"structs":          {nest(201, "{'a':", "1", "}"), "too_large"},
		"queries":          {nest(100, "(select ", "1", ")"), "allowed"},
		"lambdas":          {nest(12, "list_transform([1], lambda x: ", "1", ")"), "allowed"},
		"too many lambdas": {nest(13, "list_transform([1], lambda x: ", "1", ")"), "too_large"},
		"arrows":           {nest(40, "x -> ", "1", ""), "too_large"},
		"chain":            {nest(1, "1", strings.Repeat("+1", 490), ""), "allowed"},
		"too long a chain": {nest(1, "1", strings.Repeat("+1", 600), ""), "too_large"},
		"DuckDB's limit":   {nest(1, "1", strings.Repeat("+1", 50_000), ""), "syntax"},
		"NOT":              {nest(100_000, "not ", "true", ""), "syntax"},
		"AND":              {nest(1, "true", strings.Repeat(" and true", 20_000), ""), "allowed"},
		"list":             {"select 1 in (" + strings.Repeat("1,", 50_000) + "1)", "allowed"},
		"rows":             {"insert into t values (1)" + strings.Repeat(",(1)", 40_000), "allowed"},
		"too many words":   {"select 1 in (" + strings.Repeat("1,", 110_000) + "1)", "too_large"},
		"unions":           {nest(1, "1", strings.Repeat(" union all select 1", 2_000), ""), "allowed"},
		"too many unions":  {nest(1, "1", strings.Repeat(" union all select 1", 6_000), ""), "too_large"},
		"operators":        {nest(1, "1", strings.Repeat("+", 1_000_000), "1"), "syntax"},
		"huge number":      {"select 1e400, -1e400", "allowed"},
	}
	g := newGuard(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := g.Check(t.Context(), test.sql, owner()); code(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestRefusalsAreShort(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	g := newGuard(t)
	for _, sql := range []string{
		"select " + long + "(1)", "from " + long + "()", `from "` + long + `/"`, "set " + long + " = 1", long, "create " + long,
		"update t set a." + long, "select 1 " + long + " " + long, `"` + long + `"`, "select null::" + long, "insert into t " + long,
		"set schema = '" + long + "/'", "from " + long + ".a.b", "select * from a where '" + long + "' = ",
	} {
		_, err := g.Check(t.Context(), sql, owner())
		if err == nil || len(err.Error()) > maxMessage+8 {
			t.Errorf("%.40s…: error of %d bytes: %.80v", sql, len(fmt.Sprint(err)), err)
		}
	}
}

func TestCheckEnds(t *testing.T) {
	g, err := New(Config{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := <-g.sandbox.idle // as if a check were running
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client is gone")
	cancel(gone)
	if _, err := g.Check(ctx, "select 1", owner()); !errors.Is(err, gone) {
		t.Errorf("got %v, want the cause", err)
	}
	g.sandbox.idle <- p
	g.Close()
	if _, err := g.Check(t.Context(), "select 1", owner()); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestCheckConcurrently(t *testing.T) {
	g, err := New(Config{Connections: 2, CacheEntries: 8})
	if err != nil {
		t.Fatal(err)
	}
	allowed, refused := statements(t, "allowed"), statements(t, "refused/function")
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 100 {
				sql := allowed[(i*7+worker)%len(allowed)]
				if st, err := g.Check(t.Context(), sql, owner()); err != nil || st.Kind == "" {
					t.Errorf("%s: %v", sql, err)
				}
				sql = refused[(i+worker*31)%len(refused)]
				if _, err := g.Check(t.Context(), sql, owner()); code(err) != string(BadFunction) {
					t.Errorf("%s: %v", sql, err)
				}
			}
		})
	}
	group.Wait()
	g.Close()
}

func TestSandboxIsLocked(t *testing.T) {
	g := newGuard(t)
	p := <-g.sandbox.idle
	defer func() { g.sandbox.idle <- p }()
	for _, sql := range []string{
		"SELECT content FROM read_text('/etc/hostname')", "SET enable_external_access = true", "SET threads = 2", "LOAD tpch",
		"COPY (SELECT 1) TO '/tmp/guard-test.csv'", "ATTACH '/tmp/guard-test.db'", "INSTALL tpch", "SET lock_configuration = false",
	} {
		if _, err := p.rows(sql); err == nil {
			t.Errorf("%s succeeds", sql)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache[*analysis](3)
	key := func(catalog, sql string) cacheKey { return cacheKey{catalog: catalog, sql: sql} }
	for i := range 10 {
		c.put(key("lake", fmt.Sprint("select ", i)), &analysis{}, 0)
		if _, ok := c.get(key("lake", "select 0")); !ok {
			t.Fatalf("what was used last is gone after %d", i)
		}
	}
	if len(c.entries) != 3 || c.order.Len() != 3 {
		t.Errorf("%d entries", len(c.entries))
	}
	if _, ok := c.get(key("Lake", "select 0")); ok {
		t.Error("found under another catalog")
	}
	big := newCache[*analysis](1 << 20)
	for i := range 1000 {
		big.put(key("lake", fmt.Sprint(i, strings.Repeat("x", maxCachedText-10))), &analysis{}, 0)
	}
	if big.bytes > maxCacheBytes || len(big.entries) == 0 {
		t.Errorf("%d bytes in %d entries", big.bytes, len(big.entries))
	}
}

func BenchmarkCheck(b *testing.B) {
	g := newGuard(b)
	tests := map[string]string{
		"select": "select 1",
		"join":   "select a.x, sum(b.y) from a join b using (id) where a.z in (1, 2, 3) group by all order by 2 desc limit 10",
		"insert": "insert into t (a, b) values (1, 'x'), (2, 'y')",
	}
	for name, sql := range tests {
		b.Run(name+"/cached", func(b *testing.B) {
			s := owner()
			for b.Loop() {
				if _, err := g.Check(b.Context(), sql, s); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/uncached", func(b *testing.B) {
			for b.Loop() {
				if _, err := g.analyse(b.Context(), sql, "lake"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
