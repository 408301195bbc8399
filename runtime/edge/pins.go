package edge

import (
	"maps"
	"sync"
	"time"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

// pin says that a session has state on a node.
type pin struct {
	router.Pin
	state wire.State
	// told is when a call's trailer said so, zero once a list of the node has: lists travel apart from
	// calls, and one that was made before a call must not undo what the call said.
	told time.Time
	// unlisted is set when a list since then lacked the session. Once the call is too long ago for the
	// list to have been made before it, the list is right.
	unlisted bool
	// owner is what the session ends with: as a call's bearer has it, or as much as the node tells.
	owner access.Session
	heard bool // the owner is what the node tells
}

func (p pin) stale(now time.Time) bool { return p.unlisted && now.Sub(p.told) > toldFor }

const (
	toldFor     = 2 * time.Second
	sessionIdle = 30 * time.Minute // after which a session does not count as active
	sweepAt     = 4096
	lostFor     = time.Hour // after which nobody is told any more what was lost
)

// session is one as a pool knows it: the bearer of one may enter several pools, and what it has in each
// is apart. The pool is "" for one that has begun here and not entered any yet.
type session struct{ pool, id string }

// pins knows where sessions have state: from the trailers of this edge's calls, and from the lists that
// nodes send. It also knows which sessions this edge has seen.
type pins struct {
	mu     sync.Mutex
	pinned map[session]pin
	seen   map[session]time.Time       // session to last call
	listed map[string]string           // node to the incarnation whose list has arrived
	change chan struct{}               // closed and replaced when a first list arrives
	on     map[string]map[session]bool // node to the sessions pinned to it
	lost   map[string]time.Time        // node to when it was found gone
}

func newPins() *pins {
	return &pins{
		pinned: map[session]pin{}, seen: map[session]time.Time{}, listed: map[string]string{},
		change: make(chan struct{}), on: map[string]map[session]bool{}, lost: map[string]time.Time{},
	}
}

// knows reports whether this edge saw a call of the session before, or its beginning.
func (p *pins) knows(s session) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, entered := p.seen[s]
	_, begun := p.seen[session{id: s.id}]
	return entered || begun
}

// touch notes a call of the session.
func (p *pins) touch(s session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.seen) >= sweepAt && len(p.seen)%1024 == 0 {
		for s, last := range p.seen {
			if now.Sub(last) > sessionIdle {
				delete(p.seen, s)
			}
		}
	}
	p.seen[s] = now
}

// of returns the session's pin.
func (p *pins) of(s session) (pin, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.pinned[s]
	if ok && at.stale(time.Now()) {
		p.drop(s)
		return pin{}, false
	}
	return at, ok
}

// tell records what a call's trailer said of its session.
func (p *pins) tell(s session, at router.Pin, state wire.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case wire.Free:
		if have, ok := p.pinned[s]; ok && have.Pin == at {
			p.drop(s)
		}
	case wire.Stateful, wire.InTransaction:
		p.put(s, pin{Pin: at, state: state, told: time.Now()})
	}
}

// clear forgets a pin to a process that is gone.
func (p *pins) clear(s session, at router.Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.pinned[s]; ok && have.Pin == at {
		p.drop(s)
	}
}

// close forgets the session.
func (p *pins) close(s session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(s)
	delete(p.seen, s)
	delete(p.seen, session{id: s.id})
}

// list takes a pool's node's list of the sessions that have state on it.
func (p *pins) list(pool, node string, l wire.Sessions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := router.Pin{Node: node, Incarnation: l.Incarnation}
	now := time.Now()
	listed := make(map[session]bool, len(l.Sessions))
	for _, told := range l.Sessions {
		s := session{pool, told.ID}
		listed[s] = true
		have, ok := p.pinned[s]
		if !ok || now.Sub(have.told) > toldFor || have.Pin == at && have.state == told.State {
			p.put(s, pin{
				Pin: at, state: told.State, heard: true,
				owner: access.Session{ID: told.ID, User: told.User, Issued: told.LastUsed},
			})
		} else if have.Pin == at {
			have.unlisted = false
			p.pinned[s] = have
		}
	}
	for s := range p.on[node] {
		// A pin to an earlier process stays: the session's next statement is told what was lost.
		if have := p.pinned[s]; have.Pin == at && !listed[s] {
			have.unlisted = true
			p.pinned[s] = have
		}
	}
	if p.listed[node] != l.Incarnation {
		p.listed[node] = l.Incarnation
		close(p.change)
		p.change = make(chan struct{})
	}
}

// keep is told which processes there are. Pins to others stay for an hour, for the sessions to learn
// what they lost.
func (p *pins) keep(there map[process]backend.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	nodes := map[string]bool{}
	for at := range there {
		nodes[at.node] = true
		delete(p.lost, at.node)
	}
	for node := range p.listed {
		if !nodes[node] {
			delete(p.listed, node)
		}
	}
	for node := range p.on {
		if _, known := p.lost[node]; !nodes[node] && !known {
			p.lost[node] = now
		}
	}
	for node, since := range p.lost {
		if now.Sub(since) > lostFor {
			for s := range p.on[node] {
				p.drop(s)
			}
		}
		if len(p.on[node]) == 0 { // nobody is left to be told
			delete(p.lost, node)
		}
	}
}

// unheard returns those of the members whose processes have not sent a list, and a channel closed when
// another one has.
func (p *pins) unheard(members []backend.Member) ([]backend.Member, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var silent []backend.Member
	for _, m := range members {
		if m.Phase != backend.Gone && (m.Incarnation == "" || p.listed[m.ID] != m.Incarnation) {
			silent = append(silent, m)
		}
	}
	return silent, p.change
}

// own notes what the session ends with, if it has state. A call that acts in another session than its own
// has only as much to say of it as that the two are one user's.
func (p *pins) own(s session, life access.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.pinned[s]
	if !ok || life.ID != s.id && at.owner.User != "" && !at.heard {
		return
	}
	if life.ID != s.id {
		life.ID, life.Root = s.id, ""
	}
	at.owner, at.heard = life, false
	p.pinned[s] = at
}

// all returns the pins as they are now.
func (p *pins) all() map[session]pin {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.pinned)
}

// put keeps an owner that a call has named: what the node tells of it is less.
func (p *pins) put(s session, at pin) {
	if have := p.pinned[s]; have.owner.User != "" && (at.owner.User == "" || at.heard) {
		at.owner, at.heard = have.owner, have.heard
	}
	p.drop(s)
	p.pinned[s] = at
	if p.on[at.Node] == nil {
		p.on[at.Node] = map[session]bool{}
	}
	p.on[at.Node][s] = true
}

func (p *pins) drop(s session) {
	have, ok := p.pinned[s]
	if !ok {
		return
	}
	delete(p.pinned, s)
	delete(p.on[have.Node], s)
	if len(p.on[have.Node]) == 0 {
		delete(p.on, have.Node)
	}
}

// count returns the sessions that are active and those in a transaction.
func (p *pins) count() (active, inTransaction int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	ids := make(map[string]bool, len(p.seen))
	for s, last := range p.seen {
		if _, pinned := p.pinned[s]; pinned || now.Sub(last) <= sessionIdle {
			ids[s.id] = true
		}
	}
	for _, at := range p.pinned {
		if at.state == wire.InTransaction && !at.stale(now) {
			inTransaction++
		}
	}
	return len(ids), inTransaction
}
