package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// outside is a Lifecycle whose world is a set. Its failures are what the tests are about; the real one,
// with Postgres and DuckDB, is in the stories of package test.
type outside struct {
	mu    sync.Mutex
	have  map[string]bool
	fails map[string]error // by name of the object
	calls int
	block chan struct{} // when set, Create waits for it

	running, most int // calls of Create at the same time
}

func (o *outside) Secrets() (map[string][]byte, error) {
	return map[string][]byte{"key": []byte("made-up")}, nil
}

func (o *outside) Create(_ context.Context, object store.Object, secret func(string) ([]byte, error)) error {
	o.enter()
	defer o.leave()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.fails[object.Addr().Name()]; err != nil {
		return err
	}
	if key, err := secret("key"); err != nil || string(key) != "made-up" {
		return errors.Join(errors.New("the secret is not the one that was made"), err)
	}
	o.have[object.ID] = true
	return nil
}

func (o *outside) enter() {
	o.mu.Lock()
	o.calls++
	o.running++
	o.most = max(o.most, o.running)
	block := o.block
	o.mu.Unlock()
	if block != nil {
		<-block
	}
}

func (o *outside) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running--
}

func (o *outside) Delete(_ context.Context, object store.Object) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	if err := o.fails[object.Addr().Name()]; err != nil {
		return err
	}
	delete(o.have, object.ID)
	return nil
}

func (o *outside) Observe(_ context.Context, objects []store.Object) (map[string][]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	missing := map[string][]string{}
	for _, object := range objects {
		if !o.have[object.ID] {
			missing[object.ID] = []string{"its database is missing"}
		}
	}
	return missing, nil
}

type bed struct {
	*engine.Engine
	store   *store.Memory
	outside *outside
	stack   store.Stack
}

func newBed(t *testing.T) *bed {
	t.Helper()
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	memory := store.NewMemory(sealer)
	o := &outside{have: map[string]bool{}, fails: map[string]error{}}
	return &bed{
		Engine: engine.New(engine.Config{
			Store: memory, Nodes: memory, Sealer: sealer, Lifecycles: map[string]engine.Lifecycle{"tenant_db": o},
			Hash:   func(password string) (string, error) { return "$argon2id$v=19$of-" + strings.ToUpper(password), nil },
			Holder: "test", Log: slog.New(slog.DiscardHandler),
		}),
		store: memory, outside: o, stack: store.Stack{Name: "s", Lineage: "lineage"},
	}
}

func object(t *testing.T, kind, address, json string, depends ...string) schema.Object {
	t.Helper()
	k, _ := schema.Lookup(kind)
	v, err := k.Decode([]byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Object{Kind: k, Address: address, Value: v, DependsOn: depends}
}

func estate(t *testing.T) []schema.Object {
	t.Helper()
	return []schema.Object{
		object(t, "tenant", "tenant.acme", `{"name":"acme"}`),
		object(t, "tenant_db", "tenant_db.a", `{"tenant":"acme","name":"a","kind":"ducklake","allow_destroy":true}`, "tenant.acme"),
		object(t, "tenant_db", "tenant_db.b", `{"tenant":"acme","name":"b","kind":"ducklake","allow_destroy":true}`, "tenant.acme"),
		object(t, "pool", "pool.p", `{"tenant":"acme","name":"p","tenant_db":"a"}`, "tenant_db.a"),
		object(t, "user", "user.ana", `{"tenant":"acme","name":"ana","password":"open sesame"}`, "tenant.acme"),
	}
}

func (b *bed) plan(t *testing.T, desired []schema.Object) *engine.Plan {
	t.Helper()
	p, err := b.Plan(t.Context(), b.stack, schema.Desired{Objects: desired}, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bed) commit(t *testing.T, desired []schema.Object) {
	t.Helper()
	if err := b.Commit(t.Context(), b.plan(t, desired), engine.Who{By: "me", From: "here"}, false); err != nil {
		t.Fatal(err)
	}
}

// settle does one pass and returns its error.
func (b *bed) settle(t *testing.T) error {
	t.Helper()
	lease, err := b.store.Acquire(t.Context(), "outside", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	return b.Settle(t.Context(), lease)
}

func messages(p *engine.Plan) []string {
	var out []string
	for _, f := range p.Live {
		out = append(out, f.Addr.String()+": "+f.Message)
	}
	return out
}

func TestOutsideFollowsTheRows(t *testing.T) {
	b := newBed(t)
	b.outside.fails["b"] = errors.New("no room")
	b.commit(t, estate(t))
	want := []string{"tenant_db.acme/a: not provisioned yet", "tenant_db.acme/b: not provisioned yet"}
	if diff := cmp.Diff(want, messages(b.plan(t, estate(t)))); diff != "" {
		t.Error(diff)
	}
	if err := b.settle(t); err == nil || !strings.Contains(err.Error(), "provision tenant_db.acme/b: no room") {
		t.Errorf("got %v", err)
	}
	want = []string{"tenant_db.acme/b: not provisioned yet: no room"}
	if diff := cmp.Diff(want, messages(b.plan(t, estate(t)))); diff != "" {
		t.Errorf("one failing database holds up the other:\n%s", diff)
	}
	delete(b.outside.fails, "b")
	if err := b.settle(t); err != nil {
		t.Error(err)
	}
	if p := b.plan(t, estate(t)); !p.Empty() {
		t.Errorf("the second plan is not empty: %v %v", p.Changes, p.Live)
	}
	before, calls := snapshot(t, b), b.outside.calls
	if err := b.settle(t); err != nil || b.outside.calls != calls || snapshot(t, b).Revision != before.Revision {
		t.Errorf("a pass in the steady state did something: %v", err)
	}
}

func snapshot(t *testing.T, b *bed) *store.Snapshot {
	t.Helper()
	snap, err := b.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestWhatGoesMissingIsMadeAgain(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	if err := b.settle(t); err != nil {
		t.Fatal(err)
	}
	clear(b.outside.have)
	if got := messages(b.plan(t, estate(t))); len(got) != 2 || got[0] != "tenant_db.acme/a: its database is missing" {
		t.Errorf("got %q", got)
	}
	if err := b.settle(t); err != nil || len(b.outside.have) != 2 {
		t.Errorf("%v, have %v", err, b.outside.have)
	}
}

// A database goes after the pool, and the pool's row after its nodes; then one pass is enough for all.
func TestTombstonesWaitForWhatNeedsThem(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	if err := b.settle(t); err != nil {
		t.Fatal(err)
	}
	var pool string
	for _, o := range snapshot(t, b).Objects {
		if o.Kind.Name == "pool" {
			pool = o.ID
		}
	}
	node := store.Node{ID: "n", PoolID: pool}
	if err := b.store.PutNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	b.commit(t, nil)
	left := func() []string {
		if err := b.settle(t); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, o := range snapshot(t, b).Objects {
			out = append(out, o.Addr().String())
		}
		return out
	}
	if diff := cmp.Diff([]string{"tenant_db.acme/a", "pool.acme/p"}, left()); diff != "" {
		t.Errorf("while the node runs:\n%s", diff)
	}
	if err := b.store.RemoveNode(t.Context(), node.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string(nil), left()); diff != "" || len(b.outside.have) != 0 {
		t.Errorf("at the end: %v\n%s", slices.Collect(maps.Keys(b.outside.have)), diff)
	}
}

// A saved plan stores the verifier of a password, and is good once.
func TestSavedPlans(t *testing.T) {
	b := newBed(t)
	raw, err := b.Marshal(b.plan(t, estate(t)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(t.Context(), p, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("$argon2id$v=19$of-OPEN SESAME", verifier(t, b)); diff != "" {
		t.Error(diff)
	}
	again, err := b.Unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(t.Context(), again, engine.Who{}, false); !errors.Is(err, store.ErrPlanUsed) {
		t.Errorf("the second time: %v", err)
	}
	other := newBed(t)
	other.Sealer, err = store.NewSealer(bytes.Repeat([]byte{8}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Unmarshal(raw); err == nil {
		t.Error("the plan opens without the master key that sealed it")
	}
}

func verifier(t *testing.T, b *bed) string {
	t.Helper()
	for key, sealed := range snapshot(t, b).Secrets {
		if key.Attr == "password_verifier" {
			secret, err := b.Sealer.Open(key, sealed)
			if err != nil {
				t.Fatal(err)
			}
			return string(secret)
		}
	}
	return ""
}

func TestAPlanGoesStale(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	changed := estate(t)
	changed[0] = object(t, "tenant", "tenant.acme", `{"name":"acme","display_name":"One"}`)
	stale := b.plan(t, changed)
	b.commit(t, changed)
	changed[0] = object(t, "tenant", "tenant.acme", `{"name":"acme","display_name":"Two"}`)
	var conflict *store.ConflictError
	if err := b.Commit(t.Context(), stale, engine.Who{}, false); !errors.As(err, &conflict) || conflict.Addr.String() != "tenant.acme" {
		t.Errorf("got %v", err)
	}
}
