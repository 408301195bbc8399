package node

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// forgetAfter is how long a session with nothing on the node is remembered, for its bound parameters
	// and the outcome of its last statement.
	forgetAfter = 30 * time.Minute
	// maxEnded bounds how many ended transactions a session remembers.
	maxEnded = 64
)

// session is what the node knows of a session.
type session struct {
	id, user string
	registry *sessions

	mu       sync.Mutex
	main     *lane            // nil while the session is free
	extra    map[string]*lane // of further transactions of the protocol, by their id
	ended    []string         // transactions of the protocol that ended, latest last
	bound    *boundSets
	schema   string   // set by option; "" is the lake's default
	last     *outcome // without rows
	lost     string   // what of it is gone and why; told once
	lostIDs  []string // the transactions it was, with "" for what is the session's own
	closed   bool     // it gets no more lanes
	lastUsed time.Time
	busy     int
	known    wire.State // as last published
}

// state says how much of the session is here. While something that was is not yet told to be lost, the
// session stays: another node would not tell it. mu is held.
func (n *session) state() wire.State {
	state := n.held()
	if state == wire.Free && n.lost != "" {
		return wire.Stateful
	}
	return state
}

// held is what of the session is on its lanes. mu is held.
func (n *session) held() wire.State {
	switch {
	case len(n.extra) > 0, n.main != nil && n.main.open:
		return wire.InTransaction
	case n.main != nil && n.main.stateful:
		return wire.Stateful
	}
	return wire.Free
}

// inTransaction says whether the transaction with that id, or the session's own for "", is open.
func (n *session) inTransaction(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.extra[id]; l != nil {
		return l.open
	}
	return n.main != nil && n.main.transaction == id && n.main.open
}

// pinned says whether statements without transaction id run in the session's lane.
func (n *session) pinned() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.main != nil && n.main.transaction == "" && (n.main.open || n.main.stateful)
}

// takeLost returns once what of the session is gone, and why.
func (n *session) takeLost() error {
	n.mu.Lock()
	why := n.lost
	n.lost, n.lostIDs = "", nil
	n.mu.Unlock()
	if why == "" {
		return nil
	}
	n.registry.publish(n)
	return faultf(codes.Aborted, wire.TransactionLost, "%s", why)
}

// forgive notes that the client gave up a transaction: that it is lost need not be told any more.
func (n *session) forgive(id string) {
	n.mu.Lock()
	n.lostIDs = slices.DeleteFunc(n.lostIDs, func(lost string) bool { return lost == id })
	if len(n.lostIDs) == 0 {
		n.lost = ""
	}
	n.mu.Unlock()
	n.registry.publish(n)
}

// left notes that a statement left state on the session's lane.
func (n *session) left(l *lane) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.stateful = true
}

// setLast remembers how a statement ended, without what it returned.
func (n *session) setLast(o *outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = &outcome{id: o.id, err: o.err, rows: o.rows}
}

// end notes that a transaction of the protocol has ended. mu is held.
func (n *session) end(id string) {
	n.ended = append(n.ended, id)
	if len(n.ended) > maxEnded {
		n.ended = slices.Delete(n.ended, 0, 1)
	}
}

// transactionEnded notes that the transaction of a lane is over. mu is held.
func (n *session) transactionEnded(l *lane) {
	l.open, l.aborted, l.veil = false, false, overNothing
	if l.transaction == "" {
		return
	}
	n.end(l.transaction)
	delete(n.extra, l.transaction)
	l.transaction = ""
	if n.main == nil && l.stateful && !l.gone {
		n.main = l
	}
}

// sessions is every session that the node has heard of lately.
type sessions struct {
	mu      sync.Mutex
	byID    map[string]*session
	changed chan struct{} // closed and replaced when a session's state changed
	bound   atomic.Int64  // bytes of parameters that all sessions keep
}

func newSessions() *sessions {
	return &sessions{byID: map[string]*session{}, changed: make(chan struct{})}
}

// use returns the session of a call, made if it is new, and marks it busy until the returned function
// is called.
func (r *sessions) use(c *call) (*session, func()) {
	r.mu.Lock()
	n := r.byID[c.Session]
	if n == nil {
		n = &session{
			id: c.Session, user: c.User, registry: r, known: wire.Free,
			extra: map[string]*lane{}, bound: newBoundSets(&r.bound),
		}
		r.byID[c.Session] = n
	}
	n.mu.Lock() // under r.mu, so that the sweep cannot forget it in between
	n.busy++
	n.lastUsed = time.Now()
	n.mu.Unlock()
	r.mu.Unlock()
	return n, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.busy--
		n.lastUsed = time.Now()
	}
}

// find returns a session, or nil.
func (r *sessions) find(id string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

// stateOf is the state of a session after a call.
func (r *sessions) stateOf(id string) wire.State {
	n := r.find(id)
	if n == nil {
		return wire.Free
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state()
}

// publish tells watchers when the state of n is another than before. Neither mutex is held.
func (r *sessions) publish(n *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if state := n.state(); state != n.known {
		n.known = state
		r.wake()
	}
}

func (r *sessions) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// list returns the sessions that have state, and a channel that is closed when that has changed.
func (r *sessions) list() ([]wire.Session, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []wire.Session
	for _, n := range r.byID {
		n.mu.Lock()
		if state := n.state(); state != wire.Free {
			all = append(all, wire.Session{ID: n.id, User: n.user, State: state, LastUsed: n.lastUsed})
		}
		n.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b wire.Session) int { return strings.Compare(a.ID, b.ID) })
	return all, r.changed
}

// remove forgets a session and returns the lanes it had, which the caller closes.
func (r *sessions) remove(id string) []*lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.byID[id]
	if n == nil {
		return nil
	}
	delete(r.byID, id)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.close(r)
}

// close ends a session that is forgotten. Both mutexes are held.
func (n *session) close(r *sessions) []*lane {
	n.closed, n.lost, n.lostIDs = true, "", nil
	n.bound.close()
	return n.takeLanes(r)
}

// takeLanes empties the session. Both mutexes are held.
func (n *session) takeLanes(r *sessions) []*lane {
	var lanes []*lane
	if n.main != nil {
		lanes = append(lanes, n.main)
	}
	for _, l := range n.extra {
		lanes = append(lanes, l)
	}
	for _, l := range lanes {
		l.gone = true
		if l.transaction != "" {
			n.end(l.transaction)
		}
	}
	n.main, n.extra = nil, map[string]*lane{}
	if state := n.state(); n.known != state {
		n.known = state
		r.wake()
	}
	return lanes
}

// lose notes what is about to be taken from a session that was idle for longer than limit. mu is held.
func (n *session) lose(limit time.Duration) {
	what := "session state lost: its settings and temporary objects are gone"
	if n.held() == wire.InTransaction {
		what = "transaction lost: it was rolled back, and settings and temporary objects of the session are gone"
	}
	n.lost = fmt.Sprintf("%s: the session was idle for longer than its timeout of %s", what, limit)
	n.lostIDs = nil
	for id := range n.extra {
		n.lostIDs = append(n.lostIDs, id)
	}
	if l := n.main; l != nil && l.transaction != "" {
		n.lostIDs = append(n.lostIDs, l.transaction)
	}
	if l := n.main; l != nil && (l.transaction == "" || l.stateful) {
		n.lostIDs = append(n.lostIDs, "")
	}
}

// sweep ends what has been idle: it takes the lanes of sessions idle for longer than limit (0: never)
// and forgets those with nothing here. The caller closes the lanes.
func (r *sessions) sweep(now time.Time, limit time.Duration) []*lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lanes []*lane
	for id, n := range r.byID {
		n.mu.Lock()
		n.bound.expire(now)
		idle := now.Sub(n.lastUsed)
		switch {
		case n.busy > 0:
		case n.held() == wire.Free:
			if idle > forgetAfter {
				lanes = append(lanes, n.close(r)...)
				delete(r.byID, id)
			}
		case limit > 0 && idle > limit:
			n.lose(limit)
			lanes = append(lanes, n.takeLanes(r)...)
			n.schema = ""
		}
		n.mu.Unlock()
	}
	return lanes
}

// takeAll forgets every session and returns the lanes they had.
func (r *sessions) takeAll() []*lane {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lanes []*lane
	for id, n := range r.byID {
		n.mu.Lock()
		lanes = append(lanes, n.close(r)...)
		n.mu.Unlock()
		delete(r.byID, id)
	}
	return lanes
}
