package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// Observe says how far each pool is from what a snapshot of the store asks, by pool id. It looks once, probes
// each node once, and changes nothing; it may be called without Run, and beside it.
func (l *Loop) Observe(ctx context.Context, snap *store.Snapshot) (map[string]PoolState, error) {
	look := &Loop{
		cfg: l.cfg, dial: l.dial, kick: make(chan struct{}, 1), first: make(chan struct{}),
		members: map[string]*member{}, pools: map[string]*pool{},
	}
	look.cfg.Fleet = &backend.Fleet{} // what is seen here is not for routing
	w, err := look.observe(ctx, snap, l.cfg.Backend != nil)
	if err != nil {
		return nil, err
	}
	look.mu.Lock()
	look.merge(w, 1, time.Now())
	members := look.reachable()
	look.mu.Unlock()
	var asked sync.WaitGroup
	for _, m := range members {
		asked.Go(func() {
			s, err := look.glance(ctx, m.node)
			look.heard(m, s, err)
		})
	}
	asked.Wait()
	look.mu.Lock()
	defer look.mu.Unlock()
	states := map[string]PoolState{}
	for id, p := range look.pools {
		have := look.views(id)
		v, _ := decide(p.desired, have, time.Now(), look.limits())
		if v.converged && w.rowsKnown && w.acting && len(look.staleRows(id)) > 0 {
			// Who only reads rows does not know it yet, and the next one to act would write.
			v.converged, v.message = false, "its nodes are as they should be, and not recorded so yet"
		}
		states[id] = state(p.target, v, have)
	}
	return states, nil
}

// glance asks a node how it is, and tells it nothing.
func (l *Loop) glance(ctx context.Context, n backend.Node) (wire.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ProbeTimeout)
	defer cancel()
	conn, err := l.dial(n.Endpoint)
	if err != nil {
		return wire.Status{}, err
	}
	defer conn.Close()
	pool, err := l.cfg.Keys().Pool(n.PoolID)
	if err != nil {
		return wire.Status{}, err
	}
	_, s, err := greet(ctx, conn, pool)
	if err != nil {
		return s, l.explain(err)
	}
	return s, identify(n, s)
}
