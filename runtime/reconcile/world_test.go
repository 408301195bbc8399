package reconcile

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// fakeNode is a node in memory.
type fakeNode struct {
	node     backend.Node
	readyAt  time.Time
	status   wire.Status
	hang     bool
	keys     []wire.Key
	live     wire.Live
	settings int // calls of Configure and SetKeys
	drains   int
}

// fakeWorld is a Backend and its nodes in memory, for bubbles of fake time.
type fakeWorld struct {
	t     *testing.T
	store *store.Memory
	host  string

	mu      sync.Mutex
	nodes   map[string]*fakeNode
	exits   chan string
	ready   time.Duration // from start until a node is ready
	crash   time.Duration // from start until a node ends; 0: it lives
	hangFor string        // a pool whose starts never return
	listErr error
	starts  map[string][]time.Time // by pool
	stops   int
}

func newFakeWorld(t *testing.T) *fakeWorld {
	return &fakeWorld{
		t: t, store: store.NewMemory(nil), host: "here", nodes: map[string]*fakeNode{},
		exits: make(chan string, 64), ready: time.Second, starts: map[string][]time.Time{},
	}
}

// List implements backend.Backend.
func (w *fakeWorld) List(context.Context) ([]backend.Node, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var nodes []backend.Node
	for _, n := range w.nodes {
		nodes = append(nodes, n.node)
	}
	return nodes, w.listErr
}

// Start implements backend.Backend.
func (w *fakeWorld) Start(ctx context.Context, id string, spec backend.Spec) (backend.Node, error) {
	if spec.PoolID == w.hangFor {
		<-ctx.Done()
		return backend.Node{}, ctx.Err()
	}
	rows, err := w.store.ListNodes(ctx)
	if err != nil {
		return backend.Node{}, err
	}
	intent := false
	for _, r := range rows {
		intent = intent || r.ID == id && r.Phase == string(backend.Starting) && r.Host == w.host
	}
	if !intent {
		w.t.Errorf("node %s is started without a row that says so", id)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts[spec.PoolID] = append(w.starts[spec.PoolID], time.Now())
	keys := make([]wire.Key, len(spec.PoolKeys))
	for i, k := range spec.PoolKeys {
		keys[i] = wire.Key(k)
	}
	n := &fakeNode{
		node: backend.Node{
			ID: id, PoolID: spec.PoolID, Role: spec.Role, Endpoint: id, PID: 100 + len(w.nodes), Started: time.Now(),
			SpecHash: spec.Hash(), Parts: spec.Parts(),
		},
		readyAt: time.Now().Add(w.ready), keys: keys, live: wire.Live(spec.Live),
	}
	n.status = wire.Status{
		Version: wire.Version, ID: id, PoolID: spec.PoolID, Incarnation: uuid.NewString(), SpecHash: spec.Hash(),
		Role: string(spec.Role), PID: n.node.PID, Ready: true,
	}
	w.nodes[id] = n
	if w.crash > 0 {
		time.AfterFunc(w.crash, func() { w.kill(id, "crashed") })
	}
	return n.node, nil
}

// Stop implements backend.Backend.
func (w *fakeWorld) Stop(_ context.Context, id string, _ time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stops++
	delete(w.nodes, id)
	return nil
}

// Exits implements backend.Backend.
func (w *fakeWorld) Exits(ctx context.Context, exited func(string)) error {
	for {
		select {
		case id := <-w.exits:
			exited(id)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *fakeWorld) kill(id, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.nodes[id]; n != nil && !n.node.Exited {
		n.node.Exited, n.node.Reason = true, reason
		w.exits <- id
	}
}

// change changes a node under the lock.
func (w *fakeWorld) change(id string, do func(*fakeNode)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[id] == nil {
		w.t.Fatalf("node %s is gone", id)
	}
	do(w.nodes[id])
}

// ids lists the nodes that run.
func (w *fakeWorld) ids() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []string
	for id, n := range w.nodes {
		if !n.node.Exited {
			ids = append(ids, id)
		}
	}
	return ids
}

// told counts what all nodes were told.
func (w *fakeWorld) told() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, node := range w.nodes {
		n += node.settings + node.drains
	}
	return n
}

func (w *fakeWorld) started(pool string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.starts[pool])
}

// fakeConn calls a fakeNode.
type fakeConn struct {
	w    *fakeWorld
	id   string
	pool *wire.Keyring
}

func (w *fakeWorld) dial(endpoint string) (nodeConn, error) { return fakeConn{w: w, id: endpoint}, nil }

func (c fakeConn) Close() error { return nil }

func (c fakeConn) client(pool *wire.Keyring) nodeClient { c.pool = pool; return c }

// call does something on the node if it can be reached.
func (c fakeConn) call(ctx context.Context, do func(*fakeNode)) error {
	c.w.mu.Lock()
	n := c.w.nodes[c.id]
	hang := n != nil && n.hang
	c.w.mu.Unlock()
	if hang {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if n == nil || n.node.Exited {
		return status.Error(codes.Unavailable, "connection refused")
	}
	sealed, err := c.pool.Seal(wire.PurposeAssertion, wire.Assertion{Manager: true})
	if err != nil {
		return err
	}
	own, err := wire.NewKeyring(n.keys...)
	if err != nil {
		return err
	}
	if err := own.Open(wire.PurposeAssertion, sealed, &wire.Assertion{}); err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	do(n)
	return nil
}

func (c fakeConn) Status(ctx context.Context) (s wire.Status, err error) {
	err = c.call(ctx, func(n *fakeNode) {
		s = n.status
		s.Ready = s.Ready && !time.Now().Before(n.readyAt)
	})
	return s, err
}

func (c fakeConn) Configure(ctx context.Context, live wire.Live) error {
	return c.call(ctx, func(n *fakeNode) { n.live = live; n.settings++ })
}

func (c fakeConn) SetKeys(ctx context.Context, keys []wire.Key) error {
	return c.call(ctx, func(n *fakeNode) { n.keys = keys; n.settings++ })
}

func (c fakeConn) Drain(ctx context.Context) error {
	return c.call(ctx, func(n *fakeNode) { n.status.Draining = true; n.drains++ })
}

// desk is a store with the objects that tests change, and a Loop's configuration over it.
type desk struct {
	t     *testing.T
	store *store.Memory

	mu   sync.Mutex
	keys *wire.Keyring
}

func clusterKey(id int) wire.Key {
	return wire.Key{ID: id, Key: bytes.Repeat([]byte{byte(id)}, wire.KeySize)}
}

// newDesk commits the tenant acme and its database sales.
func newDesk(t *testing.T, s *store.Memory) *desk {
	t.Helper()
	d := &desk{t: t, store: s}
	d.rotate(clusterKey(1))
	d.put("tenant", nil)
	db := d.put("tenant_db", map[string]cty.Value{"kind": cty.StringVal("ducklake")})
	if err := s.SetStatus(t.Context(), db, store.Status{Phase: store.Ready}, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) rotate(keys ...wire.Key) {
	d.t.Helper()
	ring, err := wire.NewKeyring(keys...)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.keys = ring
}

func (d *desk) ring() *wire.Keyring {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys
}

func (d *desk) names(kind string) map[string]cty.Value {
	switch kind {
	case "tenant":
		return map[string]cty.Value{"name": cty.StringVal("acme")}
	case "tenant_db":
		return map[string]cty.Value{"name": cty.StringVal("sales"), "tenant": cty.StringVal("acme")}
	}
	return map[string]cty.Value{
		"name": cty.StringVal("bi"), "tenant": cty.StringVal("acme"), "tenant_db": cty.StringVal("sales"),
	}
}

// find returns the object of a kind that has the name.
func (d *desk) find(kind, name string) (store.Object, bool) {
	d.t.Helper()
	s, err := d.store.Snapshot(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, o := range s.Objects {
		if o.Kind.Name == kind && o.Addr().Name() == name && !o.Tombstone {
			return o, true
		}
	}
	return store.Object{}, false
}

// put creates or replaces the object of a kind with the usual names and these attributes.
func (d *desk) put(kind string, attrs map[string]cty.Value) (id string) {
	d.t.Helper()
	k, _ := schema.Lookup(kind)
	all := k.Empty().AsValueMap()
	for name, v := range d.names(kind) {
		all[name] = v
	}
	for name, v := range attrs {
		all[name] = v
	}
	w := store.Write{Op: store.Put, ID: uuid.NewString(), Kind: k, Spec: cty.ObjectVal(all), Applied: cty.NilVal}
	if o, ok := d.find(kind, all["name"].AsString()); ok {
		w.ID, w.Saw = o.ID, o.Revision
	}
	if _, err := d.store.Commit(context.Background(), store.Change{Writes: []store.Write{w}}); err != nil {
		d.t.Fatal(err)
	}
	return w.ID
}

func (d *desk) bury(kind, name string) {
	d.t.Helper()
	o, ok := d.find(kind, name)
	if !ok {
		d.t.Fatalf("no %s %s", kind, name)
	}
	w := store.Write{Op: store.Bury, ID: o.ID, Kind: o.Kind, Saw: o.Revision}
	if _, err := d.store.Commit(context.Background(), store.Change{Writes: []store.Write{w}}); err != nil {
		d.t.Fatal(err)
	}
}

// dual returns the attributes of a pool with n dual nodes.
func dual(n int64) map[string]cty.Value {
	return map[string]cty.Value{"nodes": cty.ObjectVal(map[string]cty.Value{
		"dual": cty.NumberIntVal(n), "read": cty.NullVal(cty.Number), "write": cty.NullVal(cty.Number),
	})}
}

func plus(attrs map[string]cty.Value, name string, v cty.Value) map[string]cty.Value {
	attrs[name] = v
	return attrs
}

// spec derives a node's spec from what the pool says.
func (d *desk) spec(_ *store.Snapshot, o store.Object, role backend.Role) (backend.Spec, error) {
	p, err := read[schema.Pool](o)
	if err != nil {
		return backend.Spec{}, err
	}
	if p.Threads == 13 {
		return backend.Spec{}, errors.New("no luck")
	}
	ring, err := d.ring().Pool(o.ID)
	if err != nil {
		return backend.Spec{}, err
	}
	s := backend.Spec{
		PoolID: o.ID, Role: role, Threads: p.Threads, Live: backend.Live{MaxConcurrent: p.MaxConcurrentPerNode},
	}
	for _, k := range ring.Keys() {
		s.PoolKeys = append(s.PoolKeys, backend.PoolKey(k))
	}
	return s, nil
}

func acts() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func (d *desk) config(b backend.Backend, host string, acting <-chan struct{}) Config {
	return Config{
		Backend: b, Store: d.store, Nodes: d.store, Fleet: &backend.Fleet{}, Keys: d.ring, Spec: d.spec, Host: host,
		Acting: acting, Log: testLog(d.t),
	}
}
