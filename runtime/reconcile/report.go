package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/schema"
)

// PoolState is how far a pool's nodes are from what is asked.
type PoolState struct {
	ID        string
	Addr      schema.Addr
	Wanted    int
	Nodes     map[backend.Phase]int // those that exist
	Converged bool
	// Message says what is missing or too much, and why; of a converged pool, why it has no nodes.
	Message string
}

// Report says how far all pools are.
type Report struct {
	Pools []PoolState // by address
}

// Converged reports whether nothing is missing or too much anywhere.
func (r Report) Converged() bool {
	return !slices.ContainsFunc(r.Pools, func(p PoolState) bool { return !p.Converged })
}

// String lists the pools that have not converged.
func (r Report) String() string {
	var lines []string
	for _, p := range r.Pools {
		if !p.Converged {
			lines = append(lines, fmt.Sprintf("%s: %s", p.Addr, p.Message))
		}
	}
	return strings.Join(lines, "; ")
}

func (r Report) equal(other Report) bool {
	return slices.EqualFunc(r.Pools, other.Pools, func(a, b PoolState) bool {
		return a.ID == b.ID && a.Addr == b.Addr && a.Converged == b.Converged && a.Message == b.Message
	})
}

// Report says how far all pools are, as of the last round. False: the first pass is not over.
func (l *Loop) Report() (Report, bool) {
	select {
	case <-l.first:
		return l.report(), true
	default:
		return Report{}, false
	}
}

func (l *Loop) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	var r Report
	for _, p := range l.pools {
		r.Pools = append(r.Pools, p.state)
	}
	r.sort()
	return r
}

func (r Report) sort() {
	slices.SortFunc(r.Pools, func(a, b PoolState) int { return strings.Compare(a.Addr.String(), b.Addr.String()) })
}

func state(t target, v verdict, have []view) PoolState {
	s := PoolState{
		ID: t.id, Addr: t.addr, Converged: v.converged, Message: v.message, Nodes: map[backend.Phase]int{},
	}
	for _, n := range t.count {
		s.Wanted += n
	}
	for _, h := range have {
		s.Nodes[h.phase]++
	}
	return s
}
