package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/embedded"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// world is everything a command works with, opened.
type world struct {
	*paths
	log   *slog.Logger
	store objects
	plans planner

	sealer *store.Sealer
	nodes  store.Nodes
	engine *engine.Engine

	// server is where all of it is, nil for this host. Then the rest is nil, and what is in it is not on this host.
	server *remote

	// imagined is true where there is no state: an empty store stands for it, and nothing is written.
	imagined bool

	// The rest is nil in an imagined world.
	postgres *postgres.Store
	catalog  *catalog.Catalog
	host     *host
	fleet    *backend.Fleet
	keyring  *wire.Keyring
	hostID   string // under which nodes of this state directory are recorded
	runtime  *nodes
}

// objects are what commands read, and change by themselves.
type objects interface {
	Snapshot(ctx context.Context) (*store.Snapshot, error)
	Commit(ctx context.Context, c store.Change) (store.Revision, error)
}

// planner makes plans and carries them out: the engine on this host, or a server.
type planner interface {
	Plan(ctx context.Context, stack store.Stack, c schema.Desired, o engine.PlanOptions) (*engine.Plan, error)
	Marshal(p *engine.Plan) ([]byte, error)
	Open(ctx context.Context, saved []byte) (*engine.Plan, error)
	Check(ctx context.Context, p *engine.Plan, adopt bool) error
	CarryOut(ctx context.Context, p *engine.Plan, c engine.Carrying) error
	Pending(ctx context.Context, stack string) ([]plan.Finding, error)
}

// here is the engine on this host.
type here struct{ *engine.Engine }

func (h here) Open(_ context.Context, saved []byte) (*engine.Plan, error) { return h.Unmarshal(saved) }

type openOptions struct {
	create bool         // state may be made, and written
	write  bool         // state that exists may be written
	log    *slog.Logger // nil: warnings only
}

func (a *app) open(ctx context.Context, o openOptions) (*world, error) {
	w := &world{paths: a.paths, log: o.log}
	if w.log == nil {
		w.log = a.quiet()
	}
	if a.paths.Server != "" {
		return w, w.reach(a)
	}
	if !o.create && !a.paths.exists() && a.paths.DatabaseURL == "" && !embedded.Exists(w.embedded()) {
		return imagine(w) // a store without its master key is one that is there: openStore says so
	}
	if o.create {
		if err := a.paths.make(); err != nil {
			return nil, err
		}
	}
	err := w.openStore(ctx, o)
	if err == nil {
		err = w.openRuntime(ctx, o.create)
	}
	if err == nil && o.create {
		err = w.firstAdministrator(ctx, a)
	}
	if err == nil {
		return w, nil
	}
	w.Close()
	if !o.create && (errors.Is(err, store.ErrNoState) || errors.Is(err, embedded.ErrAbsent)) {
		return imagine(&world{paths: w.paths, log: w.log})
	}
	return nil, err
}

// openState is open for commands that are of no use where there is no state.
func (a *app) openState(ctx context.Context, o openOptions) (*world, error) {
	w, err := a.open(ctx, o)
	if err != nil {
		return nil, err
	}
	if w.imagined {
		w.Close()
		return nil, errNoState
	}
	return w, nil
}

// openSnapshot is openState for commands that work on what the store has now.
func (a *app) openSnapshot(ctx context.Context, o openOptions) (*world, *store.Snapshot, error) {
	w, err := a.openState(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		w.Close()
		return nil, nil, err
	}
	return w, snap, nil
}

// imagine makes a world in which nothing exists yet.
func imagine(w *world) (*world, error) {
	key := make([]byte, store.MasterKeySize)
	rand.Read(key)
	sealer, err := store.NewSealer(key)
	if err != nil {
		return nil, err
	}
	memory := store.NewMemory(sealer)
	w.imagined, w.sealer, w.store, w.nodes = true, sealer, memory, memory
	w.engine = engine.New(engine.Config{Store: memory, Nodes: memory, Sealer: sealer, Hash: access.Hash, Log: w.log})
	w.plans = here{w.engine}
	return w, nil
}

func (w *world) openStore(ctx context.Context, o openOptions) error {
	fresh := !w.exists()
	key, err := w.masterKey(fresh, o.create)
	if err != nil {
		return err
	}
	if w.sealer, err = store.NewSealer(key); err != nil {
		return err
	}
	url := w.DatabaseURL
	if url == "" {
		if url, err = w.startPostgres(ctx, o.create); err != nil {
			return err
		}
	}
	open := postgres.OpenReadOnly
	if o.create || o.write {
		open = postgres.Open
	}
	if w.postgres, err = open(ctx, postgres.Config{URL: url, Sealer: w.sealer, Log: w.log}); err != nil {
		return err
	}
	if fresh {
		if err := w.newStore(ctx); err != nil {
			return err
		}
	}
	w.store, w.nodes = w.postgres, w.postgres
	if w.host, err = newHost(w.paths, w.log); err != nil {
		return err
	}
	w.catalog, err = catalog.New(catalog.Config{Admin: url, Host: w.host, Log: w.log})
	return err
}

// masterKey returns the master key. Where there is no file and none may be made, a passing one stands for
// it: newStore then sees to it that nothing is opened with it.
func (w *world) masterKey(fresh, create bool) ([]byte, error) {
	if fresh && !create {
		key := make([]byte, store.MasterKeySize)
		rand.Read(key)
		return key, nil
	}
	return masterKey(w.MasterKeyFile, create)
}

// newStore refuses a fresh master key for a store that has secrets already, and takes it back.
func (w *world) newStore(ctx context.Context) error {
	keys, err := w.postgres.ListKeys(ctx)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	if err := os.Remove(w.MasterKeyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("take back the fresh master key: %w", err)
	}
	return fmt.Errorf("the store has secrets, and the master key they are sealed with is not in %s: put the copy there "+
		"that you keep apart, or name its place with QOD_MASTER_KEY_FILE", w.MasterKeyFile)
}

func (w *world) embedded() embedded.Config {
	return embedded.Config{StateDir: w.StateDir, RunDir: w.RunDir, BinDir: w.PostgresBin, Log: w.log}
}

func (w *world) startPostgres(ctx context.Context, create bool) (string, error) {
	cfg := w.embedded()
	cfg.Existing = !create
	server, err := embedded.Start(ctx, cfg)
	if err != nil {
		return "", err
	}
	return server.URL(server.Database)
}

// cluster returns the cluster's keys; the first manager makes one.
func (w *world) cluster(ctx context.Context, create bool) (*wire.Keyring, error) {
	keys, err := store.ClusterKeys(ctx, w.postgres, w.sealer, create)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, store.ErrNoState // the first start ended before it made one
	}
	ring := make([]wire.Key, len(keys))
	for i, k := range keys {
		ring[i] = wire.Key(k)
	}
	return wire.NewKeyring(ring...)
}

// holder names this process to others that wait for what it holds.
func holder() string {
	name, err := os.Hostname()
	if err != nil {
		name = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), name)
}

// Close gives back what the world holds. What it started lives on.
func (w *world) Close() {
	if w.server != nil {
		w.server.client.Close()
	}
	if w.runtime != nil {
		if err := w.runtime.Close(); err != nil {
			w.log.Warn("close", "error", err)
		}
	}
	if w.postgres != nil {
		w.postgres.Close()
	}
}
