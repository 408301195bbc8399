package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		os.Exit(holdLease(os.Stdin, os.Stdout))
	}
	os.Exit(pgtest.Main(m))
}

func newSealer(t testing.TB) *store.Sealer {
	t.Helper()
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

func openAt(t testing.TB, url string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), postgres.Config{URL: url, Sealer: newSealer(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// session returns a connection of the test's own.
func session(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func sql(t testing.TB, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func one[T any](t testing.TB, conn *pgx.Conn, text string, args ...any) T {
	t.Helper()
	rows, err := conn.Query(t.Context(), text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func deadline(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Bundle {
		s := openAt(t, pgtest.Database(t))
		return storetest.Bundle{Store: s, Applies: s, Nodes: s, Keys: s, Statements: s, Tokens: s, Revocations: s, Audit: s, Sealer: newSealer(t)}
	})
}

func TestOpenTwiceAtOnceAndAgain(t *testing.T) {
	url := pgtest.Database(t)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			s, err := postgres.Open(t.Context(), postgres.Config{URL: url})
			if err == nil {
				s.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	conn := session(t, url)
	rows := one[string](t, conn, `SELECT string_agg(xmin::text, ',' ORDER BY relname) FROM pg_class WHERE relname LIKE 'qodstate%'`)
	openAt(t, url).Close()
	if diff := cmp.Diff(rows, one[string](t, conn, `SELECT string_agg(xmin::text, ',' ORDER BY relname) FROM pg_class WHERE relname LIKE 'qodstate%'`)); diff != "" {
		t.Errorf("opening again changed the catalog:\n%s", diff)
	}
}

func TestOpenReadOnlyCreatesNothing(t *testing.T) {
	url := pgtest.Database(t)
	if _, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: url}); !errors.Is(err, store.ErrNoState) {
		t.Errorf("empty database: got %v, want ErrNoState", err)
	}
	conn := session(t, url)
	if n := one[int](t, conn, `SELECT count(*) FROM pg_class WHERE relname LIKE 'qodstate%'`); n != 0 {
		t.Errorf("%d relations were made", n)
	}
	missing := strings.Replace(url, "/test_", "/absent_", 1)
	if _, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: missing}); err == nil || errors.Is(err, store.ErrNoState) {
		t.Errorf("missing database: got %v, want an error that is not ErrNoState", err)
	}
	w := openAt(t, url)
	if _, err := w.Commit(t.Context(), store.Change{Writes: []store.Write{storetest.New(t, "tenant", `{"name":"acme"}`)}}); err != nil {
		t.Fatal(err)
	}
	r, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := r.Snapshot(t.Context()); err != nil || len(got.Objects) != 1 {
		t.Errorf("snapshot: %v, %v", got, err)
	}
	if _, err := r.Commit(t.Context(), store.Change{}); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("commit: got %v, want a refusal", err)
	}
}

func TestNewerStoreIsOnlyRead(t *testing.T) {
	url := pgtest.Database(t)
	before := openAt(t, url)
	tenant := storetest.New(t, "tenant", `{"name":"acme"}`)
	if _, err := before.Commit(t.Context(), store.Change{Writes: []store.Write{tenant}}); err != nil {
		t.Fatal(err)
	}
	conn := session(t, url)
	sql(t, conn, `INSERT INTO qodstate_schema (version) SELECT max(version) + 1 FROM qodstate_schema`)
	after := openAt(t, url)
	readOnly, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	for name, s := range map[string]*postgres.Store{"opened before": before, "opened after": after, "read-only": readOnly} {
		if got, err := s.Snapshot(t.Context()); err != nil || len(got.Objects) != 1 {
			t.Errorf("%s: snapshot: %v, %v", name, got, err)
		}
	}
	for name, s := range map[string]*postgres.Store{"opened before": before, "opened after": after} {
		calls := map[string]func() error{
			"Commit":    func() error { _, err := s.Commit(t.Context(), store.Change{}); return err },
			"SetStatus": func() error { return s.SetStatus(t.Context(), tenant.ID, store.Status{Phase: store.Ready}, nil) },
			"PutNode":   func() error { return s.PutNode(t.Context(), store.Node{ID: "n"}) },
			"Acquire":   func() error { _, err := s.Acquire(t.Context(), "act", "me"); return err },
		}
		for call, f := range calls {
			if err := f(); !errors.Is(err, store.ErrNewer) {
				t.Errorf("%s: %s: got %v, want ErrNewer", name, call, err)
			}
		}
	}
	sql(t, conn, `UPDATE qodstate_object SET schema_version = 99;
		INSERT INTO qodstate_apply (id, by, host, stack, note, revision, previous)
		VALUES (gen_random_uuid(), 'a newer qod', '', '', '', 99, '{}')`)
	if _, err := before.Snapshot(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("object of a newer kind: got %v, want ErrNewer", err)
	}
}

func TestViewsFollowTheKinds(t *testing.T) {
	url := pgtest.Database(t)
	s := openAt(t, url)
	conn := session(t, url)
	verifier := storetest.New(t, "user", `{"tenant":"acme","name":"ana","password":"hmac:1","roles":["owner"],"groups":["staff"]}`)
	if _, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{
		storetest.New(t, "tenant", `{"name":"acme"}`),
		storetest.New(t, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`),
		storetest.New(t, "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales","threads":3,"nodes":{"dual":2}}`),
		storetest.New(t, "role", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`),
		storetest.New(t, "group", `{"tenant":"acme","name":"staff"}`),
		verifier,
	}}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range schema.Kinds() {
		for _, view := range kind.Views() {
			sql(t, conn, `SELECT * FROM `+view.Name)
		}
	}
	if got := one[string](t, conn, `SELECT concat_ws(' ', tenant, name, threads, nodes_dual) FROM qodstate_pool`); got != "acme bi 3 2" {
		t.Errorf("qodstate_pool has %q", got)
	}
	if got := one[string](t, conn, `SELECT concat_ws(' ', user_key, role) FROM qodstate_user_role`); got != "acme/ana owner" {
		t.Errorf("qodstate_user_role has %q", got)
	}
	// An old definition is replaced, one that others depend on is left.
	sql(t, conn, `COMMENT ON VIEW qodstate_tenant IS 'qod old'; COMMENT ON VIEW qodstate_pool IS 'qod old';
		CREATE VIEW mine AS SELECT * FROM qodstate_pool; DROP VIEW qodstate_role`)
	openAt(t, url)
	for view, want := range map[string]bool{"qodstate_tenant": false, "qodstate_pool": true, "qodstate_role": false} {
		if got := one[string](t, conn, `SELECT obj_description($1::text::regclass, 'pg_class')`, view); (got == "qod old") != want {
			t.Errorf("%s has the comment %q", view, got)
		}
	}
}

// TestSecretsAreSealed reads every byte that the server stored and logged.
func TestSecretsAreSealed(t *testing.T) {
	url := pgtest.Database(t)
	conn := session(t, url)
	for _, setting := range []string{"log_statement = 'all'", "log_error_verbosity = 'default'", "log_parameter_max_length = -1"} {
		sql(t, conn, "ALTER DATABASE "+pgx.Identifier{conn.Config().Database}.Sanitize()+" SET "+setting)
	}
	s := openAt(t, url)
	user := storetest.New(t, "user", `{"name":"root","system":true,"password":"hmac:1"}`)
	user.Secrets = map[string][]byte{"password": []byte("not-to-be-found-anywhere")}
	if _, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{user}, Note: "a note"}); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(pgtest.LogFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(log, []byte("qodstate_secret")) || !bytes.Contains(log, []byte("a note")) {
		t.Error("the server's log does not have the statements: this test shows nothing")
	}
	if bytes.Contains(log, user.Secrets["password"]) {
		t.Error("the secret is in the server's log")
	}
	for _, table := range []string{"object", "secret", "apply"} {
		found := one[bool](t, conn, `SELECT EXISTS (SELECT FROM qodstate_`+table+` t WHERE t::text LIKE '%' || $1 || '%' OR t::text LIKE '%' || $2 || '%')`,
			"not-to-be-found", "6e6f742d746f2d62652d666f756e64")
		if found {
			t.Errorf("the secret is in qodstate_%s", table)
		}
	}
}

// TestEqualWritesLeaveRowsAlone compares row versions, which the suite cannot see.
func TestEqualWritesLeaveRowsAlone(t *testing.T) {
	url := pgtest.Database(t)
	s := openAt(t, url)
	conn := session(t, url)
	tenant := storetest.New(t, "tenant", `{"name":"acme"}`)
	role := storetest.New(t, "role", `{"tenant":"acme","name":"owner"}`)
	status := store.Status{Phase: store.Ready, Message: "ü"}
	node := store.Node{ID: "n", PoolID: uuid.NewString(), Started: time.Now()}
	steps := func() {
		for _, err := range []error{s.SetStatus(t.Context(), tenant.ID, status, nil), s.PutNode(t.Context(), node), s.RemoveNode(t.Context(), "none")} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{tenant, role}}); err != nil {
		t.Fatal(err)
	}
	steps()
	versions := func() []string {
		var all []string
		for _, table := range []string{"object", "object_ref", "secret", "node", "revision"} {
			all = append(all, one[string](t, conn, `SELECT coalesce(string_agg(t.xmin::text || t.ctid::text, ' '), '') FROM qodstate_`+table+` t`))
		}
		return all
	}
	before := versions()
	steps()
	if diff := cmp.Diff(before, versions()); diff != "" {
		t.Errorf("equal status and node wrote rows:\n%s", diff)
	}
	// An equal put raises the revision and writes its record, but no object.
	tenant.Saw, role.Saw = 1, 1
	if _, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{tenant, role}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before[:4], versions()[:4]); diff != "" {
		t.Errorf("equal put wrote rows:\n%s", diff)
	}
}
