package engine

import (
	"context"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Runs reports whether objects of the kind have nodes.
func Runs(k *schema.Kind) bool { return k.Name == runs }

// Lacks says what the nodes of each object that has some lack or are too many, in words by its id. It looks
// now, and does not act.
func (e *Engine) Lacks(ctx context.Context, snap *store.Snapshot) (map[string]string, error) {
	if e.Runtime == nil {
		return nil, nil
	}
	return e.Runtime.Missing(ctx, snap)
}

// State says how far the outside of an object is, given what Lacks found. What owns nothing outside is ready.
func (e *Engine) State(o store.Object, lacks map[string]string) store.Status {
	s := o.Status
	switch lack, lacking := lacks[o.ID]; {
	case o.Tombstone:
		s.Phase = store.Deleting
	case lacking:
		s = store.Status{Phase: store.Provisioning, Message: lack, Generation: o.Generation}
	case Runs(o.Kind) || !e.outside(o.Kind.Name):
		s = store.Status{Phase: store.Ready, Generation: o.Generation}
	case s.Phase == "":
		s.Phase = store.Provisioning
	}
	return s
}
