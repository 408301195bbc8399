package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

func TestDrainWaitsForWork(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		id := s.world.ids()[0]
		s.world.change(id, func(n *fakeNode) { n.status.InFlight, n.status.Transactions = 1, 1 })
		s.put("pool", plus(dual(1), "suspended", cty.True))
		pass(5 * time.Second)
		s.expect(l, pool, draining)
		if s.world.nodes[id].drains != 1 || s.rows()[id].Phase != "draining" {
			t.Errorf("drained %d times, row %+v", s.world.nodes[id].drains, s.rows()[id])
		}
		s.world.change(id, func(n *fakeNode) { n.status.InFlight = 0 })
		pass(5 * time.Second)
		s.expect(l, pool, draining) // a transaction is open
		s.world.change(id, func(n *fakeNode) { n.status.Transactions = 0 })
		pass(time.Second)
		s.expect(l, pool)
		if len(s.world.ids()) != 0 || len(s.rows()) != 0 {
			t.Errorf("left: nodes %v, rows %v", s.world.ids(), s.rows())
		}
		s.put("pool", dual(1))
		pass(2 * time.Second)
		s.expect(l, pool, serving)
		s.world.change(s.world.ids()[0], func(n *fakeNode) { n.status.InFlight = 1 })
		s.bury("pool", "bi")
		pass(59 * time.Second)
		s.expect(l, pool, draining)
		pass(3 * time.Second) // the drain limit
		s.expect(l, pool)
		if len(s.rows()) != 0 {
			t.Errorf("rows of a deleted pool: %v", s.rows())
		}
	})
}

func TestRollingChange(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		before := s.world.ids()
		for _, id := range before {
			s.world.change(id, func(n *fakeNode) { n.status.InFlight = 1 })
		}
		s.put("pool", plus(dual(2), "threads", cty.NumberIntVal(7)))
		pass(500 * time.Millisecond)
		s.expect(l, pool, serving, serving, starting)
		pass(time.Second)
		s.expect(l, pool, serving, serving, draining)
		for _, id := range before {
			s.world.change(id, func(n *fakeNode) { n.status.InFlight = 0 })
		}
		for range 100 { // at no time do fewer than two serve
			pass(50 * time.Millisecond)
			n := 0
			for _, p := range phases(l.cfg.Fleet, pool) {
				if p == serving {
					n++
				}
			}
			if n < 2 {
				t.Fatalf("%d nodes serve during the change", n)
			}
		}
		s.expect(l, pool, serving, serving)
		for _, id := range s.world.ids() {
			if slices.Contains(before, id) {
				t.Errorf("node %s has the old spec", id)
			}
		}
		if got := s.world.started(pool); got != 4 {
			t.Errorf("%d starts", got)
		}
	})
}

func TestScale(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		l, stop := s.run(s.config())
		defer stop()
		pass(2 * time.Second)
		first := s.world.ids()
		s.put("pool", dual(3))
		pass(2 * time.Second)
		s.expect(l, pool, serving, serving, serving)
		s.world.change(first[0], func(n *fakeNode) { n.status.Sessions = 3 })
		pass(6 * time.Second)
		s.put("pool", dual(1))
		pass(2 * time.Second)
		s.expect(l, pool, serving)
		if diff := cmp.Diff(first, s.world.ids()); diff != "" {
			t.Errorf("the node with sessions was drained:\n%s", diff)
		}
		s.put("pool", dual(0))
		pass(2 * time.Second)
		s.expect(l, pool)
	})
}

func TestLiveSettingsAndKeys(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		_, stop := s.run(s.config())
		defer stop()
		pass(6 * time.Second)
		id := s.world.ids()[0]
		node := s.world.nodes[id]
		s.put("pool", plus(dual(1), "max_concurrent_per_node", cty.NumberIntVal(3)))
		s.rotate(clusterKey(2), clusterKey(1))
		pass(6 * time.Second)
		ring, err := s.ring().Pool(pool)
		if err != nil {
			t.Fatal(err)
		}
		if node.live != (wire.Live{MaxConcurrent: 3}) || node.settings != 4 {
			t.Errorf("live settings %+v after %d calls", node.live, node.settings)
		}
		if diff := cmp.Diff(ring.Keys(), node.keys); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		pass(time.Hour)
		if node.settings != 4 || s.world.started(pool) != 1 || s.world.ids()[0] != id {
			t.Errorf("%d calls and %d starts", node.settings, s.world.started(pool))
		}
	})
}

func TestDeadApplyIsFinished(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		intent := store.Node{
			ID: uuid.NewString(), PoolID: pool, Host: "here", Role: "dual", SpecHash: "x", Phase: "starting",
		}
		if err := s.store.PutNode(s.t.Context(), intent); err != nil {
			t.Fatal(err)
		}
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		s.expect(l, pool, serving)
		if _, ok := s.rows()[intent.ID]; ok || len(s.rows()) != 1 {
			t.Errorf("rows %v", s.rows())
		}
	})
}

func TestForeignAnswersAreNotServed(t *testing.T) {
	changes := map[string]func(*wire.Status){
		"id":       func(s *wire.Status) { s.ID = "other" },
		"pool":     func(s *wire.Status) { s.PoolID = "other" },
		"spec":     func(s *wire.Status) { s.SpecHash = "other" },
		"role":     func(s *wire.Status) { s.Role = "read" },
		"process":  func(s *wire.Status) { s.PID++ },
		"version":  func(s *wire.Status) { s.Version = wire.Version + 1 },
		"no birth": func(s *wire.Status) { s.Incarnation = "" },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(s *story) {
				pool := s.put("pool", dual(1))
				_, stop := s.run(s.config())
				pass(3 * time.Second)
				stop()
				s.world.change(s.world.ids()[0], func(n *fakeNode) { change(&n.status) })
				l, stop := s.run(s.config())
				defer stop()
				pass(30 * time.Second)
				s.expect(l, pool, starting)
			})
		})
	}
}

// watched is a backend and node rows that count what changes something.
type watched struct {
	*fakeWorld
	*store.Memory
	changes int
}

func (w *watched) Start(context.Context, string, backend.Spec) (backend.Node, error) {
	w.changes++
	return backend.Node{}, errors.New("no")
}

func (w *watched) Stop(context.Context, string, time.Duration) error { w.changes++; return nil }

func (w *watched) PutNode(context.Context, store.Node) error { w.changes++; return nil }

func (w *watched) SawNodes(context.Context, []string) error { w.changes++; return nil }

func (w *watched) RemoveNode(context.Context, string) error { w.changes++; return nil }

func TestFollower(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		_, stop := s.run(s.config())
		pass(3 * time.Second)
		stop()
		told := s.world.told()
		w := &watched{fakeWorld: s.world, Memory: s.store}
		cfg := s.desk.config(w, "here", nil)
		cfg.Nodes = w
		l, stopFollower := s.run(cfg)
		pass(time.Second)
		s.expect(l, pool, serving, serving)
		frozen := s.world.ids()[0]
		s.world.change(frozen, func(n *fakeNode) { n.hang = true })
		s.put("pool", dual(1))
		pass(time.Minute)
		s.expect(l, pool, serving, quarantined)
		s.put("pool", plus(dual(1), "suspended", cty.True))
		pass(time.Minute)
		if w.changes != 0 || s.world.told() != told {
			t.Errorf("a follower changed %d things and told nodes %d", w.changes, s.world.told()-told)
		}
		stopFollower()

		turn := make(chan struct{})
		l, stop = s.run(s.desk.config(s.world, "here", turn))
		defer stop()
		pass(5 * time.Second)
		if n := len(s.world.ids()); n != 2 {
			t.Errorf("%d nodes before its turn", n)
		}
		close(turn)
		pass(90 * time.Second)
		s.expect(l, pool)
		if n := len(s.world.ids()); n != 0 {
			t.Errorf("%d nodes after its turn", n)
		}
	})
}

func TestPoolsOfAnotherHostAreLeftAlone(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		other := store.Node{
			ID: uuid.NewString(), PoolID: pool, Host: "there", Role: "dual", Endpoint: "x", Phase: "serving", SpecHash: "x",
		}
		if err := s.store.PutNode(s.t.Context(), other); err != nil {
			t.Fatal(err)
		}
		before := s.revision()
		l, stop := s.run(s.config())
		defer stop()
		pass(10 * time.Minute)
		s.expect(l, pool)
		if s.world.started(pool) != 0 || s.revision() != before {
			t.Errorf("%d starts, %d writes", s.world.started(pool), s.revision()-before)
		}
	})
}

func TestAPoolThatHangsDelaysNoOther(t *testing.T) {
	bubble(t, func(s *story) {
		s.world.hangFor = s.put("pool", dual(1))
		good := s.put("pool", plus(dual(1), "name", cty.StringVal("good")))
		unlucky := s.put("pool", plus(plus(dual(1), "name", cty.StringVal("unlucky")), "threads", cty.NumberIntVal(13)))
		l, stop := s.run(s.config())
		defer stop()
		pass(2 * time.Second)
		s.expect(l, good, serving)
		s.expect(l, unlucky)
		s.world.kill(s.world.ids()[0], "killed")
		pass(2 * time.Second)
		s.expect(l, good, serving)
		if want := "pool.acme/unlucky: 1 of 1 node missing: no luck"; !strings.Contains(l.report().String(), want) {
			t.Errorf("report %q, want %q", l.report(), want)
		}
	})
}

func TestConverge(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		converge := func(limit time.Duration) ([]string, error) {
			l, err := New(s.config())
			if err != nil {
				t.Fatal(err)
			}
			l.dial = s.world.dial
			ctx, cancel := context.WithTimeout(s.t.Context(), limit)
			defer cancel()
			var said []string
			r, err := l.Converge(ctx, func(r Report) { said = append(said, r.String()) })
			if r.Converged() != (err == nil) {
				t.Errorf("report %+v with error %v", r, err)
			}
			return said, err
		}
		said, err := converge(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if first, last := said[0], said[len(said)-1]; first != "pool.acme/bi: 2 of 2 nodes missing" || last != "" {
			t.Errorf("progress %q", said)
		}
		before := s.revision()
		if _, err := converge(time.Minute); err != nil || s.revision() != before {
			t.Errorf("a second time: %v, %d writes", err, s.revision()-before)
		}
		s.world.mu.Lock()
		s.world.ready = time.Hour
		s.world.mu.Unlock()
		s.put("pool", dual(3))
		_, err = converge(10 * time.Second)
		missing := "pool.acme/bi: 1 of 3 nodes missing: 1 starting"
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), missing) {
			t.Errorf("error %v", err)
		}
		if n := s.world.started(pool); n != 3 {
			t.Errorf("%d starts", n)
		}
	})
}

func TestObserveChangesNothing(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		_, stop := s.run(s.config())
		pass(3 * time.Second)
		stop()
		s.world.change(s.world.ids()[0], func(n *fakeNode) { n.hang = true })
		s.put("pool", dual(3))
		before, told := s.revision(), s.world.nodes[s.world.ids()[1]].settings
		l, err := New(s.config())
		if err != nil {
			t.Fatal(err)
		}
		l.dial = s.world.dial
		snap, err := l.cfg.Store.Snapshot(s.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		states, err := l.Observe(s.t.Context(), snap)
		if err != nil {
			t.Fatal(err)
		}
		got := states[pool]
		if got.Wanted != 3 || got.Converged || got.Nodes[serving] != 1 || got.Nodes[starting] != 1 {
			t.Errorf("state %+v", got)
		}
		if want := "2 of 3 nodes missing: 1 starting, no answer within 2s"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if s.revision() != before || s.world.started(pool) != 2 || s.world.nodes[s.world.ids()[1]].settings != told {
			t.Error("observe changed something")
		}
	})
}

func TestObserveSeesWhatIsNotRecorded(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		cfg := s.config()
		_, stop := s.run(cfg)
		pass(3 * time.Second)
		stop()
		observe := func() PoolState {
			l, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			l.dial = s.world.dial
			snap, err := cfg.Store.Snapshot(s.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			states, err := l.Observe(s.t.Context(), snap)
			if err != nil {
				t.Fatal(err)
			}
			return states[pool]
		}
		if got := observe(); !got.Converged {
			t.Errorf("state %+v", got)
		}
		rows, err := cfg.Nodes.ListNodes(s.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows[0].Phase, rows[0].Incarnation = string(starting), ""
		if err := cfg.Nodes.PutNode(s.t.Context(), rows[0]); err != nil {
			t.Fatal(err)
		}
		if got := observe(); got.Converged || !strings.Contains(got.Message, "not recorded") {
			t.Errorf("a node serves, and its row says that it starts: state %+v", got)
		}
	})
}
