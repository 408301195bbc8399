package node

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// TestSweepTellsWhatIsLost: a session whose lanes were taken stays on the node until it was told so.
func TestSweepTellsWhatIsLost(t *testing.T) {
	tests := map[string]struct {
		main    *lane
		extra   string // id of a transaction of the protocol
		forgive []string
		state   wire.State
	}{
		"settings":                        {main: &lane{stateful: true}, state: wire.Stateful},
		"transaction":                     {main: &lane{open: true}, state: wire.Stateful},
		"transaction of the protocol":     {main: &lane{open: true, transaction: "x"}, state: wire.Stateful},
		"rolled back by its client":       {main: &lane{open: true, transaction: "x"}, forgive: []string{"x"}, state: wire.Free},
		"another one rolled back":         {main: &lane{open: true, transaction: "x"}, forgive: []string{"y"}, state: wire.Stateful},
		"rolled back, but with settings":  {main: &lane{open: true, stateful: true, transaction: "x"}, forgive: []string{"x"}, state: wire.Stateful},
		"one of two rolled back":          {main: &lane{open: true}, extra: "x", forgive: []string{"x"}, state: wire.Stateful},
		"both of two rolled back":         {main: &lane{open: true, transaction: "y"}, extra: "x", forgive: []string{"x", "y"}, state: wire.Free},
		"settings, and x that never was":  {main: &lane{stateful: true}, forgive: []string{"x"}, state: wire.Stateful},
		"beside a transaction's own lane": {extra: "x", state: wire.Stateful},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newSessions()
			n, done := r.use(&call{Assertion: wire.Assertion{Session: "s1"}})
			n.main = test.main
			var ids []string
			if test.extra != "" {
				n.extra[test.extra] = &lane{open: true, transaction: test.extra}
				ids = append(ids, test.extra)
			}
			if test.main != nil && test.main.transaction != "" {
				ids = append(ids, test.main.transaction)
			}
			done()
			lanes := r.sweep(time.Now().Add(time.Hour), time.Minute)
			if len(lanes) == 0 {
				t.Error("no lane was taken")
			}
			for _, l := range lanes {
				if !l.gone {
					t.Error("a lane that was taken is not gone")
				}
			}
			for _, id := range ids {
				if _, err := (&server{}).choose(n, id, true); asFault(err).code != codes.FailedPrecondition {
					t.Errorf("transaction %s goes on: %v", id, err)
				}
			}
			for _, id := range test.forgive {
				n.forgive(id)
			}
			if got := r.stateOf("s1"); got != test.state {
				t.Errorf("the session is %s, want %s", got, test.state)
			}
			if err := n.takeLost(); (err != nil) != (test.state == wire.Stateful) {
				t.Errorf("told: %v", err)
			}
			if err := n.takeLost(); err != nil || r.stateOf("s1") != wire.Free || n.known != wire.Free {
				t.Errorf("after it was told: %v, %s, published %s", err, r.stateOf("s1"), n.known)
			}
		})
	}
}

// TestClosedSession: what still runs in it gives its connection back, and it gets no other.
func TestClosedSession(t *testing.T) {
	s := &server{sessions: newSessions(), changes: newChanges(), plans: newPlans()}
	n, done := s.sessions.use(&call{Assertion: wire.Assertion{Session: "s1"}})
	defer done()
	l, err := s.enter(t.Context(), n, "", true)
	if err != nil {
		t.Fatal(err)
	}
	l.open = true
	if err := l.grip.alone(t.Context()); err != nil {
		t.Fatal(err)
	}
	lanes := s.sessions.remove("s1")
	for _, id := range []string{"", "x"} {
		if _, err := s.enter(t.Context(), n, id, true); asFault(err).code != codes.Aborted {
			t.Errorf("the closed session gets a lane for %q: %v", id, err)
		}
	}
	s.leave(n, l)
	if l.grip.holds != holdsNothing {
		t.Error("the lane that was left still holds the latch")
	}
	s.closeLanes(t.Context(), lanes) // which finds the lane as it should be
	n.transactionEnded(l)
	if n.main != nil {
		t.Error("the closed session has a lane again")
	}
}

// TestLaneThatChangedHands: who waited for a lane that became another transaction's looks for another.
func TestLaneThatChangedHands(t *testing.T) {
	s := &server{sessions: newSessions(), changes: newChanges(), plans: newPlans()}
	n, done := s.sessions.use(&call{Assertion: wire.Assertion{Session: "s1"}})
	defer done()
	l, err := s.enter(t.Context(), n, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	l.stateful = true
	waited := make(chan error)
	go func() {
		_, err := s.enter(t.Context(), n, "x", true)
		waited <- err
	}()
	n.mu.Lock()
	n.transactionEnded(l)
	n.mu.Unlock()
	s.leave(n, l)
	if err := <-waited; err == nil || asFault(err).code != codes.FailedPrecondition {
		t.Errorf("a statement of the ended transaction: %v", err)
	}
	if got, err := s.enter(t.Context(), n, "", true); err != nil || got != l {
		t.Errorf("the session's own statement is not on its lane: %v", err)
	}
}
