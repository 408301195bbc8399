package edge

import (
	"sync"
	"time"

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
}

func (p pin) stale(now time.Time) bool { return p.unlisted && now.Sub(p.told) > toldFor }

const (
	toldFor     = 2 * time.Second
	sessionIdle = 30 * time.Minute // after which a session does not count as active
	sweepAt     = 4096
	lostFor     = time.Hour // after which nobody is told any more what was lost
)

// pins knows where sessions have state: from the trailers of this edge's calls, and from the lists that
// nodes send. It also knows which sessions this edge has seen.
type pins struct {
	mu     sync.Mutex
	pinned map[string]pin             // by session
	seen   map[string]time.Time       // session to last call
	listed map[string]string          // node to the incarnation whose list has arrived
	change chan struct{}              // closed and replaced when a first list arrives
	on     map[string]map[string]bool // node to the sessions pinned to it
	lost   map[string]time.Time       // node to when it was found gone
}

func newPins() *pins {
	return &pins{
		pinned: map[string]pin{}, seen: map[string]time.Time{}, listed: map[string]string{},
		change: make(chan struct{}), on: map[string]map[string]bool{}, lost: map[string]time.Time{},
	}
}

// touch notes a call of the session, and reports whether this edge saw one before.
func (p *pins) touch(session string) (before bool) {
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
	_, before = p.seen[session]
	p.seen[session] = now
	return before
}

// of returns the session's pin.
func (p *pins) of(session string) (pin, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.pinned[session]
	if ok && at.stale(time.Now()) {
		p.drop(session)
		return pin{}, false
	}
	return at, ok
}

// tell records what a call's trailer said of its session.
func (p *pins) tell(session string, at router.Pin, state wire.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state {
	case wire.Free:
		if have, ok := p.pinned[session]; ok && have.Pin == at {
			p.drop(session)
		}
	case wire.Stateful, wire.InTransaction:
		p.put(session, pin{Pin: at, state: state, told: time.Now()})
	}
}

// clear forgets a pin to a process that is gone.
func (p *pins) clear(session string, at router.Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.pinned[session]; ok && have.Pin == at {
		p.drop(session)
	}
}

// close forgets the session.
func (p *pins) close(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(session)
	delete(p.seen, session)
}

// list takes a node's list of the sessions that have state on it.
func (p *pins) list(node string, l wire.Sessions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := router.Pin{Node: node, Incarnation: l.Incarnation}
	now := time.Now()
	listed := make(map[string]bool, len(l.Sessions))
	for _, s := range l.Sessions {
		listed[s.ID] = true
		have, ok := p.pinned[s.ID]
		if !ok || now.Sub(have.told) > toldFor || have.Pin == at && have.state == s.State {
			p.put(s.ID, pin{Pin: at, state: s.State})
		} else if have.Pin == at {
			have.unlisted = false
			p.pinned[s.ID] = have
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
	for node, sessions := range p.on {
		since, known := p.lost[node]
		switch {
		case nodes[node]:
		case !known:
			p.lost[node] = now
		case now.Sub(since) > lostFor:
			for s := range sessions {
				p.drop(s)
			}
			delete(p.lost, node)
		}
	}
}

// heard reports whether the process's list has arrived, and a channel closed when another one has.
func (p *pins) heard(at router.Pin) (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed[at.Node] == at.Incarnation, p.change
}

func (p *pins) put(session string, at pin) {
	p.drop(session)
	p.pinned[session] = at
	if p.on[at.Node] == nil {
		p.on[at.Node] = map[string]bool{}
	}
	p.on[at.Node][session] = true
}

func (p *pins) drop(session string) {
	have, ok := p.pinned[session]
	if !ok {
		return
	}
	delete(p.pinned, session)
	delete(p.on[have.Node], session)
	if len(p.on[have.Node]) == 0 {
		delete(p.on, have.Node)
	}
}

// count returns the sessions that are active and those in a transaction.
func (p *pins) count() (active, inTransaction int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for s, last := range p.seen {
		if now.Sub(last) <= sessionIdle {
			active++
		} else if _, pinned := p.pinned[s]; pinned {
			active++
		}
	}
	for _, at := range p.pinned {
		if at.state == wire.InTransaction && !at.stale(now) {
			inTransaction++
		}
	}
	return active, inTransaction
}
