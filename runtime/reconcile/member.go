package reconcile

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// member is what the loop knows of a node. Its fields are under the loop's mutex.
type member struct {
	node backend.Node
	row  *store.Node // as it was read or written last; nil: none
	// remote: a row of another host, which is not ours to probe, route to or end.
	remote bool

	phase       backend.Phase
	reason      string
	status      wire.Status // the last answer
	incarnation string
	seen        time.Time // when the loop saw it first
	answered    time.Time // the last good probe
	served      time.Time // when it first passed a probe in this process
	silent      time.Time // since when probes go unanswered
	drain       time.Time
	ended       int // the round in which its process was found gone
	leaving     bool
	judged      bool // its end has been counted
	probed      bool

	live *backend.Live // what it is to be told; nil: not known
	wake chan struct{} // prods its probe
	end  context.CancelFunc
}

// prod asks for a probe now. It never blocks.
func (m *member) prod() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *member) view() view {
	return view{
		id: m.node.ID, role: m.node.Role, hash: m.node.SpecHash, parts: m.node.Parts, phase: m.phase, reason: m.reason, seen: m.seen,
		silent: m.silent, drain: m.drain, leaving: m.leaving, fatal: m.status.Fatal,
		idle: m.idle(),
		load: m.status.InFlight + m.status.Transactions*8 + m.status.Sessions,
	}
}

// wantRow returns the row that the node should have. A reason is kept while the phase is: the words of
// one failed probe after the other are no news.
func (m *member) wantRow(host string) store.Node {
	r := store.Node{
		ID: m.node.ID, PoolID: m.node.PoolID, Host: host, Role: string(m.node.Role), Endpoint: m.node.Endpoint,
		PID: m.node.PID, Started: m.node.Started.UTC().Truncate(time.Microsecond), SpecHash: m.node.SpecHash,
		Incarnation: m.incarnation, Phase: string(m.phase), Reason: m.reason,
	}
	if m.row == nil {
		return r
	}
	if m.row.Phase == r.Phase {
		r.Reason = m.row.Reason
	}
	r.Incarnation = cmp.Or(r.Incarnation, m.row.Incarnation)
	return r
}

// sameRow compares rows as they are stored, but for when the node was seen.
func sameRow(a, b store.Node) bool {
	equal := a.Started.Equal(b.Started)
	a.Started, b.Started = time.Time{}, time.Time{}
	a.Seen, b.Seen = time.Time{}, time.Time{}
	return equal && a == b
}

// adopt remembers a node that the loop has not seen before. l.mu is held.
func (l *Loop) adopt(n backend.Node, now time.Time) *member {
	m := &member{node: n, phase: backend.Starting, seen: now, wake: make(chan struct{}, 1)}
	l.members[n.ID] = m
	return m
}

// startProbes probes the nodes that are not probed yet. l.mu is held.
func (l *Loop) startProbes(ctx context.Context) {
	for _, m := range l.reachable() {
		if m.end != nil {
			continue
		}
		probeCtx, cancel := context.WithCancel(ctx)
		m.end = cancel
		endpoint := m.node.Endpoint
		l.background.Go(func() { l.probe(probeCtx, m, endpoint) })
	}
}

// drop forgets a node. l.mu is held.
func (l *Loop) drop(id string) {
	if m := l.members[id]; m != nil && m.end != nil {
		m.end()
	}
	delete(l.members, id)
}

func (l *Loop) stopProbes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.members {
		if m.end != nil {
			m.end()
		}
	}
}

// gone notes that a node's process has ended. l.mu is held.
func (l *Loop) gone(m *member, reason string) {
	m.reason = reason
	if m.phase == backend.Gone {
		return
	}
	m.phase, m.ended = backend.Gone, l.round
	if m.end != nil {
		m.end()
		m.end = nil
	}
}

// exited takes a node out of routing as soon as its process has ended.
func (l *Loop) exited(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.members[id]; m != nil && !m.remote {
		l.gone(m, "its process has ended")
		l.publish()
	}
	l.again()
}

// publish tells routing what has changed. l.mu is held.
func (l *Loop) publish() {
	s := &backend.Snapshot{Pools: map[string][]backend.Member{}}
	for _, id := range slices.Sorted(maps.Keys(l.members)) {
		m := l.members[id]
		if m.remote || m.phase == backend.Gone || m.node.PoolID == "" {
			continue
		}
		n := m.node
		n.Reason = m.reason
		s.Pools[n.PoolID] = append(s.Pools[n.PoolID], backend.Member{
			Node: n, Incarnation: m.incarnation, Phase: m.phase, Probed: m.answered,
		})
	}
	if l.published != nil && reflect.DeepEqual(timeless(l.published), timeless(s)) {
		return
	}
	l.published = s
	l.cfg.Fleet.Publish(s)
}

// timeless leaves out when nodes were probed: that alone is no news.
func timeless(s *backend.Snapshot) map[string][]backend.Member {
	pools := map[string][]backend.Member{}
	for id, members := range s.Pools {
		members = slices.Clone(members)
		for i := range members {
			members[i].Probed = time.Time{}
		}
		pools[id] = members
	}
	return pools
}

// reachable lists the nodes that can be probed. l.mu is held.
func (l *Loop) reachable() []*member {
	var members []*member
	for _, m := range l.members {
		if !m.remote && m.phase != backend.Gone {
			members = append(members, m)
		}
	}
	return members
}

// passed closes FirstPass when its time has come. l.mu is held.
func (l *Loop) passed() {
	if l.rounds == 0 {
		return
	}
	for _, m := range l.reachable() {
		if !m.probed {
			return
		}
	}
	select {
	case <-l.first:
	default:
		close(l.first)
	}
}

// addr names a pool in logs. l.mu is held.
func (l *Loop) addr(poolID string) string {
	if p := l.pools[poolID]; p != nil {
		return p.addr.String()
	}
	return strings.TrimSpace("pool " + poolID)
}
