package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
)

// observeTimeout is how long the store or the backend may take before a round does without.
const observeTimeout = 5 * time.Second

// world is what one round sees.
type world struct {
	targets   map[string]target
	acting    bool
	listed    map[string]backend.Node // when acting
	rows      map[string]store.Node
	rowsKnown bool
}

// once does one round: observe, decide, and set going what is to be done. Whole is false while steps of
// some pool are under way.
func (l *Loop) once(ctx context.Context) (whole bool, after time.Time, err error) {
	l.mu.Lock()
	l.round++
	round := l.round
	l.mu.Unlock()
	w, err := l.observe(ctx, nil, l.acting())
	if err != nil {
		return false, time.Time{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.rounds++
	l.merge(w, round, now)
	l.startProbes(ctx)
	whole = true
	for id, p := range l.pools {
		if p.busy || p.settled >= round { // what it looks like now, the next round will see
			whole = false
			continue
		}
		have := l.views(id)
		v, steps := decide(p.desired, have, now, l.limits())
		p.state = state(p.target, v, have)
		if !v.after.IsZero() && (after.IsZero() || v.after.Before(after)) {
			after = v.after
		}
		if w.acting && !l.elsewhere(id) && l.dispatch(ctx, p, steps, w.rowsKnown, now) {
			whole = false
		}
		if _, wanted := w.targets[id]; !wanted && len(have) == 0 {
			delete(l.pools, id)
		}
	}
	l.publish()
	l.passed()
	return whole, after, nil
}

func (l *Loop) limits() limits {
	return limits{start: l.cfg.StartLimit, silent: l.cfg.SilentLimit, drain: l.cfg.DrainLimit}
}

// snapshotNow reads the store. One that is away is replaced by what it said last.
func (l *Loop) snapshotNow(ctx context.Context) (*store.Snapshot, error) {
	snapshot, err := l.cfg.Store.Snapshot(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.snapshot = snapshot
	}
	if l.snapshot == nil {
		return nil, fmt.Errorf("read the store: %w", err)
	}
	return l.snapshot, nil
}

// observe reads the backend and the rows of nodes, and without a snapshot the store. Without the backend, or
// without the rows where these are all there is, nothing can be known.
func (l *Loop) observe(ctx context.Context, snapshot *store.Snapshot, acting bool) (world, error) {
	storeCtx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	if snapshot == nil {
		var err error
		if snapshot, err = l.snapshotNow(storeCtx); err != nil {
			return world{}, err
		}
	}
	w := world{acting: acting, targets: targets(snapshot, l.cfg.Spec)}
	if acting {
		listCtx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		nodes, err := l.cfg.Backend.List(listCtx)
		if err != nil {
			return world{}, fmt.Errorf("list nodes: %w", err)
		}
		w.listed = map[string]backend.Node{}
		for _, n := range nodes {
			w.listed[n.ID] = n
		}
	}
	rows, err := l.cfg.Nodes.ListNodes(storeCtx)
	if err != nil && !acting {
		return world{}, fmt.Errorf("read node rows: %w", err)
	}
	w.rowsKnown, w.rows = err == nil, map[string]store.Node{}
	for _, r := range rows {
		w.rows[r.ID] = r
	}
	return w, nil
}

// merge brings members and pools up to what was seen. l.mu is held.
func (l *Loop) merge(w world, round int, now time.Time) {
	for id, t := range w.targets {
		l.pool(id).target = t
	}
	for id, p := range l.pools {
		if _, known := w.targets[id]; !known {
			p.target = unknown(id)
		}
	}
	if w.acting {
		for _, n := range w.listed {
			l.mergeListed(w, n, round, now)
		}
	}
	for _, r := range w.rows {
		l.mergeRow(w, r, round, now)
	}
	for id, m := range l.members {
		_, listed := w.listed[id]
		row, stored := w.rows[id]
		if w.rowsKnown {
			m.row = nil
			if stored {
				m.row = &row
			}
		}
		if !listed && !stored && !m.leaving && (w.rowsKnown || !m.remote) {
			l.drop(id)
			continue
		}
		p := l.pool(m.node.PoolID)
		if p.told {
			live := p.live
			m.live = &live
		}
		if listed && m.phase == backend.Gone && !m.leaving && !m.judged {
			l.judge(p, m, m.reason, now)
		}
	}
	for _, p := range l.pools {
		if print := p.print(); p.backoff.spec != print {
			p.backoff = backoff{spec: print}
		}
		p.notBefore, p.failure = p.backoff.until, p.backoff.reason
	}
}

// judge counts the end of a node that is no part of the plan. Nodes of a pool that end together count once.
func (l *Loop) judge(p *pool, m *member, reason string, now time.Time) {
	m.judged = true
	l.cfg.Log.Warn("node has failed", "pool", p.addr, "node", m.node.ID, "reason", reason)
	switch {
	case !m.drain.IsZero():
	case !m.served.IsZero() && now.Sub(m.served) >= goodLife:
		p.backoff.good()
	case p.judged != l.round:
		p.judged = l.round
		p.backoff.fail(now, reason, rand.Float64())
	}
}

func (l *Loop) mergeListed(w world, n backend.Node, round int, now time.Time) {
	row := w.rows[n.ID]
	if n.PoolID == "" { // its record is lost or damaged: the row knows
		n.PoolID, n.Role, n.SpecHash, n.Started = row.PoolID, backend.Role(row.Role), row.SpecHash, row.Started
	}
	m := l.members[n.ID]
	if m == nil {
		if p := l.pool(n.PoolID); p.busy || p.settled >= round {
			return // it may be half started, or have been ended since it was listed
		}
		m = l.adopt(n, now)
	}
	if m.phase == backend.Gone && !n.Exited && !m.leaving && m.ended < round { // it was wrongly thought gone
		l.drop(n.ID)
		m = l.adopt(n, now)
	}
	m.node, m.remote = n, false
	if n.Exited {
		l.gone(m, n.Reason)
	}
}

func (l *Loop) mergeRow(w world, r store.Node, round int, now time.Time) {
	if _, listed := w.listed[r.ID]; listed {
		return
	}
	n := backend.Node{
		ID: r.ID, PoolID: r.PoolID, Role: backend.Role(r.Role), Endpoint: r.Endpoint, PID: r.PID,
		Started: r.Started, SpecHash: r.SpecHash,
	}
	m := l.members[r.ID]
	switch {
	case r.Host != l.cfg.Host:
		if m == nil {
			m = &member{seen: now}
			l.members[r.ID] = m
		}
		m.node, m.remote, m.phase, m.reason = n, true, backend.Phase(r.Phase), r.Reason
	case w.acting:
		p := l.pool(r.PoolID)
		if p.busy || p.settled >= round {
			return // its process may be about to exist
		}
		if m == nil {
			m = &member{node: n, seen: now, wake: make(chan struct{}, 1)}
			l.members[r.ID] = m
		}
		l.gone(m, "it has a row and no process")
	case r.Endpoint != "":
		if m == nil {
			m = l.adopt(n, now)
		}
		m.node = n
		if r.Phase == string(backend.Draining) && m.phase != backend.Draining {
			m.phase, m.drain = backend.Draining, now
		}
	}
}

// pool returns what is remembered of a pool. l.mu is held.
func (l *Loop) pool(id string) *pool {
	p := l.pools[id]
	if p == nil {
		p = &pool{target: unknown(id)}
		l.pools[id] = p
	}
	return p
}

// print changes when the pool wants something else than before.
func (p *pool) print() string {
	var print string
	for _, r := range roles() {
		if s, ok := p.specs[r]; ok {
			print += s.Hash()
		}
	}
	return print
}

// views returns what decide sees of a pool: its nodes here, or where there are none those elsewhere.
func (l *Loop) views(poolID string) []view {
	elsewhere := l.elsewhere(poolID)
	var have []view
	for _, m := range l.members {
		if m.node.PoolID == poolID && m.remote == elsewhere {
			have = append(have, m.view())
		}
	}
	slices.SortFunc(have, func(a, b view) int { return strings.Compare(a.id, b.id) })
	return have
}

// elsewhere reports whether only another host runs nodes of the pool.
func (l *Loop) elsewhere(poolID string) bool {
	remote := false
	for _, m := range l.members {
		if m.node.PoolID != poolID {
			continue
		}
		if !m.remote {
			return false
		}
		remote = true
	}
	return remote
}
