package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
)

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, nil))
}

// story is a fake world with a store and the loops over it, in a bubble of fake time.
type story struct {
	*desk
	t     *testing.T
	world *fakeWorld
}

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(s *story)) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeWorld(t)
		test(&story{desk: newDesk(t, w.store), t: t, world: w})
	})
}

func (s *story) config() Config { return s.desk.config(s.world, "here", acts()) }

// run runs a loop until stop is called.
func (s *story) run(cfg Config) (l *Loop, stop func()) {
	s.t.Helper()
	l, err := New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	l.dial = s.world.dial
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	}
}

// pass lets fake time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// phases says in which phase the fleet has each node of a pool.
func phases(f *backend.Fleet, pool string) map[string]backend.Phase {
	s, _ := f.Current()
	got := map[string]backend.Phase{}
	for _, m := range s.Pools[pool] {
		got[m.ID] = m.Phase
	}
	return got
}

func (s *story) expect(l *Loop, pool string, want ...backend.Phase) {
	s.t.Helper()
	var got []backend.Phase
	for _, p := range phases(l.cfg.Fleet, pool) {
		got = append(got, p)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("nodes are %v, want %v: %s", got, want, l.report())
	}
}

func (s *story) revision() store.Revision {
	s.t.Helper()
	snap, err := s.store.Snapshot(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return snap.Revision
}

func (s *story) rows() map[string]store.Node {
	s.t.Helper()
	list, err := s.store.ListNodes(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	rows := map[string]store.Node{}
	for _, r := range list {
		rows[r.ID] = r
	}
	return rows
}

const (
	starting    = backend.Starting
	serving     = backend.Serving
	quarantined = backend.Quarantined
	draining    = backend.Draining
)

func TestPoolStartsAndThenNothingIsWritten(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		cfg := s.config()
		cfg.ReconcileInterval = 30 * time.Second
		l, stop := s.run(cfg)
		defer stop()
		pass(500 * time.Millisecond)
		s.expect(l, pool, starting, starting)
		pass(time.Second)
		s.expect(l, pool, serving, serving)
		for id, r := range s.rows() {
			n := s.world.nodes[id]
			want := store.Node{
				ID: id, PoolID: pool, Host: "here", Role: "dual", Endpoint: id, PID: n.node.PID,
				Started: store.Stamp(n.node.Started), SpecHash: n.node.SpecHash, Incarnation: n.status.Incarnation,
				Phase: "serving",
			}
			if !r.Seen.IsZero() {
				t.Errorf("seen at %s already", r.Seen)
			}
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		}
		before := s.revision()
		snapshot, changed := l.cfg.Fleet.Current()
		pass(10 * time.Minute)
		if got := s.revision(); got != before {
			t.Errorf("%d writes in a steady state", got-before)
		}
		select {
		case <-changed:
			t.Errorf("the fleet was published again:\n%s", cmp.Diff(snapshot, l.published))
		default:
		}
		if got := s.world.started(pool); got != 2 {
			t.Errorf("%d starts", got)
		}
		for id, r := range s.rows() {
			if age := time.Since(r.Seen); age > seenInterval {
				t.Errorf("node %s was seen %s ago", id, age)
			}
		}
	})
}

func TestFirstPass(t *testing.T) {
	bubble(t, func(s *story) {
		s.put("pool", dual(2))
		_, stop := s.run(s.config())
		pass(5 * time.Second)
		stop()
		s.world.change(s.world.ids()[0], func(n *fakeNode) { n.hang = true })
		l, stop := s.run(s.config())
		defer stop()
		pass(time.Second)
		select {
		case <-l.FirstPass():
			t.Error("the first pass is over while a node was not heard")
		default:
		}
		pass(2 * time.Second)
		select {
		case <-l.FirstPass():
		default:
			t.Error("the first pass does not end")
		}
	})
}

func TestAnotherManagerAdopts(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(3))
		_, stop := s.run(s.config())
		pass(5 * time.Second)
		stop()
		before := s.revision()
		l, stop := s.run(s.config())
		defer stop()
		pass(100 * time.Millisecond)
		s.expect(l, pool, serving, serving, serving)
		if got := s.world.started(pool); got != 3 || s.world.stops != 0 {
			t.Errorf("%d starts and %d stops in all", got, s.world.stops)
		}
		if got := s.revision(); got != before {
			t.Errorf("%d writes for adopting what is written down", got-before)
		}
		pass(2 * time.Minute) // adopted nodes are older than the limit for starting
		s.expect(l, pool, serving, serving, serving)
		for _, id := range s.world.ids() {
			if n := s.world.nodes[id]; n.settings != 4 { // each manager tells it live settings and keys once
				t.Errorf("node was told %d things", n.settings)
			}
		}
	})
}

func TestFrozenNode(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		ids := s.world.ids()
		s.world.change(ids[0], func(n *fakeNode) { n.hang = true })
		pass(7100 * time.Millisecond) // an interval and a deadline
		if got := phases(l.cfg.Fleet, pool); got[ids[0]] != quarantined || got[ids[1]] != serving {
			t.Errorf("phases %v", got)
		}
		s.world.change(ids[0], func(n *fakeNode) { n.hang = false })
		pass(3 * time.Second)
		s.expect(l, pool, serving, serving)
		s.world.change(ids[0], func(n *fakeNode) { n.hang = true })
		l.cfg.Fleet.Suspect(ids[0])
		pass(2100 * time.Millisecond) // a suspicion is followed at once
		s.expect(l, pool, quarantined, serving)
		pass(33 * time.Second)
		s.expect(l, pool, serving, serving)
		if slices.Contains(s.world.ids(), ids[0]) {
			t.Error("a node that stays silent was not replaced")
		}
	})
}

func TestNodeThatAnswersButIsNotReadyIsKept(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(1))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		id := s.world.ids()[0]
		s.world.change(id, func(n *fakeNode) { n.status.Ready, n.status.Message = false, "its catalog is away" })
		pass(time.Hour)
		s.expect(l, pool, quarantined)
		if want := "pool.acme/bi: 1 of 1 node missing: 1 quarantined, its catalog is away"; l.report().String() != want {
			t.Errorf("report %q, want %q", l.report(), want)
		}
		s.world.change(id, func(n *fakeNode) { n.status.Ready = true })
		pass(2 * time.Second)
		s.expect(l, pool, serving)
		s.world.change(id, func(n *fakeNode) { n.status.Fatal = "invalidated" })
		pass(8 * time.Second)
		s.expect(l, pool, serving)
		if s.world.ids()[0] == id {
			t.Error("a node with an unusable engine was not replaced")
		}
	})
}

func TestCrashIsReplacedAtOnce(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		for range 2 {
			id := s.world.ids()[0]
			s.world.kill(id, "killed")
			pass(10 * time.Millisecond)
			s.expect(l, pool, serving, starting)
			pass(2 * time.Minute)
			s.expect(l, pool, serving, serving)
			if _, ok := s.rows()[id]; ok || len(s.rows()) != 2 {
				t.Errorf("rows %v", s.rows())
			}
		}
	})
}

func TestCrashLoopBacksOff(t *testing.T) {
	bubble(t, func(s *story) {
		s.world.crash = 200 * time.Millisecond
		pool := s.put("pool", dual(1))
		other := s.put("pool", plus(dual(1), "name", cty.StringVal("good")))
		l, stop := s.run(s.config())
		defer stop()
		pass(100 * time.Millisecond)
		s.world.mu.Lock()
		s.world.crash = 0
		s.world.mu.Unlock()
		pass(3 * time.Second)
		s.expect(l, pool, serving) // one failure costs nothing
		s.expect(l, other, serving)
		s.world.mu.Lock()
		s.world.crash = 200 * time.Millisecond
		s.world.mu.Unlock()
		for id := range phases(l.cfg.Fleet, pool) {
			s.world.kill(id, "killed")
		}
		pass(10 * time.Minute)
		s.expect(l, other, serving)
		at := s.world.starts[pool]
		if len(at) < 20 || len(at) > 35 {
			t.Errorf("%d starts", len(at))
		}
		for i := len(at) - 5; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < 30*time.Second || gap > 37*time.Second {
				t.Errorf("start %d came after %s", i, gap)
			}
		}
		if got := l.report().String(); !strings.Contains(got, "pool.acme/bi: 1 of 1 node missing: crashed; next start at") {
			t.Errorf("report %q", got)
		}
		s.world.mu.Lock()
		s.world.crash = 0
		s.world.mu.Unlock()
		s.put("pool", plus(dual(1), "threads", cty.NumberIntVal(3))) // a changed pool does not wait
		pass(2 * time.Second)
		s.expect(l, pool, serving)
	})
}

func TestNodeThatNeverBecomesReady(t *testing.T) {
	bubble(t, func(s *story) {
		s.world.ready = time.Hour
		pool := s.put("pool", dual(1))
		l, stop := s.run(s.config())
		defer stop()
		pass(59 * time.Second)
		first := s.world.ids()
		s.expect(l, pool, starting)
		pass(5 * time.Second)
		if second := s.world.ids(); len(second) != 1 || second[0] == first[0] {
			t.Errorf("nodes %v, then %v", first, second)
		}
	})
}

func TestUnreachableBackendChangesNothing(t *testing.T) {
	bubble(t, func(s *story) {
		pool := s.put("pool", dual(2))
		l, stop := s.run(s.config())
		defer stop()
		pass(3 * time.Second)
		before := s.revision()
		s.world.mu.Lock()
		s.world.listErr = errors.New("away")
		s.world.mu.Unlock()
		s.put("pool", dual(4))
		s.world.kill(s.world.ids()[0], "killed")
		pass(10 * time.Minute)
		if got := s.world.started(pool); got != 2 || s.world.stops != 0 || s.revision() != before+1 {
			t.Errorf("%d starts, %d stops, %d writes", got, s.world.stops, s.revision()-before-1)
		}
		s.world.mu.Lock()
		s.world.listErr = nil
		s.world.mu.Unlock()
		pass(40 * time.Second)
		s.expect(l, pool, serving, serving, serving, serving)
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, func(s *story) {
		s.put("pool", dual(1))
		cfg := s.config()
		registry := prometheus.NewRegistry()
		cfg.Registerer = registry
		_, stop := s.run(cfg)
		defer stop()
		pass(3 * time.Second)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range families {
			for _, m := range f.GetMetric() {
				line := f.GetName()
				for _, l := range m.GetLabel() {
					line += " " + l.GetName() + "=" + l.GetValue()
				}
				got = append(got, fmt.Sprintf("%s %g", line, m.GetGauge().GetValue()))
			}
		}
		want := []string{
			"node_healthy node=" + s.world.ids()[0] + " pool=bi tenant=acme 1",
			"pool_nodes phase=draining pool=bi tenant=acme 0",
			"pool_nodes phase=quarantined pool=bi tenant=acme 0",
			"pool_nodes phase=serving pool=bi tenant=acme 1",
			"pool_nodes phase=starting pool=bi tenant=acme 0",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
		if _, err := New(cfg); err == nil {
			t.Error("metrics are registered twice")
		}
	})
}
