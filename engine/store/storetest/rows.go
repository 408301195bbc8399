package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

func status(f *fixture) {
	tenant, db, _, _, _, _ := acme(f)
	f.commit(tenant, db)
	planned := Next(f, f.object(db), `{"tenant":"acme","name":"sales","kind":"ducklake","disabled":true}`)
	want := store.Status{Phase: store.Provisioning, Reason: "NoRole", Message: `the "role" is missing`, Generation: 1}
	set := func(id string, s store.Status, l store.Lease) error { return f.Store.SetStatus(f.ctx(), id, s, l) }
	if err := set(db.ID, want, nil); err != nil {
		f.Fatal(err)
	}
	o := f.object(db)
	if o.Status != want || o.Revision != 1 || o.Generation != 1 {
		f.Errorf("after SetStatus: %+v, revision %d, generation %d", o.Status, o.Revision, o.Generation)
	}
	before := f.snapshot()
	if before.Revision != 2 {
		f.Errorf("a new status left the store's revision at %d, want 2", before.Revision)
	}
	if err := set(db.ID, want, nil); err != nil {
		f.Fatal(err)
	}
	f.same(before, f.snapshot())
	if err := set(uuid.NewString(), want, nil); !errors.Is(err, store.ErrNotFound) {
		f.Errorf("status of nothing: got %v, want ErrNotFound", err)
	}
	// A plan made before the status still applies, and keeps the status.
	f.commit(planned)
	if o := f.object(db); o.Status != want || o.Generation != 2 {
		f.Errorf("after the plan: %+v, generation %d", o.Status, o.Generation)
	}
	old, err := f.Store.Acquire(f.ctx(), "act", "one")
	if err != nil {
		f.Fatal(err)
	}
	if err := set(db.ID, store.Status{Phase: store.Ready}, old); err != nil {
		f.Fatal(err)
	}
	old.Release()
	if err := set(db.ID, store.Status{Phase: store.Deleting}, old); !errors.Is(err, store.ErrTermOver) {
		f.Errorf("status under a lost lease: got %v, want ErrTermOver", err)
	}
	if err := set(db.ID, store.Status{Phase: store.Ready}, old); !errors.Is(err, store.ErrTermOver) {
		f.Errorf("equal status under a lost lease: got %v, want ErrTermOver", err)
	}
	if got := f.object(db).Status; got != (store.Status{Phase: store.Ready}) {
		f.Errorf("status is %+v", got)
	}
	asked := store.Status{Restart: store.Restart{ID: uuid.NewString(), At: store.Stamp(time.Now())}}
	if err := set(db.ID, asked, nil); err != nil {
		f.Fatal(err)
	}
	before = f.snapshot()
	if err := set(db.ID, asked, nil); err != nil {
		f.Fatal(err)
	}
	f.same(before, f.snapshot())
	if got := f.object(db).Status; got != asked {
		f.Errorf("status is %+v, want %+v", got, asked)
	}
}

func watch(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	seen, ended := make(chan store.Revision, 100), make(chan error, 1)
	go func() { ended <- f.Store.Watch(ctx, func(r store.Revision) { seen <- r }) }()
	wait := func(step string, want store.Revision, limit time.Duration) {
		f.Helper()
		timeout := time.After(limit)
		for {
			select {
			case got := <-seen:
				if got == want {
					return
				}
			case <-timeout:
				f.Fatalf("%s: revision %d was not seen within %s", step, want, limit)
			}
		}
	}
	wait("at once", 0, patience)
	tenant, db, _, _, _, _ := acme(f)
	wait("commit", f.commit(tenant, db), time.Second)
	if err := f.Nodes.PutNode(f.ctx(), store.Node{ID: "n", PoolID: uuid.NewString(), Started: time.Unix(0, 0)}); err != nil {
		f.Fatal(err)
	}
	wait("node", 2, time.Second)
	if err := f.Store.SetStatus(f.ctx(), db.ID, store.Status{Phase: store.Ready}, nil); err != nil {
		f.Fatal(err)
	}
	wait("status", 3, time.Second)
	select {
	case got := <-seen:
		f.Errorf("revision %d was reported twice, or out of nothing", got)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		f.Errorf("watch ended with %v, want the context's error", err)
	}
}

func lease(f *fixture) {
	start := time.Now().Add(-time.Minute)
	one, err := f.Store.Acquire(f.ctx(), "act", "host-1 (pid 1)")
	if err != nil {
		f.Fatal(err)
	}
	if one.Name() != "act" || one.Term() != 1 {
		f.Errorf("lease %q has term %d, want act and 1", one.Name(), one.Term())
	}
	_, err = f.Store.Acquire(f.ctx(), "act", "host-2")
	var held *store.HeldError
	if !errors.Is(err, store.ErrHeld) || !errors.As(err, &held) {
		f.Fatalf("second holder: got %v, want a HeldError", err)
	}
	if held.Name != "act" || held.Holder != "host-1 (pid 1)" || held.Since.Before(start) || held.Since.After(time.Now().Add(time.Minute)) {
		f.Errorf("held by %+v", held)
	}
	if !strings.Contains(err.Error(), `lease "act" is held by host-1 (pid 1) since 2`) {
		f.Errorf("error text is %q", err)
	}
	other, err := f.Store.Acquire(f.ctx(), "another", "host-2")
	if err != nil {
		f.Fatalf("another lease: %v", err)
	}
	defer other.Release()
	select {
	case <-one.Done():
		f.Error("the lease is done although it is held")
	default:
	}
	one.Release()
	<-one.Done()
	two, err := f.Store.Acquire(f.ctx(), "act", "host-2")
	if err != nil {
		f.Fatalf("after release: %v", err)
	}
	defer two.Release()
	if two.Term() != 2 {
		f.Errorf("second term is %d", two.Term())
	}
	one.Release() // again: must not take the other's away
	if _, err := f.Store.Acquire(f.ctx(), "act", "host-3"); !errors.Is(err, store.ErrHeld) {
		f.Errorf("after a second release of the old lease: got %v, want ErrHeld", err)
	}
}

func leaseOfCommit(f *fixture) {
	commit := func(l store.Lease, name string) error {
		_, err := f.Store.Commit(f.ctx(), store.Change{Writes: []store.Write{New(f, "tenant", `{"name":"`+name+`"}`)}, Lease: l})
		return err
	}
	one, err := f.Store.Acquire(f.ctx(), "act", "one")
	if err != nil {
		f.Fatal(err)
	}
	if err := commit(one, "a"); err != nil {
		f.Errorf("under the lease: %v", err)
	}
	one.Release()
	if err := commit(one, "b"); !errors.Is(err, store.ErrTermOver) {
		f.Errorf("after release: got %v, want ErrTermOver", err)
	}
	two, err := f.Store.Acquire(f.ctx(), "act", "two")
	if err != nil {
		f.Fatal(err)
	}
	defer two.Release()
	if err := commit(stale{two}, "c"); !errors.Is(err, store.ErrTermOver) {
		f.Errorf("with an old term: got %v, want ErrTermOver", err)
	}
	if err := commit(two, "d"); err != nil {
		f.Errorf("under the second lease: %v", err)
	}
	f.wantAddrs("tenant.a", "tenant.d")
}

// stale is a lease whose holder has not noticed that its term is over.
type stale struct{ store.Lease }

func (s stale) Term() int64 { return s.Lease.Term() - 1 }

func nodes(f *fixture) {
	one := store.Node{
		ID: "n1", PoolID: uuid.NewString(), Host: "h", Role: "dual", Endpoint: "unix:/run/x.sock", PID: 4711,
		Started: time.Date(2026, 2, 3, 4, 5, 6, 123456789, time.FixedZone("x", 3600)), SpecHash: "abc", Incarnation: "i", Phase: "ready", Reason: "fine",
	}
	two := store.Node{ID: "n0", PoolID: one.PoolID, Started: time.Unix(1, 0)}
	put := func(n store.Node, want store.Revision) {
		f.Helper()
		if err := f.Nodes.PutNode(f.ctx(), n); err != nil {
			f.Fatal(err)
		}
		if got := f.snapshot().Revision; got != want {
			f.Errorf("revision is %d, want %d", got, want)
		}
	}
	put(one, 1)
	put(two, 2)
	put(one, 2)
	one.Phase, one.PID = "draining", 12
	put(one, 3)
	got, err := f.Nodes.ListNodes(f.ctx())
	if err != nil {
		f.Fatal(err)
	}
	one.Started, two.Started = time.Date(2026, 2, 3, 3, 5, 6, 123456000, time.UTC), two.Started.UTC()
	if diff := cmp.Diff([]store.Node{two, one}, got); diff != "" {
		f.Errorf("nodes (-want +got):\n%s", diff)
	}
	for _, id := range []string{"n1", "n1", "never"} {
		if err := f.Nodes.RemoveNode(f.ctx(), id); err != nil {
			f.Fatal(err)
		}
	}
	if got, _ := f.Nodes.ListNodes(f.ctx()); len(got) != 1 || f.snapshot().Revision != 4 {
		f.Errorf("after removal: %d nodes, revision %d", len(got), f.snapshot().Revision)
	}
}

func keys(f *fixture) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(id int, sealed string, age time.Duration) []store.Key {
		f.Helper()
		all, err := f.Keys.AddKey(f.ctx(), store.Key{ID: id, Sealed: store.Sealed(sealed), Created: at.Add(age)})
		if err != nil {
			f.Fatal(err)
		}
		return all
	}
	add(255, "old", 0)
	add(1, "new", time.Hour)
	got := add(255, "late", 2*time.Hour)
	want := []store.Key{{ID: 1, Sealed: store.Sealed("new"), Created: at.Add(time.Hour)}, {ID: 255, Sealed: store.Sealed("old"), Created: at}}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("keys (-want +got):\n%s", diff)
	}
	listed, err := f.Keys.ListKeys(f.ctx())
	if diff := cmp.Diff(want, listed); err != nil || diff != "" {
		f.Errorf("listed (-want +got), %v:\n%s", err, diff)
	}
	for _, id := range []int{0, 256} {
		if _, err := f.Keys.AddKey(f.ctx(), store.Key{ID: id, Created: at}); err == nil {
			f.Errorf("id %d was accepted", id)
		}
	}
}

func statements(f *fixture) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var rows []store.Statement
	for i, at := range []time.Duration{-time.Microsecond, 0, 23 * time.Hour, 24 * time.Hour} {
		rows = append(rows, store.Statement{
			ID: fmt.Sprintf("s%d", i), Tenant: "acme", Pool: "bi", User: "ana", Node: "n", SQL: "SELECT ?, 'ü\\'", Class: "read",
			Status: "ok", Error: "none", Started: day.Add(at), Duration: 1500 * time.Microsecond, Rows: 7, Bytes: 1 << 40,
		})
	}
	appendAll := func(rows ...store.Statement) {
		f.Helper()
		if err := f.Statements.AppendStatements(f.ctx(), rows); err != nil {
			f.Fatal(err)
		}
	}
	list := func(limit int) []store.Statement {
		f.Helper()
		got, err := f.Statements.ListStatements(f.ctx(), limit)
		if err != nil {
			f.Fatal(err)
		}
		return got
	}
	appendAll()
	appendAll(rows[2], rows[0])
	appendAll(rows[2], rows[1], rows[3])
	appendAll(rows...)
	if diff := cmp.Diff([]store.Statement{rows[3], rows[2], rows[1], rows[0]}, list(10)); diff != "" {
		f.Errorf("statements (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]store.Statement{rows[3], rows[2]}, list(2)); diff != "" {
		f.Errorf("limited (-want +got):\n%s", diff)
	}
	expire := func(before time.Time, want int) {
		f.Helper()
		if err := f.Statements.ExpireStatements(f.ctx(), before); err != nil {
			f.Fatal(err)
		}
		if got := len(list(10)); got != want {
			f.Errorf("%d statements after expiring before %s, want %d", got, before, want)
		}
	}
	expire(day.Add(-time.Second), 4)
	expire(day, 3)
	expire(day.Add(24*time.Hour), 1)
	// An expired day can come back: a late batch.
	appendAll(rows[1])
	if got := len(list(10)); got != 2 {
		f.Errorf("%d statements after a late batch, want 2", got)
	}
}

// ended calls everything with a context that is over.
func ended(f *fixture) {
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	calls := map[string]func() error{
		"Snapshot":  func() error { _, err := f.Store.Snapshot(ctx); return err },
		"Commit":    func() error { _, err := f.Store.Commit(ctx, store.Change{}); return err },
		"SetStatus": func() error { return f.Store.SetStatus(ctx, uuid.NewString(), store.Status{}, nil) },
		"Watch":     func() error { return f.Store.Watch(ctx, func(store.Revision) {}) },
		"Acquire":   func() error { _, err := f.Store.Acquire(ctx, "a", "b"); return err },
		"ListNodes": func() error { _, err := f.Nodes.ListNodes(ctx); return err },
		"PutNode":   func() error { return f.Nodes.PutNode(ctx, store.Node{}) },
		"ListKeys":  func() error { _, err := f.Keys.ListKeys(ctx); return err },
		"AppendStatements": func() error {
			return f.Statements.AppendStatements(ctx, []store.Statement{{ID: "a", Started: time.Now()}})
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			f.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	if got := f.snapshot().Revision; got != 0 {
		f.Errorf("revision is %d", got)
	}
}
