package matrix

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/reconcile"
	"github.com/qod-io/qod/runtime/wire"
)

// nodes are those of this host as the engine knows them. As in each run of qod apply, a loop acts on them
// while a change converges, and nothing acts between two applies.
type nodes struct {
	*world
	store *shuffledStore
	right chan struct{} // closed: this process may act
	loop  *reconcile.Loop
	end   func()
}

func (n *nodes) newLoop() (*reconcile.Loop, error) {
	return reconcile.New(reconcile.Config{
		Backend: n.backend, Store: n.store, Nodes: n.store, Fleet: &backend.Fleet{},
		Keys: func() *wire.Keyring { return n.keyring }, Spec: n.spec, Host: "matrix", Acting: n.right,
		DrainLimit: drainLimit, StopGrace: drainLimit,
	})
}

func (n *nodes) Step(ctx context.Context) error {
	if n.loop == nil {
		loop, err := n.newLoop()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- loop.Run(ctx) }()
		n.loop, n.end = loop, func() { cancel(); <-done }
	}
	return nil
}

// rest ends the loop. Nodes live on.
func (n *nodes) rest() {
	if n.loop != nil {
		n.end()
		n.loop = nil
	}
}

func (n *nodes) Missing(ctx context.Context, snap *store.Snapshot) (map[string]string, error) {
	loop := n.loop
	if loop == nil {
		var err error
		if loop, err = n.newLoop(); err != nil {
			return nil, err
		}
	}
	states, err := loop.Observe(ctx, snap)
	missing := map[string]string{}
	for id, s := range states {
		if !s.Converged {
			missing[id] = s.Message
		}
	}
	return missing, err
}

// Load says that no node has work: nobody connects in these tests.
func (n *nodes) Load(context.Context) (map[string]engine.Load, error) {
	return map[string]engine.Load{}, nil
}

func (n *nodes) Held() error { return nil }

// host makes lakes with the binary under test.
type host struct {
	*local.Backend
	extensions string
}

func (h host) InitLake(ctx context.Context, lake catalog.Lake) error {
	return h.Backend.InitLake(ctx, wire.LakeTask{
		Lake: wire.Lake(lake), ExtensionDir: h.extensions, MemoryBytes: 256 << 20, Threads: 1,
	})
}

func (h host) DataExists(_ context.Context, databaseID string) (bool, error) {
	return h.Backend.DataExists(databaseID)
}

// order is the order in which stores and backends answer: as they like to, or shuffled. Nothing may depend
// on it.
type order struct {
	seed  uint64 // 0: as they like to
	drawn atomic.Uint64
}

func shuffled[T any](o *order, list []T) []T {
	if o.seed == 0 {
		return list
	}
	out := append([]T(nil), list...)
	random := rand.New(rand.NewPCG(o.seed, o.drawn.Add(1)))
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// counted is a backend that counts what changes it.
type counted struct {
	backend.Backend
	changes *atomic.Int64
	order   *order
}

func (c *counted) List(ctx context.Context) ([]backend.Node, error) {
	list, err := c.Backend.List(ctx)
	return shuffled(c.order, list), err
}

func (c *counted) Start(ctx context.Context, id string, spec backend.Spec) (backend.Node, error) {
	c.changes.Add(1)
	return c.Backend.Start(ctx, id, spec)
}

func (c *counted) Stop(ctx context.Context, id string, grace time.Duration) error {
	c.changes.Add(1)
	return c.Backend.Stop(ctx, id, grace)
}

// countedLakes is a catalog that counts what changes it.
type countedLakes struct {
	*catalog.Catalog
	changes *atomic.Int64
}

func (c *countedLakes) Create(ctx context.Context, o store.Object, secret func(string) ([]byte, error)) error {
	c.changes.Add(1)
	return c.Catalog.Create(ctx, o, secret)
}

func (c *countedLakes) Delete(ctx context.Context, o store.Object) error {
	c.changes.Add(1)
	return c.Catalog.Delete(ctx, o)
}

// shuffledStore answers in any order.
type shuffledStore struct {
	*postgres.Store
	order *order
}

func (s *shuffledStore) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	out := *snap
	out.Objects = shuffled(s.order, snap.Objects)
	return &out, nil
}

func (s *shuffledStore) ListNodes(ctx context.Context) ([]store.Node, error) {
	list, err := s.Store.ListNodes(ctx)
	return shuffled(s.order, list), err
}
