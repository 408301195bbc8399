package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/qod-io/qod/engine/store"
)

// Restart asks for all nodes that the object has by now to be replaced, as another memory would have them replaced: a new
// one takes over before an old one drains. It only writes the request down; whoever acts on the nodes meets it, and Lacks
// tells how far that is. The id is made by who asks: a request that was the last one already is left as it is.
func (e *Engine) Restart(ctx context.Context, o store.Object, id string) error {
	if !Runs(o.Kind) || o.Tombstone {
		return fmt.Errorf("restart %s: it has no nodes", o.Addr())
	}
	s := o.Status
	if s.Restart.ID == id {
		return nil
	}
	s.Restart = store.Restart{ID: id, At: store.Stamp(time.Now())}
	if err := e.Store.SetStatus(ctx, o.ID, s, nil); err != nil {
		return fmt.Errorf("restart %s: %w", o.Addr(), err)
	}
	return nil
}
