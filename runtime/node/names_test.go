package node

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

func TestParsePath(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
		bad  bool
	}{
		"one":                    {text: "lake.main", want: []string{"main"}},
		"several":                {text: "lake.a,lake.b", want: []string{"a", "b"}},
		"of another catalog":     {text: "temp.main,lake.a", want: []string{"a"}},
		"none of the lake":       {text: "temp.main"},
		"folded":                 {text: "LAKE.a", want: []string{"a"}},
		"quoted":                 {text: `lake."a.b","lake"."c,d"`, want: []string{"a.b", "c,d"}},
		"empty":                  {text: "", bad: true},
		"no schema":              {text: "lake", bad: true},
		"no schema in the list":  {text: "lake.a,lake", bad: true},
		"empty schema":           {text: "lake.", bad: true},
		"comma at the end":       {text: "lake.a,", bad: true},
		"three parts":            {text: "lake.a.b", bad: true},
		"open quote":             {text: `lake."a`, bad: true},
		"quote inside":           {text: `lake.a"b`, bad: true},
		"quotes in quotes":       {text: `lake.""a,lake.b""`, bad: true},
		"text after the quote":   {text: `lake."a"b`, bad: true},
		"empty quotes":           {text: `lake.""`, bad: true},
		"empty first of several": {text: ",lake.a", bad: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := parsePath(test.text, "lake")
			if ok == test.bad || !cmp.Equal(got, test.want) {
				t.Errorf("got %v, %v", got, ok)
			}
		})
	}
}

func TestHasTemporary(t *testing.T) {
	c := memoryConn(t)
	if err := c.runAll(t.Context(),
		"CREATE TABLE kept (i INTEGER)", "CREATE VIEW kept_view AS FROM kept", "CREATE TEMP TABLE base (i INTEGER)",
		"CREATE TEMP VIEW broken AS FROM base", "DROP TABLE base", `CREATE TEMP TABLE "a ""b" (i INTEGER)`, "BEGIN",
		"CREATE TEMP TABLE mine (i INTEGER)", "CREATE TEMP VIEW seen AS FROM mine",
	); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"kept": false, "kept_view": false, "base": false, "broken": true, `a "b`: true, "mine": true, "MINE": true, "seen": true,
	} {
		if got, err := c.hasTemporary(t.Context(), name); got != want || err != nil {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	if err := c.run(t.Context(), "ROLLBACK"); err != nil { // which must still be possible, and undo both
		t.Fatal(err)
	}
	if got, err := c.hasTemporary(t.Context(), "mine"); got || err != nil {
		t.Errorf("after the rollback: %v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.hasTemporary(ctx, "broken"); err == nil {
		t.Error("a look that was cancelled has an answer")
	}
}

// lakeServer is a node without its listener, whose steps a test can take one by one.
func lakeServer(t *testing.T) *server {
	t.Helper()
	lake := newLake(t)
	e, err := openLake(t.Context(), wire.NodeConfig{Lake: lake, ExtensionDir: extensionDir(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	key := wire.Key{ID: 1, Key: []byte(strings.Repeat("k", wire.KeySize))}
	s, err := newServer(wire.NodeConfig{ID: "n", Role: "dual", Lake: lake, Keys: []wire.Key{key}}, e, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.closeLanes(context.Background(), s.sessions.takeAll())
		s.close()
	})
	return s
}

// callAs is a call of a session with these permissions.
func (s *server) callAs(t *testing.T, session string, p wire.Permissions) *call {
	t.Helper()
	rights, err := s.guard.Rights(t.Context(), p, s.cfg.Lake.Name)
	if err != nil {
		t.Fatal(err)
	}
	return &call{
		Assertion: wire.Assertion{User: "u1", Session: session, Statement: newID()},
		rights:    func(context.Context) (*guard.Rights, error) { return rights, nil },
		trailer:   metadata.MD{},
	}
}

// askFor checks a statement and returns what goes on with it: a read or a run.
func (s *server) askFor(t *testing.T, c *call, sql string) (goOn func() ([][]string, error)) {
	t.Helper()
	q, err := s.ask(t.Context(), c, sql, "", false)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return func() (rows [][]string, err error) {
		if !q.st.reads() {
			n, done := s.sessions.use(c)
			defer done()
			_, err := s.once(t.Context(), c, n, q)
			return nil, err
		}
		err = s.read(t.Context(), c, q, newID(), func(context.Context, *arrow.Schema) (func(arrow.RecordBatch) error, error) {
			return func(b arrow.RecordBatch) error { rows = append(rows, text(b)...); return nil }, nil
		})
		return rows, err
	}
}

// do runs statements of one session that must succeed.
func (s *server) do(t *testing.T, session string, p wire.Permissions, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := s.askFor(t, s.callAs(t, session, p), sql)(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

func selectOn(schema, table string) wire.Permissions {
	return wire.Permissions{Grants: []wire.Permission{{Catalog: "*", Schema: schema, Table: table, Privileges: []string{"select"}}}}
}

// TestNamesChangeBeforeTheTurn: between the check of a statement and its turn, others of its session
// change what its names mean. It is judged again by what they mean when it runs.
func TestNamesChangeBeforeTheTurn(t *testing.T) {
	s := lakeServer(t)
	admin := wire.Permissions{Admin: true}
	s.do(t, "a", admin, "CREATE TABLE t AS SELECT 'main' AS v", "CREATE SCHEMA app", "CREATE TABLE app.t AS SELECT 'app' AS v",
		"CREATE TABLE app.other AS SELECT 1 AS v")
	own := wire.Permissions{Grants: append(selectOn("main", "*").Grants, selectOn("app", "other").Grants...)}
	tests := map[string]struct {
		permissions wire.Permissions
		before      []string // of the session, before the statement is checked
		sql         string
		meanwhile   []string
		want        string // rows, or the beginning of the error
	}{
		"nothing":                 {own, nil, "SELECT v FROM t", nil, "[[main]]"},
		"into an allowed schema":  {admin, nil, "SELECT v FROM t", []string{"USE app"}, "[[app]]"},
		"into a forbidden schema": {own, nil, "SELECT v FROM t", []string{"USE app"}, `table "t" does not exist or you are not authorized`},
		"search path":             {own, nil, "SELECT v FROM t", []string{"SET search_path = 'app,main'"}, "write schema.t: the search path has several schemas"},
		"out of it":               {own, []string{"USE app"}, "SELECT v FROM other", []string{"USE main"}, `table "other" does not exist or you are not authorized`},
		"and back":                {own, nil, "SELECT v FROM t", []string{"USE app", "USE main"}, "[[main]]"},
		"a temporary table":       {own, nil, "SELECT v FROM t", []string{"CREATE TEMP TABLE t AS SELECT 'mine' AS v"}, "[[mine]]"},
		"none any more": {own, []string{"CREATE TEMP TABLE t AS SELECT 'mine' AS v"}, "SELECT v FROM t",
			[]string{"DROP TABLE temp.t"}, "[[main]]"},
		"a write, to a temporary table": {own, []string{"CREATE TEMP TABLE t (v VARCHAR)"}, "INSERT INTO t VALUES ('x')",
			[]string{"DROP TABLE temp.t"}, `table "t" does not exist or you are not authorized`},
		"a write, from the lake's table": {admin, nil, "INSERT INTO t VALUES ('x')", []string{"CREATE TEMP TABLE t (v VARCHAR)"}, "[]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			session := newID()
			s.do(t, session, test.permissions, test.before...)
			goOn := s.askFor(t, s.callAs(t, session, test.permissions), test.sql)
			s.do(t, session, test.permissions, test.meanwhile...)
			rows, err := goOn()
			got := fmt.Sprint(rows)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if rows, err := s.askFor(t, s.callAs(t, newID(), admin), "SELECT v FROM t")(); fmt.Sprint(rows) != "[[main]]" || err != nil {
				t.Errorf("afterwards the lake's table has %v, %v", rows, err)
			}
		})
	}
}

// TestAnotherKindOfStatement: one that turns out to be another kind of thing is sent back.
func TestAnotherKindOfStatement(t *testing.T) {
	s := lakeServer(t)
	admin := wire.Permissions{Admin: true}
	c := s.callAs(t, "s", admin)
	q, err := s.ask(t.Context(), c, "SELECT 1", "", false)
	if err != nil {
		t.Fatal(err)
	}
	s.do(t, "s", admin, "CREATE TEMP TABLE t (v VARCHAR)")
	n, done := s.sessions.use(c)
	defer done()
	l, err := s.enter(t.Context(), n, "", false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.leave(n, l)
	other := q
	other.st.ReadOnly = false
	err = s.agree(t.Context(), c, n, l, &other)
	if f := asFault(err); err == nil || f.code != codes.Aborted || f.reason != wire.Transient || !f.untouched {
		t.Errorf("error is %v", err)
	}
	if err := s.agree(t.Context(), c, n, l, &q); err != nil || !q.names.temporary["t"] {
		t.Errorf("the same kind: %v, %v", err, q.names)
	}
}

// TestNamesOfASession: what a session's names mean is known after each statement that changes it, also
// when a transaction undoes that.
func TestNamesOfASession(t *testing.T) {
	s := lakeServer(t)
	admin := wire.Permissions{Admin: true}
	s.do(t, "a", admin, "CREATE SCHEMA app", `CREATE SCHEMA "The App"`)
	steps := []struct {
		sql          string
		fail, aborts bool
		want         names
	}{
		{sql: "SELECT 1", want: names{path: []string{"main"}}},
		{sql: "CREATE TEMP TABLE One (i INTEGER)", want: names{[]string{"main"}, map[string]bool{"one": true}}},
		{sql: "USE app", want: names{[]string{"app"}, map[string]bool{"one": true}}},
		{sql: "SET search_path = 'main,app'", want: names{[]string{"main", "app"}, map[string]bool{"one": true}}},
		{sql: "SET search_path = 'main,nope'", fail: true, want: names{[]string{"main", "app"}, map[string]bool{"one": true}}},
		{sql: "SET schema = 'app'", want: names{[]string{"app"}, map[string]bool{"one": true}}},
		{sql: `USE "The App"`, want: names{[]string{"The App"}, map[string]bool{"one": true}}},
		{sql: "USE main", want: names{[]string{"main"}, map[string]bool{"one": true}}},
		{sql: "BEGIN", want: names{[]string{"main"}, map[string]bool{"one": true}}},
		{sql: "CREATE TEMP VIEW two AS SELECT 1", want: names{[]string{"main"}, map[string]bool{"one": true, "two": true}}},
		{sql: "DROP TABLE temp.one", want: names{[]string{"main"}, map[string]bool{"two": true}}},
		{sql: "ROLLBACK", want: names{[]string{"main"}, map[string]bool{"one": true}}},
		{sql: "BEGIN", want: names{[]string{"main"}, map[string]bool{"one": true}}},
		{sql: "ALTER TABLE temp.one RENAME TO three", want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "COMMIT", want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "CREATE TEMP TABLE three (i INTEGER)", fail: true, want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "CREATE OR REPLACE TEMP TABLE three AS SELECT 3 AS i", want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "BEGIN", want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "CREATE TEMP TABLE four AS SELECT 'x'::INTEGER AS i", fail: true, aborts: true, want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "ROLLBACK", want: names{[]string{"main"}, map[string]bool{"three": true}}},
		{sql: "DROP TABLE temp.three", want: names{[]string{"main"}, nil}},
	}
	for _, step := range steps {
		if _, err := s.askFor(t, s.callAs(t, "s", admin), step.sql)(); (err != nil) != step.fail {
			t.Fatalf("%s: %v", step.sql, err)
		}
		got, unsure := s.lastKnown(s.sessions.find("s"), "")
		if !got.equal(&step.want) || unsure != (step.fail && step.aborts) {
			t.Errorf("after %s: %v, unsure %v; want %v", step.sql, got, unsure, step.want)
		}
	}
	if got, err := s.meaning(t.Context(), "another", ""); err != nil || !got.equal(s.home) {
		t.Errorf("in another session: %v, %v", got, err)
	}
}

// TestNamesInADroppedSchema: a connection whose default schema is gone is in the lake's own schema.
func TestNamesInADroppedSchema(t *testing.T) {
	s := &server{home: homeNames(wire.Lake{DefaultSchema: "shop"})}
	for name, test := range map[string]struct {
		l    *lane
		want string
	}{
		"as ever": {&lane{conn: &conn{}}, "shop"}, "without connection": {&lane{}, "shop"},
		"strayed": {&lane{conn: &conn{strayed: true}}, "main"},
		"known":   {&lane{conn: &conn{strayed: true}, names: &names{path: []string{"app"}}}, "app"},
	} {
		if got := s.on(test.l); got.path[0] != test.want {
			t.Errorf("%s: %v", name, got.path)
		}
	}
}

// TestVeilOfATransaction: what a COMMIT says is told as the statements of its transaction allow.
func TestVeilOfATransaction(t *testing.T) {
	s := lakeServer(t)
	s.do(t, "a", wire.Permissions{Admin: true}, "CREATE TABLE t AS SELECT 1 AS i", "CREATE TABLE u AS SELECT 1 AS i")
	p := selectOn("main", "*")
	p.Rows = []wire.RowPolicy{{Catalog: "*", Schema: "main", Table: "t", Predicate: "i > 0"}}
	depth := func() veilDepth { return s.sessions.find("s").main.veil }
	s.do(t, "s", p, "CREATE TEMP TABLE kept (i INTEGER)")
	for _, step := range []struct {
		sql  string
		want veilDepth
	}{
		{"FROM t", overNothing}, {"BEGIN", overNothing}, {"FROM u", overNames}, {"FROM t", overValues}, {"FROM u", overValues},
		{"COMMIT", overNothing}, {"BEGIN", overNothing}, {"FROM t", overValues}, {"ROLLBACK", overNothing},
	} {
		s.do(t, "s", p, step.sql)
		if got := depth(); got != step.want {
			t.Errorf("after %s: depth %d, want %d", step.sql, got, step.want)
		}
	}
}

// TestNamesThatCouldNotBeFoundOut are found out before the next statement is judged; while that cannot
// be, nothing is.
func TestNamesThatCouldNotBeFoundOut(t *testing.T) {
	s := lakeServer(t)
	p := selectOn("main", "nothing")
	s.do(t, "s", p, "CREATE TEMP TABLE one (i INTEGER)")
	n := s.sessions.find("s")
	s.set(n, n.main, nil) // as if that had been missed
	n.setUnsure(n.main, true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ask(ctx, s.callAs(t, "s", p), "FROM one", "", false); err == nil {
		t.Error("a statement was judged by names that are not known")
	}
	s.do(t, "s", p, "FROM one")
	if m, unsure := s.lastKnown(n, ""); unsure || !m.temporary["one"] {
		t.Errorf("then %v, unsure %v", m, unsure)
	}
}
