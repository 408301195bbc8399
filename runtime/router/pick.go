package router

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

var (
	// ErrNoNode is matched by the error of Pick when no node can take the statement now.
	ErrNoNode = errors.New("no node")
	// ErrPinLost is matched by the error of Pick when the process that the session was on is gone.
	ErrPinLost = errors.New("pinned node disappeared")
	// ErrPinAway is matched by the error of Pick while the pinned node does not answer but may again.
	ErrPinAway = errors.New("pinned node does not answer")
)

// Pin is the process that holds a session's state.
type Pin struct{ Node, Incarnation string }

// Request is a statement to route. The zero value asks for any node that writes.
type Request struct {
	Pool  string // as tenant/pool, for the words of errors
	Class wire.Class
	Pin   *Pin // nil: none
	// Exclude lists nodes that were tried already.
	Exclude []string
	// Fingerprint of a statement decides between equally loaded nodes, so that the same statement
	// meets warm caches. Zero: none, and chance decides.
	Fingerprint uint64
}

// scanLimit is the number of nodes up to which all are compared; above it the better of two is taken.
const scanLimit = 16

// NodeError says why no node was picked. It matches one of the errors above.
type NodeError struct {
	Kind error
	Text string
}

func (e *NodeError) Error() string        { return e.Text }
func (e *NodeError) Is(target error) bool { return target == e.Kind }

// Pick returns the node for the statement: only a serving one of the right role, and of those the one
// with the lowest load. A pinned statement goes to its node, also while that drains.
func Pick(members []backend.Member, r Request, load func(nodeID string) int) (backend.Member, error) {
	if r.Pin != nil {
		return pinned(members, r)
	}
	var able []backend.Member
	serving := 0
	for _, m := range members {
		if m.Phase != backend.Serving {
			continue
		}
		serving++
		if !slices.Contains(r.Exclude, m.ID) {
			able = append(able, m)
		}
	}
	able = byRole(able, r.Class)
	if len(able) > 0 {
		return least(able, r, load), nil
	}
	text := fmt.Sprintf("pool %s: %d of %d nodes serving", r.Pool, serving, len(members))
	if serving > 0 {
		text += fmt.Sprintf(", none that takes a %s now", word(r.Class))
	}
	return backend.Member{}, &NodeError{ErrNoNode, text}
}

func pinned(members []backend.Member, r Request) (backend.Member, error) {
	i := slices.IndexFunc(members, func(m backend.Member) bool { return m.ID == r.Pin.Node })
	if i < 0 || members[i].Incarnation != r.Pin.Incarnation || members[i].Phase == backend.Gone {
		return backend.Member{}, &NodeError{ErrPinLost, fmt.Sprintf("pool %s: %s", r.Pool, ErrPinLost)}
	}
	if p := members[i].Phase; p != backend.Serving && p != backend.Draining {
		return backend.Member{}, &NodeError{ErrPinAway, fmt.Sprintf("pool %s: %s", r.Pool, ErrPinAway)}
	}
	return members[i], nil
}

// byRole keeps the nodes whose role takes the class. Settings and metadata run anywhere, if need be.
func byRole(members []backend.Member, class wire.Class) []backend.Member {
	want := backend.Write
	if class == wire.Read || class == wire.Metadata {
		want = backend.Read
	}
	fit := slices.DeleteFunc(slices.Clone(members), func(m backend.Member) bool {
		return m.Role != want && m.Role != backend.Dual
	})
	if len(fit) == 0 && (class == wire.Setting || class == wire.Metadata) {
		return members
	}
	return fit
}

func word(c wire.Class) string {
	if c == wire.Read || c == wire.Metadata {
		return "read"
	}
	return "write"
}

func least(able []backend.Member, r Request, load func(string) int) backend.Member {
	if len(able) > scanLimit {
		i := rand.IntN(len(able))
		j := (i + 1 + rand.IntN(len(able)-1)) % len(able)
		able = []backend.Member{able[i], able[j]}
	}
	var best []backend.Member
	lowest := 0
	for _, m := range able {
		n := load(m.ID)
		if len(best) == 0 || n < lowest {
			best, lowest = best[:0], n
		}
		if n == lowest {
			best = append(best, m)
		}
	}
	if r.Fingerprint == 0 {
		return best[rand.IntN(len(best))]
	}
	return slices.MaxFunc(best, func(a, b backend.Member) int {
		if weight(r.Fingerprint, a.ID) < weight(r.Fingerprint, b.ID) {
			return -1
		}
		return 1
	})
}

// weight is the rendezvous weight: when nodes come or go, only their own share moves.
func weight(fingerprint uint64, node string) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, fingerprint))
	h.Write([]byte(node))
	x := h.Sum64() // FNV alone leaves the last bytes, in which node ids differ, in the low bits
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
