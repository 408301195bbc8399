package matrix

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

// world is a store in Postgres, the catalog of its lakes and the nodes of this host: the real ones, behind
// wrappers that count what changes them and answer in shuffled order.
type world struct {
	t       *testing.T
	store   *postgres.Store
	engine  *engine.Engine
	catalog *catalog.Catalog
	backend *counted
	sealer  *store.Sealer
	keyring *wire.Keyring
	url     string
	changes atomic.Int64 // calls that may change something outside of the store
	order   *order       // in which everything answers
	nodes   *nodes
	conn    *pgx.Conn
	dir     string // of all that is made on this host
	// extensions is a copy: nodes have a user id of their own, which may not see the tree.
	extensions string
}

func newWorld(t *testing.T, parallelism int, seed uint64) *world {
	t.Helper()
	w := &world{t: t, url: pgtest.Database(t), order: &order{seed: seed}}
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
	local := w.newBackend()
	w.backend = &counted{Backend: local, changes: &w.changes, order: w.order}
	if w.catalog, err = catalog.New(catalog.Config{Admin: w.url, Host: host{local, w.extensions}, Log: quiet}); err != nil {
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
	shuffled := &shuffledStore{w.store, w.order}
	w.nodes = &nodes{world: w, store: shuffled, right: make(chan struct{})}
	close(w.nodes.right)
	w.engine = engine.New(engine.Config{
		Store: shuffled, Nodes: shuffled, Sealer: w.sealer, Runtime: w.nodes, Hash: access.Hash, Holder: t.Name(),
		Lifecycles:  map[string]engine.Lifecycle{"tenant_db": &countedLakes{w.catalog, &w.changes}},
		Parallelism: parallelism, DrainLimit: drainLimit, Log: quiet,
	})
	return w
}

// drainLimit is never reached: nobody works on these nodes.
const drainLimit = 10 * time.Second

// newBackend runs nodes and makes lakes with the binary under test.
func (w *world) newBackend() *local.Backend {
	t := w.t
	var err error
	if w.dir, err = os.MkdirTemp("", "qodmx"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(w.dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(w.dir, 0o711); err != nil {
		t.Fatal(err)
	}
	w.extensions = filepath.Join(w.dir, "extensions")
	if err := os.CopyFS(w.extensions, os.DirFS(needed(t, "QOD_TEST_EXTENSION_DIR"))); err != nil {
		t.Fatal(err)
	}
	b, err := local.New(local.Config{
		StateDir: filepath.Join(w.dir, "state"), RunDir: filepath.Join(w.dir, "run"), DataRoot: filepath.Join(w.dir, "data"),
		Binary: needed(t, "QOD_TEST_BINARY"), DrainLimit: drainLimit,
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
		ExtensionDir: w.extensions, Live: backend.Live{MaxConcurrent: p.MaxConcurrentPerNode},
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
