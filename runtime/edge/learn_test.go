package edge

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/backend"
)

// A new edge sends no session on while a node that may hold it is not known yet.
func TestNewEdgeWaitsForNodesThatAreNotProbedYet(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if _, _, err := query(ctx, c, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	home, other := holder(t, one, two)
	unknown := home.member(backend.Starting)
	unknown.Incarnation, unknown.Probed = "", time.Time{}
	s.publish(unknown, other.member(backend.Serving))
	_, addr = s.edge()
	type answer struct {
		who string
		err error
	}
	got := make(chan answer, 1)
	go func() {
		who, _, err := query(ctx, s.client(addr), "SELECT who")
		got <- answer{who, err}
	}()
	select {
	case a := <-got:
		t.Fatalf("it did not wait: %+v", a)
	case <-time.After(100 * time.Millisecond):
	}
	s.serving(one, two)
	if a := <-got; a.err != nil || a.who != home.id {
		t.Errorf("the transaction went on at %q, %v", a.who, a.err)
	}
}

func TestNodesThatTellNoSessions(t *testing.T) {
	tests := map[string]struct {
		phase  backend.Phase
		probed bool
		refuse bool
	}{
		"starting":           {backend.Starting, false, false},
		"quarantined":        {backend.Quarantined, false, true},
		"draining":           {backend.Draining, false, true},
		"probed some time":   {backend.Starting, true, true},
		"gone, but for that": {backend.Gone, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			dead, good := s.peer(backend.Dual), s.peer(backend.Dual)
			dead.kill()
			m := dead.member(tc.phase)
			m.Probed = time.Time{}
			if tc.probed {
				m.Probed = time.Now()
			}
			s.publish(m, good.member(backend.Serving))
			_, begun := s.edge()
			ctx := s.login(s.client(begun), "ana")
			e, addr := s.edge() // has not seen the session
			c := s.client(addr)
			for range 2 { // a session that was refused is not known for that
				who, _, err := query(ctx, c, "SELECT who")
				if tc.refuse {
					lost(t, err, codes.Unavailable, "have not told their sessions yet")
				} else if err != nil || who != good.id {
					t.Errorf("%q, %v", who, err)
				}
			}
			if active, _ := e.pins.count(); tc.refuse == (active > 0) {
				t.Errorf("%d sessions are known", active)
			}
		})
	}
}

// What closes or cancels is answered in the place of a node that is gone, and tells nobody that the
// session's state went with it: the next statement does.
func TestCloseDoesNotSwallowALoss(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if _, _, err := query(ctx, c, "SET x"); err != nil {
		t.Fatal(err)
	}
	st, err := c.Prepare(ctx, "SELECT who")
	if err != nil {
		t.Fatal(err)
	}
	one.kill()
	s.serving(two)
	if err := st.Close(ctx); err != nil {
		t.Errorf("close of what is gone anyway: %v", err)
	}
	_, _, err = query(ctx, c, "SELECT who")
	lost(t, err, codes.Unavailable, "settings and temporary objects of the session are lost")
	if who, _, err := query(ctx, c, "SELECT who"); err != nil || who != two.id {
		t.Errorf("the session afterwards: %q, %v", who, err)
	}
}
