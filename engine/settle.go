package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/qod-io/qod/engine/crash"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	// leaseOutside is the right to do outside steps.
	leaseOutside = "outside"
	// parallelSteps bounds how many outside steps run at the same time.
	parallelSteps = 4
	// settleEvery is how often outside steps are looked at when nothing changes.
	settleEvery = 30 * time.Second
)

// Settle does one pass over what rows ask for outside the store: it makes what is missing, takes away
// what tombstones own once nothing needs it, and then removes their rows. One failing object does not
// hold up the others. It needs the lease, and stops when the lease is lost.
func (e *Engine) Settle(ctx context.Context, lease store.Lease) error {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	missing, err := e.observe(ctx, snap)
	if err != nil {
		return err
	}
	nodes, err := e.withNodes(ctx)
	if err != nil {
		return err
	}
	needed := referred(snap)
	g := &errgroup.Group{}
	g.SetLimit(parallelSteps)
	errs := make([]error, len(snap.Objects))
	for i, o := range snap.Objects {
		g.Go(func() error {
			errs[i] = e.settle(ctx, lease, o, snap, settling{missing[o.ID], nodes[o.ID], needed[o.ID]})
			return nil
		})
	}
	_ = g.Wait() // errors are in errs
	return errors.Join(errs...)
}

// settling is what was seen of one object.
type settling struct {
	missing []string // outside
	nodes   bool     // the pool has nodes
	needed  bool     // others refer to it
}

func (e *Engine) settle(ctx context.Context, l store.Lease, o store.Object, snap *store.Snapshot, s settling) error {
	lifecycle := e.Lifecycles[o.Kind.Name]
	switch {
	case o.Tombstone && (s.needed || s.nodes):
		return nil // its turn comes when those are gone
	case o.Tombstone:
		return e.end(ctx, l, o, lifecycle)
	case lifecycle == nil:
		return nil
	case o.Status == (store.Status{Phase: store.Ready, Generation: o.Generation}) && len(s.missing) == 0:
		return nil
	}
	err := lifecycle.Create(ctx, o, func(attr string) ([]byte, error) {
		key := store.SecretKey{Object: o.ID, Attr: attr}
		return e.Sealer.Open(key, snap.Secrets[key])
	})
	crash.Point("engine.settle-created")
	if err != nil {
		// One that was ready stays so, for nodes go on through a failed change or repair.
		status := store.Status{Phase: store.Provisioning, Generation: o.Status.Generation, Reason: "CreateFailed", Message: err.Error()}
		if o.Status.Phase == store.Ready {
			status.Phase = store.Ready
		}
		return errors.Join(fmt.Errorf("provision %s: %w", o.Addr(), err), e.Store.SetStatus(ctx, o.ID, status, l))
	}
	if err := e.Store.SetStatus(ctx, o.ID, store.Status{Phase: store.Ready, Generation: o.Generation}, l); err != nil {
		return fmt.Errorf("record %s as ready: %w", o.Addr(), err)
	}
	crash.Point("engine.settle-ready")
	return nil
}

// end takes away the outside of a buried object, and then its row.
func (e *Engine) end(ctx context.Context, l store.Lease, o store.Object, lifecycle Lifecycle) error {
	if lifecycle != nil {
		if err := lifecycle.Delete(ctx, o); err != nil {
			status := store.Status{Phase: store.Deleting, Reason: "DeleteFailed", Message: err.Error(), Generation: o.Generation}
			return errors.Join(fmt.Errorf("destroy %s: %w", o.Addr(), err), e.Store.SetStatus(ctx, o.ID, status, l))
		}
		crash.Point("engine.settle-deleted")
	}
	_, err := e.Store.Commit(ctx, store.Change{
		Writes: []store.Write{{Op: store.Remove, ID: o.ID, Kind: o.Kind, Saw: o.Revision}},
		By:     e.Holder, Note: "the outside of " + o.Addr().String() + " is gone", Lease: l,
	})
	crash.Point("engine.settle-removed")
	if err != nil {
		return fmt.Errorf("remove %s: %w", o.Addr(), err)
	}
	return nil
}

// withNodes says which pools have nodes.
func (e *Engine) withNodes(ctx context.Context) (map[string]bool, error) {
	nodes, err := e.Nodes.ListNodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	pools := map[string]bool{}
	for _, n := range nodes {
		pools[n.PoolID] = true
	}
	return pools, nil
}

// referred says which objects others refer to.
func referred(snap *store.Snapshot) map[string]bool {
	named := map[schema.Addr][]store.Object{}
	for _, o := range snap.Objects {
		named[o.Addr()] = append(named[o.Addr()], o)
	}
	needed := map[string]bool{}
	for _, o := range snap.Objects {
		for _, ref := range o.Kind.Refs(o.Spec) {
			for _, to := range named[ref.To] {
				// A live object means the live one of that name. A buried one may mean either, the
				// name having been given anew, so both stay until it is gone.
				if to.ID != o.ID && (o.Tombstone || !to.Tombstone) {
					needed[to.ID] = true
				}
			}
		}
	}
	return needed
}

// pending lists what is not yet as the rows of a stack ask, in the order of the objects.
func (e *Engine) pending(snap *store.Snapshot, stack string, missing map[string][]string, pools map[string]string) []plan.Finding {
	var out []plan.Finding
	for _, o := range snap.Objects {
		switch {
		case o.Stack != stack:
		case o.Tombstone && o.Status.Message != "":
			out = append(out, plan.Finding{Addr: o.Addr(), Message: "still being destroyed: " + o.Status.Message})
		case o.Tombstone:
			out = append(out, plan.Finding{Addr: o.Addr(), Message: "still being destroyed"})
		case len(missing[o.ID]) > 0 && o.Status.Phase == store.Ready:
			out = append(out, plan.Finding{Addr: o.Addr(), Message: strings.Join(append(missing[o.ID], reasons(o)...), "; ")})
		case e.Lifecycles[o.Kind.Name] != nil && (o.Status.Phase != store.Ready || o.Status.Generation != o.Generation):
			out = append(out, plan.Finding{Addr: o.Addr(), Message: unfinished(o)})
		case pools[o.ID] != "":
			out = append(out, plan.Finding{Addr: o.Addr(), Message: pools[o.ID]})
		}
	}
	return out
}

// reasons says why what is missing could not be made, if that was tried.
func reasons(o store.Object) []string {
	if o.Status.Message == "" {
		return nil
	}
	return []string{o.Status.Message}
}

func unfinished(o store.Object) string {
	if o.Status.Message != "" {
		return "not provisioned yet: " + o.Status.Message
	}
	return "not provisioned yet"
}

// Run settles for as long as ctx lives: at once, after each change of the store, and every 30 seconds.
// While another process has the lease it waits for its turn.
func (e *Engine) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return e.Store.Watch(ctx, func(store.Revision) {
			select {
			case changed <- struct{}{}:
			default: // a pass is due anyway
			}
		})
	})
	g.Go(func() error {
		for ctx.Err() == nil {
			if err := e.lead(ctx, changed); err != nil && ctx.Err() == nil {
				e.Log.Debug("outside steps", "error", err)
			}
			wait(ctx, nil, time.Second)
		}
		return ctx.Err()
	})
	return g.Wait()
}

// lead settles until the lease or ctx ends.
func (e *Engine) lead(ctx context.Context, changed <-chan struct{}) error {
	lease, err := e.Store.Acquire(ctx, leaseOutside, e.Holder)
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := under(ctx, lease)
	defer cancel()
	pause := time.Second
	for ctx.Err() == nil {
		err := e.Settle(ctx, lease)
		if err != nil && ctx.Err() == nil {
			e.Log.Warn("outside steps failed", "error", err, "retry", pause)
			wait(ctx, nil, pause)
			pause = min(2*pause, settleEvery)
			continue
		}
		pause = time.Second
		wait(ctx, changed, settleEvery)
	}
	return ctx.Err()
}

// under returns a context that ends with the lease.
func under(ctx context.Context, lease store.Lease) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-lease.Done():
			cancel(store.ErrTermOver)
		case <-stop:
		}
	}()
	return ctx, func() { close(stop); <-done; cancel(context.Canceled) }
}

func wait(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}
