package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/reconcile"
	"github.com/qod-io/qod/runtime/wire"
)

// openRuntime wires the engine with the outside: the catalog of lakes, and the nodes of this host.
func (w *world) openRuntime(ctx context.Context, create bool) error {
	var err error
	if w.keyring, err = w.cluster(ctx, create); err != nil {
		return err
	}
	if w.hostID, err = hostID(w.in("host.id"), create); err != nil {
		return err
	}
	w.fleet = &backend.Fleet{}
	w.runtime = &nodes{world: w, right: make(chan struct{})}
	w.engine = engine.New(engine.Config{
		Store: w.postgres, Nodes: w.nodes, Sealer: w.sealer, Lifecycles: map[string]engine.Lifecycle{lakes: w.catalog},
		Runtime: w.runtime, Insight: w.catalog, Hash: access.Hash, Holder: holder(), DrainLimit: w.drainLimit(), Log: w.log,
	})
	w.plans = here{w.engine}
	return nil
}

// lakes is the kind whose outside the catalog is.
const lakes = "tenant_db"

var _ engine.Lifecycle = (*catalog.Catalog)(nil)

// nodes are those of this host, and this process's right to act on them.
type nodes struct {
	*world
	lock  *local.Lock
	right chan struct{} // closed once this process may act
	held  error         // who may act instead, as of the last try

	loop    *reconcile.Loop // runs while this process converges or serves
	serving bool            // runs, and the right to act is taken, by a serve
	stop    func() error
}

func (n *nodes) acting() bool {
	select {
	case <-n.right:
		return true
	default:
		return false
	}
}

// takeRight takes the right to act if nobody else has it.
func (n *nodes) takeRight() error {
	if n.acting() {
		return nil
	}
	lock, err := local.TryLock(n.StateDir)
	n.held = nil
	if errors.Is(err, local.ErrHeld) {
		n.held = err
		return nil
	}
	if err != nil {
		return err
	}
	n.lock = lock
	close(n.right)
	return nil
}

// waitForRight takes the right to act as soon as its holder is gone, and keeps it until ctx ends.
func (n *nodes) waitForRight(ctx context.Context) error {
	lock, err := local.WaitLock(ctx, n.StateDir)
	if err != nil {
		return err
	}
	n.lock = lock
	close(n.right)
	<-ctx.Done()
	return ctx.Err()
}

// newLoop returns the loop over this host's nodes.
func (n *nodes) newLoop(r prometheus.Registerer, log *slog.Logger) (*reconcile.Loop, error) {
	return reconcile.New(reconcile.Config{
		Backend: n.host.Backend, Store: n.postgres, Nodes: n.nodes, Fleet: n.fleet, Keys: func() *wire.Keyring { return n.keyring },
		Spec: n.spec, Host: n.hostID, Acting: n.right, Registerer: r, Log: log,
		ReconcileInterval: time.Duration(n.ReconcileSec) * time.Second, ProbeInterval: time.Duration(n.HealthCheckSec) * time.Second,
		DrainLimit: n.drainLimit(), StopGrace: n.drainLimit() + stopGrace,
	})
}

// stopGrace is what a node that was told to stop has beyond its own drain limit before it is killed.
const stopGrace = 5 * time.Second

// hostID returns the name under which this state directory's nodes are recorded. It is kept with them: a
// host may get another name.
func hostID(file string, create bool) (string, error) {
	if create {
		if err := writeSecretFile(file, uuid.NewString()); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("name this host: %w", err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("name this host: %w", err)
	}
	return string(raw), nil
}

// Step implements engine.Runtime. Its first call starts the loop, which acts if nobody else does. In a serve that loop
// runs already, and waits for the right to act.
func (n *nodes) Step(ctx context.Context) error {
	if n.serving {
		return nil
	}
	if err := n.takeRight(); err != nil {
		return err
	}
	if n.loop != nil {
		return nil
	}
	return n.start(ctx)
}

func (n *nodes) start(ctx context.Context) error {
	loop, err := n.newLoop(nil, nil) // what goes wrong is in its report, which Converge prints
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	n.loop = loop
	n.stop = func() error { cancel(); return <-done }
	return nil
}

// Missing implements engine.Runtime. What is missing is looked at afresh; why, the loop that runs knows
// better: it remembers what has failed.
func (n *nodes) Missing(ctx context.Context, snap *store.Snapshot) (map[string]string, error) {
	loop := n.loop
	if loop == nil {
		var err error
		if loop, err = n.newLoop(nil, nil); err != nil {
			return nil, err
		}
	}
	states, err := loop.Observe(ctx, snap)
	if err != nil {
		return nil, err
	}
	missing := map[string]string{}
	for id, s := range states {
		if !s.Converged {
			missing[id] = s.Message
		}
	}
	if report, ok := loop.Report(); ok {
		for _, s := range report.Pools {
			if _, lacks := missing[s.ID]; lacks && !s.Converged {
				missing[s.ID] = s.Message
			}
		}
	}
	return missing, nil
}

// Held implements engine.Runtime.
func (n *nodes) Held() error { return n.held }

// Load implements engine.Runtime.
func (n *nodes) Load(ctx context.Context) (map[string]engine.Load, error) {
	rows, err := n.nodes.ListNodes(ctx)
	if err != nil {
		return nil, err
	}
	reports := n.askNodes(ctx, rows)
	loads := map[string]engine.Load{}
	for _, row := range rows {
		if row.Endpoint == "" {
			continue // it has not been started
		}
		load, r := loads[row.PoolID], reports[row.ID]
		if r.err != nil {
			load.Silent++
		}
		load.Sessions += r.Sessions
		load.Transactions += r.Transactions
		load.Statements += r.InFlight
		loads[row.PoolID] = load
	}
	return loads, nil
}

// Close ends the loop and gives the right up. Nodes live on.
func (n *nodes) Close() error {
	var errs []error
	if n.stop != nil {
		errs = append(errs, n.stop())
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}
