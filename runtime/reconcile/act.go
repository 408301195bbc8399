package reconcile

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
)

// dispatch sets going what is to be done for a pool, and reports whether there is anything. What takes
// no time happens here, so that the next round sees it; the rest runs beside the loop, and what ends a
// node beside that, since a node may take long to end. l.mu is held.
func (l *Loop) dispatch(ctx context.Context, p *pool, steps []step, rowsKnown bool, now time.Time) bool {
	var starts []backend.Spec
	for _, s := range steps {
		m := l.members[s.id]
		switch s.do {
		case start:
			starts = append(starts, p.specs[s.role])
			continue
		case drain:
			m.phase, m.drain, m.reason = backend.Draining, now, s.reason
			m.prod()
		case stop, forget:
			l.leave(ctx, p, m, s, now)
		}
		l.cfg.Log.Info(s.do.String()+" node", "pool", p.addr, "node", s.id, "reason", s.reason)
	}
	var rows []store.Node
	if rowsKnown && p.id != "" {
		rows = l.staleRows(p.id)
	}
	if len(rows)+len(starts) > 0 {
		p.busy = true
		log := l.cfg.Log.With("pool", p.addr)
		l.background.Go(func() { l.work(ctx, p, log, rows, starts) })
	}
	return len(steps)+len(rows) > 0
}

// staleRows returns the rows of a pool's nodes that are not what they should be. l.mu is held.
func (l *Loop) staleRows(poolID string) []store.Node {
	var rows []store.Node
	for _, m := range l.members {
		if m.node.PoolID != poolID || m.remote || m.leaving || m.phase == backend.Gone {
			continue
		}
		if !m.probed && m.row != nil && m.row.Endpoint != "" {
			continue // adopted: what the row says is as good until the node answers
		}
		if row := m.wantRow(l.cfg.Host); m.row == nil || !sameRow(row, *m.row) {
			rows = append(rows, row)
		}
	}
	return rows
}

// leave ends a node, beside the loop. l.mu is held.
func (l *Loop) leave(ctx context.Context, p *pool, m *member, s step, now time.Time) {
	m.leaving = true
	if m.phase != backend.Gone {
		m.phase, m.reason = backend.Draining, s.reason
	}
	if s.failed {
		l.judge(p, m, s.reason, now)
	}
	l.background.Go(func() { l.end(ctx, p, m, s) })
}

// work writes rows and starts nodes of a pool, one after the other.
func (l *Loop) work(ctx context.Context, p *pool, log *slog.Logger, rows []store.Node, starts []backend.Spec) {
	ok := true
	for _, row := range rows {
		if err := l.cfg.Nodes.PutNode(ctx, row); err != nil {
			log.Error("record node", "node", row.ID, "error", err)
			ok = false
			break
		}
	}
	for _, spec := range starts {
		if err := l.start(ctx, spec); err != nil {
			log.Error("start node", "error", err)
			l.mu.Lock()
			p.backoff.fail(time.Now(), err.Error(), rand.Float64())
			l.mu.Unlock()
			break
		}
	}
	if !ok { // the next round would do the same at once
		pause(ctx, firstDelay)
	}
	l.mu.Lock()
	p.busy, p.settled = false, l.round
	l.mu.Unlock()
	l.again()
}

// start writes down the intent and then starts a node: whoever finds the row without a process
// removes it.
func (l *Loop) start(ctx context.Context, spec backend.Spec) error {
	id := uuid.NewString()
	err := l.cfg.Nodes.PutNode(ctx, store.Node{
		ID: id, PoolID: spec.PoolID, Host: l.cfg.Host, Role: string(spec.Role), SpecHash: spec.Hash(),
		Phase: string(backend.Starting),
	})
	if err != nil {
		return err
	}
	_, err = l.cfg.Backend.Start(ctx, id, spec)
	return err
}

// end stops a node or removes what is left of it, and its row, however often that takes.
func (l *Loop) end(ctx context.Context, p *pool, m *member, s step) {
	grace := l.cfg.StopGrace
	if s.do == forget {
		grace = 0
	}
	for failures := 1; ; failures++ {
		runs, err := false, error(nil)
		if s.do == forget {
			runs, err = l.runs(ctx, s.id)
		}
		if runs { // only a round that saw it run may end it
			l.cfg.Log.Warn("node was taken for gone and runs", "node", s.id)
			break
		}
		if err == nil {
			err = l.cfg.Backend.Stop(ctx, s.id, grace)
		}
		if err == nil {
			err = l.cfg.Nodes.RemoveNode(ctx, s.id)
		}
		if err == nil {
			break
		}
		l.cfg.Log.Error(s.do.String()+" node", "node", s.id, "error", err)
		if !pause(ctx, delay(min(failures, 6), rand.Float64())) {
			return
		}
	}
	l.mu.Lock()
	l.drop(s.id)
	p.settled = l.round
	l.publish()
	l.mu.Unlock()
	l.again()
}

// runs reports whether the backend sees the node's process run.
func (l *Loop) runs(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	nodes, err := l.cfg.Backend.List(ctx)
	return slices.ContainsFunc(nodes, func(n backend.Node) bool { return n.ID == id && !n.Exited }), err
}

func (a action) String() string {
	return [...]string{start: "start", drain: "drain", stop: "stop", forget: "forget"}[a]
}
