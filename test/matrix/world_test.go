package matrix

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/reconcile"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

// world is a store in Postgres, the catalog of its lakes and the nodes of this host: the real ones, behind
// wrappers that count what changes them and answer in shuffled order.
type world struct {
	t        *testing.T
	store    *postgres.Store
	engine   *engine.Engine
	catalog  *catalog.Catalog
	backend  *counted
	sealer   *store.Sealer
	keyring  *wire.Keyring
	url      string
	changes  atomic.Int64 // calls that may change something outside of the store
	shuffled *rand.Rand   // nil: in order
	stop     func()
}

func newWorld(t *testing.T, parallelism int, seed uint64) *world {
	t.Helper()
	w := &world{t: t, url: pgtest.Database(t)}
	if seed != 0 {
		w.shuffled = rand.New(rand.NewPCG(seed, 4))
	}
	key := make([]byte, store.MasterKeySize)
	for i := range key {
		key[i] = byte(seed) + byte(i)
	}
	var err error
	if w.sealer, err = store.NewSealer(key); err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	if w.store, err = postgres.Open(t.Context(), postgres.Config{URL: w.url, Sealer: w.sealer, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	local := newBackend(t)
	w.backend = &counted{Backend: local, changes: &w.changes}
	if w.catalog, err = catalog.New(catalog.Config{Admin: w.url, Host: host{local}, Log: quiet}); err != nil {
		t.Fatal(err)
	}
	cluster, err := store.ClusterKeys(t.Context(), w.store, w.sealer, true)
	if err != nil {
		t.Fatal(err)
	}
	var ring []wire.Key
	for _, k := range cluster {
		ring = append(ring, wire.Key(k))
	}
	if w.keyring, err = wire.NewKeyring(ring...); err != nil {
		t.Fatal(err)
	}
	shuffled := &shuffledStore{Store: w.store, random: w.shuffled}
	w.engine = engine.New(engine.Config{
		Store: shuffled, Nodes: w.store, Sealer: w.sealer, Lifecycles: map[string]engine.Lifecycle{"tenant_db": &countedLakes{w.catalog, &w.changes}},
		Runtime: w.startLoop(shuffled), Hash: access.Hash, Holder: t.Name(), Log: quiet, Parallelism: parallelism,
	})
	return w
}

// newBackend runs nodes and makes lakes with the binary under test.
func newBackend(t *testing.T) *local.Backend {
	t.Helper()
	dir, err := os.MkdirTemp("", "qodmx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	b, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), DataRoot: filepath.Join(dir, "data"),
		Binary: needed(t, "QOD_TEST_BINARY"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// needed returns a variable that `make test` sets.
func needed(t *testing.T, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run the tests by make test, which fetches what they need", name)
	}
	return v
}

// startLoop runs the nodes until the test ends.
func (w *world) startLoop(s store.Store) engine.Runtime {
	acting := make(chan struct{})
	close(acting)
	loop, err := reconcile.New(reconcile.Config{
		Backend: w.backend, Store: s, Nodes: w.store, Fleet: &backend.Fleet{}, Keys: func() *wire.Keyring { return w.keyring },
		Spec: w.spec, Host: "matrix", Acting: acting, DrainLimit: time.Second, StopGrace: 2 * time.Second,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	return &pools{loop}
}

// spec says how to run a node of a pool, as qod does.
func (w *world) spec(snap *store.Snapshot, pool store.Object, role backend.Role) (backend.Spec, error) {
	v, err := pool.Complete()
	if err != nil {
		return backend.Spec{}, err
	}
	p, err := schema.As[schema.Pool](v)
	if err != nil {
		return backend.Spec{}, err
	}
	memory, err := schema.Bytes(p.Memory)
	if err != nil {
		return backend.Spec{}, err
	}
	out := backend.Spec{
		PoolID: pool.ID, Role: role, Threads: p.Threads, MemoryBytes: memory,
		ExtensionDir: os.Getenv("QOD_TEST_EXTENSION_DIR"), Live: backend.Live{MaxConcurrent: p.MaxConcurrentPerNode},
	}
	for _, o := range snap.Objects {
		if o.Tombstone || o.Addr() != schema.NewAddr("tenant_db", p.Tenant, p.TenantDB) {
			continue
		}
		key := store.SecretKey{Object: o.ID, Attr: catalog.PasswordAttr}
		password, err := w.sealer.Open(key, snap.Secrets[key])
		if err != nil {
			return out, err
		}
		lake, err := w.catalog.LakeOf(o, password)
		if err != nil {
			return out, err
		}
		out.Lake = backend.Lake{
			Name: lake.Name, DatabaseID: lake.DatabaseID, DefaultSchema: lake.DefaultSchema, DataPath: lake.DataPath, Host: lake.Host,
			Port: lake.Port, Database: lake.Database, User: lake.User, Password: lake.Password,
			PasswordPrint: w.sealer.Fingerprint(key, password),
		}
	}
	keys, err := w.keyring.Pool(pool.ID)
	if err != nil {
		return out, err
	}
	for _, k := range keys.Keys() {
		out.PoolKeys = append(out.PoolKeys, backend.PoolKey{ID: k.ID, Key: k.Key})
	}
	return out, nil
}

// pools is the loop as the engine knows it.
type pools struct{ loop *reconcile.Loop }

func (p *pools) Step(context.Context) error { return nil }

func (p *pools) Missing(ctx context.Context, snap *store.Snapshot) (map[string]string, error) {
	states, err := p.loop.Observe(ctx, snap)
	missing := map[string]string{}
	for id, s := range states {
		if !s.Converged {
			missing[id] = s.Message
		}
	}
	return missing, err
}

// host makes lakes with the binary under test.
type host struct{ *local.Backend }

func (h host) InitLake(ctx context.Context, lake catalog.Lake) error {
	return h.Backend.InitLake(ctx, wire.LakeTask{
		Lake: wire.Lake(lake), ExtensionDir: os.Getenv("QOD_TEST_EXTENSION_DIR"), MemoryBytes: 256 << 20, Threads: 1,
	})
}

func (h host) DataExists(_ context.Context, databaseID string) (bool, error) {
	return h.Backend.DataExists(databaseID)
}

// counted is a backend that counts what changes it.
type counted struct {
	backend.Backend
	changes *atomic.Int64
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

// shuffledStore answers in any order: nothing may depend on it.
type shuffledStore struct {
	store.Store
	random *rand.Rand
}

func (s *shuffledStore) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	if err == nil && s.random != nil {
		out := *snap
		out.Objects = append([]store.Object(nil), snap.Objects...)
		random := rand.New(rand.NewPCG(uint64(snap.Revision), 5)) // snapshots are read in parallel
		random.Shuffle(len(out.Objects), func(i, j int) { out.Objects[i], out.Objects[j] = out.Objects[j], out.Objects[i] })
		snap = &out
	}
	return snap, err
}

func newID() string { return uuid.NewString() }
