package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// Memory and threads of the process that creates a lake.
const (
	initMemory  = 256 << 20
	initThreads = 1
)

// host is this machine as the catalog sees it: where lakes have their data.
type host struct {
	*local.Backend
	extensions string
}

func newHost(p *paths, log *slog.Logger) (*host, error) {
	b, err := p.newBackend(log)
	if err != nil {
		return nil, err
	}
	return &host{Backend: b, extensions: p.ExtensionDir}, nil
}

func (p *paths) newBackend(log *slog.Logger) (*local.Backend, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own binary: %w", err)
	}
	return local.New(local.Config{
		StateDir: p.StateDir, RunDir: p.RunDir, Binary: binary, DataRoot: p.DataRoot, UIDBase: p.NodeUIDBase,
		DrainLimit: p.drainLimit(), Log: log,
	})
}

// InitLake implements catalog.Host.
func (h *host) InitLake(ctx context.Context, lake catalog.Lake) error {
	return h.Backend.InitLake(ctx, wire.LakeTask{
		Lake: wire.Lake(lake), ExtensionDir: h.extensions, MemoryBytes: initMemory, Threads: initThreads,
	})
}

// DataExists implements catalog.Host.
func (h *host) DataExists(_ context.Context, databaseID string) (bool, error) {
	return h.Backend.DataExists(databaseID)
}

// lake returns how the lake of a tenant_db is attached, with the password of its role.
func (w *world) lake(snap *store.Snapshot, o store.Object) (wire.Lake, error) {
	key := store.SecretKey{Object: o.ID, Attr: catalog.PasswordAttr}
	password, err := w.sealer.Open(key, snap.Secrets[key])
	if err != nil {
		return wire.Lake{}, fmt.Errorf("%s: %w", o.Addr(), err)
	}
	lake, err := w.catalog.LakeOf(o, password)
	return wire.Lake(lake), err
}

// spec says how to run a node of a pool.
func (w *world) spec(snap *store.Snapshot, pool store.Object, role backend.Role) (backend.Spec, error) {
	v, err := pool.Complete()
	if err != nil {
		return backend.Spec{}, err
	}
	p, err := schema.As[schema.Pool](v)
	if err != nil {
		return backend.Spec{}, fmt.Errorf("read %s: %w", pool.Addr(), err)
	}
	db, err := database(snap, pool)
	if err != nil {
		return backend.Spec{}, err
	}
	lake, err := w.lake(snap, db)
	if err != nil {
		return backend.Spec{}, err
	}
	keys, err := w.keyring.Pool(pool.ID)
	if err != nil {
		return backend.Spec{}, err
	}
	out := backend.Spec{
		PoolID: pool.ID, Role: role, Threads: p.Threads, ExtensionDir: w.ExtensionDir,
		Lake: backend.Lake{
			Name: lake.Name, DatabaseID: lake.DatabaseID, DefaultSchema: lake.DefaultSchema, DataPath: lake.DataPath,
			Host: lake.Host, Port: lake.Port, Database: lake.Database, User: lake.User, Password: lake.Password,
			PasswordPrint: w.sealer.Fingerprint(store.SecretKey{Object: db.ID, Attr: catalog.PasswordAttr}, []byte(lake.Password)),
		},
	}
	if at := pool.Status.Restart.At; !at.IsZero() {
		out.Restart = at.Format(time.RFC3339Nano)
	}
	for _, o := range []store.Object{pool, db} {
		out.Sensitive = append(out.Sensitive, o.Sensitive...)
	}
	for _, k := range keys.Keys() {
		out.PoolKeys = append(out.PoolKeys, backend.PoolKey{ID: k.ID, Key: k.Key})
	}
	return out, limits(&out, p)
}

// limits fills in what the pool's attributes say as text. They have passed the kind's checks.
func limits(out *backend.Spec, p schema.Pool) error {
	var err error
	if out.MemoryBytes, err = schema.Bytes(p.Memory); err != nil {
		return err
	}
	out.Live.MaxConcurrent = p.MaxConcurrentPerNode
	if out.Live.StatementTimeout, err = schema.Duration(p.StatementTimeout); err != nil {
		return err
	}
	out.Live.SessionIdleTimeout, err = schema.Duration(p.SessionIdleTimeout)
	return err
}

// database returns the tenant_db that a pool serves.
func database(snap *store.Snapshot, pool store.Object) (store.Object, error) {
	for _, ref := range pool.Kind.Refs(pool.Spec) {
		for _, o := range snap.Objects {
			if ref.Attr == "tenant_db" && o.Addr() == ref.To && !o.Tombstone {
				return o, nil
			}
		}
	}
	return store.Object{}, fmt.Errorf("%s has no database", pool.Addr())
}
