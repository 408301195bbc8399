package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/test/pgtest"
)

// large returns 15,000 objects: 50 tenants with 299 objects each.
func large(t testing.TB) []store.Write {
	var writes []store.Write
	for i := range 50 {
		tenant := fmt.Sprintf("t%d", i)
		add := func(kind, format string, args ...any) {
			writes = append(writes, storetest.New(t, kind, fmt.Sprintf(`{"tenant":%q,`, tenant)+fmt.Sprintf(format, args...)+`}`))
		}
		writes = append(writes, storetest.New(t, "tenant", fmt.Sprintf(`{"name":%q,"display_name":"Tenant %d"}`, tenant, i)))
		for j := range 20 {
			add("tenant_db", `"name":"db%d","kind":"ducklake","default_schema":"main"`, j)
			add("pool", `"name":"p%d","tenant_db":"db%d","memory":"1GiB","threads":2,"nodes":{"dual":2},"statement_timeout":"5m"`, j, j)
			add("role", `"name":"r%d","permission":[{"privileges":["all"]}],"description":"role %d"`, j, j)
		}
		for j := range 119 {
			add("user", `"name":"u%d","roles":["r%d","r%d"],"email":"u%d@example.org"`, j, j%20, (j+1)%20, j)
		}
		for j := range 120 {
			if j == 119 {
				add("pool_grant", `"pool":"*","role":"r0"`)
				continue
			}
			add("pool_grant", `"pool":"p%d","user":"u%d"`, j%20, j)
		}
	}
	return writes
}

// TestLargeStore holds the times that people wait for, with room for a slow machine.
func TestLargeStore(t *testing.T) {
	s := openAt(t, pgtest.Database(t))
	writes := large(t)
	timed := func(step string, limit time.Duration, f func() error) {
		t.Helper()
		start := time.Now()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		took := time.Since(start)
		t.Logf("%s of %d objects: %s", step, len(writes), took.Round(time.Millisecond))
		if took > limit*slack {
			t.Errorf("%s took %s, want at most %s", step, took, limit)
		}
	}
	commit := func(writes []store.Write) func() error {
		return func() error {
			_, err := s.Commit(t.Context(), store.Change{Writes: writes})
			return err
		}
	}
	timed("create", 10*time.Second, commit(writes))
	var snapshot *store.Snapshot
	read := func() (err error) {
		snapshot, err = s.Snapshot(t.Context())
		return err
	}
	timed("snapshot", 700*time.Millisecond, read)
	timed("second snapshot", 700*time.Millisecond, read)
	if len(snapshot.Objects) != len(writes) {
		t.Fatalf("%d objects, want %d", len(snapshot.Objects), len(writes))
	}
	var changed []store.Write
	var tenant store.Object
	for _, o := range snapshot.Objects {
		w := store.Write{ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: o.Spec, Applied: o.Applied, Address: o.Address, Stack: "other"}
		changed = append(changed, w)
		if o.Addr().String() == "tenant.t7" {
			tenant = o
		}
	}
	timed("update", 10*time.Second, commit(changed))
	tenant.Revision = 2
	timed("rename of a tenant", 2*time.Second, commit([]store.Write{storetest.Next(t, tenant, `{"name":"renamed"}`)}))
	timed("one status", time.Second, func() error {
		return s.SetStatus(t.Context(), tenant.ID, store.Status{Phase: store.Ready}, nil)
	})
	if err := read(); err != nil {
		t.Fatal(err)
	}
	var gone []store.Write
	for _, o := range snapshot.Objects {
		gone = append(gone, store.Write{Op: store.Remove, ID: o.ID, Saw: o.Revision})
	}
	timed("removal", 10*time.Second, commit(gone))
	appendMany(t, s)
}

func appendMany(t *testing.T, s *postgres.Store) {
	t.Helper()
	rows := make([]store.Statement, 10_000)
	for i := range rows {
		rows[i] = store.Statement{ID: fmt.Sprint(i), Tenant: "acme", SQL: "SELECT ?", Status: "ok", Started: time.Now()}
	}
	start := time.Now()
	if err := s.AppendStatements(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	t.Logf("append of %d statements: %s", len(rows), time.Since(start).Round(time.Millisecond))
}

// Two objects may swap their names also where so many others lie between them that no one batch has both.
func TestSwapAcrossBatches(t *testing.T) {
	s := openAt(t, pgtest.Database(t))
	writes := make([]store.Write, 2500)
	for i := range writes {
		writes[i] = storetest.New(t, "tenant", fmt.Sprintf(`{"name":"t%d"}`, i))
	}
	if _, err := s.Commit(t.Context(), store.Change{Writes: writes}); err != nil {
		t.Fatal(err)
	}
	names := func() map[string]store.Object {
		snapshot, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]store.Object{}
		for _, o := range snapshot.Objects {
			all[o.ID] = o
		}
		return all
	}
	before := names()
	last := len(writes) - 1
	again := make([]store.Write, len(writes))
	for i, w := range writes {
		again[i] = storetest.Next(t, before[w.ID], fmt.Sprintf(`{"name":"t%d","display_name":"again"}`, i))
	}
	again[0] = storetest.Next(t, before[writes[0].ID], fmt.Sprintf(`{"name":"t%d"}`, last))
	again[last] = storetest.Next(t, before[writes[last].ID], `{"name":"t0"}`)
	if _, err := s.Commit(t.Context(), store.Change{Writes: again}); err != nil {
		t.Fatal(err)
	}
	after := names()
	for i, w := range writes {
		want := before[w.ID].Addr()
		switch i {
		case 0:
			want = before[writes[last].ID].Addr()
		case last:
			want = before[writes[0].ID].Addr()
		}
		if got := after[w.ID]; got.Addr() != want || got.Generation != 2 {
			t.Fatalf("object %d is %s of generation %d, want %s of 2", i, got.Addr(), got.Generation, want)
		}
	}
}
