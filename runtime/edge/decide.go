package edge

import "github.com/qod-io/qod/runtime/wire"

// step is what to do after an attempt.
type step int

const (
	finish      step = iota // tell the client how it ended
	permissions             // repeat it, with the permission set
	reroute                 // repeat it on a node of the other role
	again                   // repeat it when there is a place
	elsewhere               // repeat it on another node
)

// facts are what decides, beside the outcome, whether a call may be repeated.
type facts struct {
	pinned     bool // nothing but this node will do
	safe       bool // the call changes nothing, by its kind
	read       bool // the statement only reads, as far as known
	replayable bool // all that the client sent is still there
	asked      bool // the permission set was sent
	rerouted   bool
	alone      bool // no other node could take it now
	waited     bool // as long as a statement may wait for a place
	moved      int  // attempts on other nodes so far
}

// mostMoves bounds the nodes that are tried when each refuses before it begins.
const mostMoves = 3

// decide is pure. A call is repeated only if the node says that nothing was done, or if it cannot
// have begun; or once, if it only reads, nothing reached the client, another node is there and the budget
// allows.
func decide(o outcome, f facts, budget func() bool) step {
	if o.err == nil || o.delivered || o.clientGone || !f.replayable {
		return finish
	}
	switch o.reason {
	case wire.NeedPermissions:
		if !f.asked {
			return permissions
		}
		return finish
	case wire.WrongRole:
		if !f.rerouted && !f.pinned {
			return reroute
		}
		return finish
	case wire.Busy:
		if !f.waited {
			return again
		}
		return finish
	case wire.Draining:
		if !f.pinned && f.moved < mostMoves {
			return elsewhere
		}
		return finish
	}
	if f.pinned {
		return finish
	}
	if !o.started && f.moved < mostMoves {
		return elsewhere
	}
	fault := o.broken() || o.reason == wire.Transient || o.reason == wire.Fatal
	if fault && (f.safe || f.read) && f.moved == 0 && !f.alone && budget() {
		return elsewhere
	}
	return finish
}
