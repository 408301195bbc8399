package reconcile

import (
	"testing"
	"time"
)

// A node that served an earlier manager is no failed start, although this one never saw it serve.
func TestAdoptedNodeThatIsNotReadyIsKept(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		_, stop := s.run(s.config())
		pass(3 * time.Second)
		stop()
		id := s.world.ids()[0]
		s.world.change(id, func(n *fakeNode) { n.status.Ready, n.status.Message = false, "its catalog is away" })
		l, stop := s.run(s.config())
		defer stop()
		pass(10 * time.Minute)
		s.expect(l, pool, quarantined)
		if got := s.world.ids(); s.world.stops != 0 || got[0] != id {
			t.Errorf("nodes %v after %d stops, want %s", got, s.world.stops, id)
		}
		s.world.change(id, func(n *fakeNode) { n.status.Ready = true })
		pass(2 * time.Second)
		s.expect(l, pool, serving)
	})
}

// What was wrongly thought gone is taken back, and never ended.
func TestNodeThatIsNotGoneIsTakenBack(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		if r, ok := l.Report(); !ok || !r.Converged() {
			t.Errorf("report %q, %t", r, ok)
		}
		id := s.world.ids()[0]
		s.world.exits <- id
		pass(10 * time.Second)
		s.expect(l, pool, serving)
		if got := s.world.ids(); s.world.stops != 0 || len(got) != 1 || got[0] != id {
			t.Errorf("nodes %v after %d stops, want %s", got, s.world.stops, id)
		}
		l.mu.Lock()
		p, m := l.pools[pool], l.members[id]
		l.gone(m, "by mistake")
		l.leave(s.t.Context(), p, m, step{do: forget, id: id}, time.Now())
		l.mu.Unlock()
		pass(10 * time.Second)
		s.expect(l, pool, serving)
		if s.world.stops != 0 {
			t.Error("a node that runs was ended as remains")
		}
	})
}
