package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// sight is one look at the rows and at what lies outside the store.
type sight struct {
	snap    *store.Snapshot
	missing map[string][]string // by object id: what its outside lacks
	pools   map[string]string   // by pool id: what its nodes lack, or are too many
}

// look reads the store and looks outside.
func (e *Engine) look(ctx context.Context) (sight, error) {
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return sight{}, fmt.Errorf("read store: %w", err)
	}
	return e.lookAt(ctx, snap)
}

// lookAt looks at what lies outside the rows of a snapshot.
func (e *Engine) lookAt(ctx context.Context, snap *store.Snapshot) (sight, error) {
	s := sight{snap: snap}
	var err error
	if s.missing, err = e.observe(ctx, snap); err != nil {
		return s, err
	}
	if e.Runtime == nil {
		return s, nil
	}
	if s.pools, err = e.Runtime.Missing(ctx, snap); err != nil {
		return s, fmt.Errorf("observe nodes: %w", err)
	}
	return s, nil
}

// step has the nodes brought closer to what the store asks, where there are any.
func (e *Engine) step(ctx context.Context) error {
	if e.Runtime == nil {
		return nil
	}
	if err := e.Runtime.Step(ctx); err != nil {
		return fmt.Errorf("start or stop nodes: %w", err)
	}
	return nil
}

// findings says what is unfinished or missing outside the store, for the objects of a stack.
func (e *Engine) findings(ctx context.Context, snap *store.Snapshot, stack string) ([]plan.Finding, error) {
	s, err := e.lookAt(ctx, snap)
	if err != nil {
		return nil, err
	}
	return e.pending(s, stack), nil
}

// observe asks each lifecycle what its objects lack.
func (e *Engine) observe(ctx context.Context, snap *store.Snapshot) (map[string][]string, error) {
	all := map[string][]string{}
	for kind, lifecycle := range e.Lifecycles {
		var objects []store.Object
		for _, o := range snap.Objects {
			if o.Kind.Name == kind && !o.Tombstone {
				objects = append(objects, o)
			}
		}
		if len(objects) == 0 {
			continue
		}
		missing, err := lifecycle.Observe(ctx, objects)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", kind, err)
		}
		for id, words := range missing {
			all[id] = words
		}
	}
	return all, nil
}

// beingDestroyed begins the message of a tombstone.
const beingDestroyed = "still being destroyed"

// waitsFor begins the message of what another object holds up.
const waitsFor = "waits for "

// pending lists what is not yet as the rows of a stack ask, in the order of the objects.
func (e *Engine) pending(s sight, stack string) []plan.Finding {
	var out []plan.Finding
	var w *waiting
	for _, o := range s.snap.Objects {
		message := ""
		switch {
		case o.Stack != stack:
			continue
		case o.Tombstone:
			message = strings.Join(append([]string{beingDestroyed}, reasons(o)...), ": ")
		case len(s.missing[o.ID]) > 0 && o.Status.Phase == store.Ready:
			message = strings.Join(append(s.missing[o.ID], reasons(o)...), "; ")
		case e.Lifecycles[o.Kind.Name] != nil && o.Status.Phase != store.Ready:
			message = strings.Join(append([]string{"not provisioned yet"}, reasons(o)...), ": ")
		case e.Lifecycles[o.Kind.Name] != nil && o.Status.Generation != o.Generation:
			message = strings.Join(append([]string{"its last change is not carried out yet"}, reasons(o)...), ": ")
		default:
			message = s.pools[o.ID]
		}
		if message == "" {
			continue
		}
		if w == nil {
			w = e.newWaiting(s.snap)
		}
		if because := w.because(o); because != "" {
			message = because
		}
		out = append(out, plan.Finding{Addr: o.Addr(), Message: message})
	}
	return out
}

// reasons says why what is missing could not be made, or taken away, if that was tried.
func reasons(o store.Object) []string {
	if o.Status.Message == "" {
		return nil
	}
	return []string{o.Status.Message}
}

// waiting knows which objects are skipped since others have failed, or are still there.
type waiting struct {
	failed map[schema.Addr]store.Object // live, with an outside that could not be made
	users  map[string][]store.Object    // of tombstones: the tombstones that refer to them
}

func (e *Engine) newWaiting(snap *store.Snapshot) *waiting {
	w := &waiting{failed: map[schema.Addr]store.Object{}, users: map[string][]store.Object{}}
	for _, o := range snap.Objects {
		if !o.Tombstone && o.Status.Phase == store.Provisioning && o.Status.Message != "" {
			w.failed[o.Addr()] = o
		}
	}
	buried := tombstones(snap)
	for _, o := range snap.Objects {
		for _, to := range buriedTargets(o, buried) {
			w.users[to.ID] = append(w.users[to.ID], o)
		}
	}
	return w
}

// because says what an object waits for. It is empty for one that has itself to blame.
func (w *waiting) because(o store.Object) string {
	if o.Tombstone {
		for _, user := range w.users[o.ID] {
			return strings.Join(append([]string{beingDestroyed + ": " + waitsFor + user.Addr().String()}, reasons(user)...), ", which failed: ")
		}
		return ""
	}
	for _, ref := range o.Kind.Refs(o.Spec) {
		if to, failed := w.failed[ref.To]; failed {
			return fmt.Sprintf("%s%s, which failed: %s", waitsFor, ref.To, to.Status.Message)
		}
	}
	return ""
}

// Skipped reports whether the object of a finding has no turn yet since another one failed or is still there.
func Skipped(f plan.Finding) bool {
	return strings.HasPrefix(f.Message, waitsFor) || strings.HasPrefix(f.Message, beingDestroyed+": "+waitsFor)
}

// Doing says in one word and a half what is done about a finding, as in "provisioning tenant_db.acme/sales".
func Doing(f plan.Finding) string {
	switch {
	case strings.HasPrefix(f.Message, beingDestroyed):
		return "destroying " + f.Addr.String()
	case f.Addr.Kind == runs:
		return "bringing up the nodes of " + f.Addr.String()
	}
	return "provisioning " + f.Addr.String()
}
