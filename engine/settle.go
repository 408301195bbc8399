package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/qod-io/qod/engine/crash"
	"github.com/qod-io/qod/engine/graph"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// parallelSteps is how many outside steps run at the same time when Config does not say.
const parallelSteps = 10

// errWaits is why an object has no turn yet although nothing has failed.
var errWaits = errors.New("its nodes are still there")

// Settle does one pass over what rows ask for outside the store: it makes what is missing, takes away
// what tombstones own once nothing needs it, and then removes their rows. One failing object holds up
// only those that need it. It needs the lease, and stops when the lease is lost.
func (e *Engine) Settle(ctx context.Context, lease store.Lease) error {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("read store: %w", err)
	}
	missing, err := e.observe(ctx, snap)
	if err != nil {
		return err
	}
	_, err = e.settle(ctx, nil, lease, sight{snap: snap, missing: missing})
	return err
}

// settle acts on what was seen. Once stopping is closed no further step starts; those that run end. It
// reports whether anything was done.
func (e *Engine) settle(ctx context.Context, stopping <-chan struct{}, l store.Lease, s sight) (bool, error) {
	nodes, err := e.withNodes(ctx)
	if err != nil {
		return false, err
	}
	steps, order := e.steps(s, nodes)
	starting, cancel := until(ctx, stopping, ErrInterrupted)
	defer cancel()
	results, err := order.Walk(starting, e.parallelism(), func(_ context.Context, id string) error {
		return e.do(ctx, l, s.snap, steps[id])
	})
	if err != nil {
		return false, fmt.Errorf("order outside steps: %w", err)
	}
	done := false
	var errs []error
	for _, r := range results {
		done = done || r.State == graph.Done
		if r.State == graph.Failed && !errors.Is(r.Err, errWaits) {
			errs = append(errs, r.Err)
		}
	}
	return done, errors.Join(errs...)
}

func (e *Engine) parallelism() int {
	if e.Parallelism == 0 {
		return parallelSteps
	}
	return e.Parallelism
}

// step is what is to be done for one object outside the store.
type step struct {
	object store.Object
	end    bool // take it away; else make it
	waits  bool // not yet: it is a pool that has nodes
}

// steps says what is to be done, and in which order: what is referred to is made before and goes after
// what refers to it.
func (e *Engine) steps(s sight, nodes map[string]bool) (map[string]step, *graph.Graph[string]) {
	steps, order := map[string]step{}, graph.New[string]()
	makes := map[schema.Addr]string{}
	for _, o := range s.snap.Objects {
		switch {
		case o.Tombstone:
			steps[o.ID] = step{object: o, end: true, waits: nodes[o.ID]}
		case e.Lifecycles[o.Kind.Name] == nil:
			continue
		case o.Status == (store.Status{Phase: store.Ready, Generation: o.Generation}) && len(s.missing[o.ID]) == 0:
			continue
		default:
			steps[o.ID] = step{object: o}
			makes[o.Addr()] = o.ID
		}
		order.Add(o.ID)
	}
	buried := tombstones(s.snap)
	for id, st := range steps {
		if st.end {
			for _, to := range buriedTargets(st.object, buried) {
				order.Connect(to.ID, id)
			}
			continue
		}
		for _, ref := range st.object.Kind.Refs(st.object.Spec) {
			if to, ok := makes[ref.To]; ok && to != id {
				order.Connect(id, to)
			}
		}
	}
	return steps, order
}

func tombstones(snap *store.Snapshot) map[schema.Addr][]store.Object {
	buried := map[schema.Addr][]store.Object{}
	for _, o := range snap.Objects {
		if o.Tombstone {
			buried[o.Addr()] = append(buried[o.Addr()], o)
		}
	}
	return buried
}

// buriedTargets returns the tombstones that a tombstone refers to. Several may have had one name, and it
// may mean any of them: all stay until it is gone. A live object never refers to a tombstone.
func buriedTargets(o store.Object, buried map[schema.Addr][]store.Object) []store.Object {
	if !o.Tombstone {
		return nil
	}
	var out []store.Object
	for _, ref := range o.Kind.Refs(o.Spec) {
		for _, to := range buried[ref.To] {
			if to.ID != o.ID {
				out = append(out, to)
			}
		}
	}
	return out
}

func (e *Engine) do(ctx context.Context, l store.Lease, snap *store.Snapshot, s step) error {
	switch {
	case s.waits:
		return errWaits
	case s.end:
		return e.end(ctx, l, s.object)
	}
	return e.make(ctx, l, s.object, snap)
}

// secretsOf opens the secrets that a snapshot has of an object.
func (e *Engine) secretsOf(snap *store.Snapshot, o store.Object) func(attr string) ([]byte, error) {
	return func(attr string) ([]byte, error) {
		key := store.SecretKey{Object: o.ID, Attr: attr}
		return e.Sealer.Open(key, snap.Secrets[key])
	}
}

// make brings the outside of an object to what its row asks, and records that.
func (e *Engine) make(ctx context.Context, l store.Lease, o store.Object, snap *store.Snapshot) error {
	err := e.Lifecycles[o.Kind.Name].Create(ctx, o, e.secretsOf(snap, o))
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
func (e *Engine) end(ctx context.Context, l store.Lease, o store.Object) error {
	if lifecycle := e.Lifecycles[o.Kind.Name]; lifecycle != nil {
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
