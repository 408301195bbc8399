package reconcile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/local"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/fakenode"
)

func TestMain(m *testing.M) {
	fakenode.Main()
	os.Exit(m.Run())
}

// host is a real local backend, whose nodes are fake ones in real processes.
type host struct {
	*desk
	t         *testing.T
	config    local.Config
	database  string
	behaviour atomic.Pointer[string]
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "qod") // not t.TempDir: sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &host{desk: newDesk(t, store.NewMemory(nil)), t: t, database: uuid.NewString(), config: local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), DataRoot: filepath.Join(dir, "data"),
		Binary: self,
	}}
	h.behave("")
	b := h.open()
	if err := b.InitLake(t.Context(), wire.LakeTask{Lake: wire.Lake{Name: "sales", DatabaseID: h.database}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nodes, err := b.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, n := range nodes {
			if err := b.Stop(context.Background(), n.ID, 0); err != nil {
				t.Error(err)
			}
		}
	})
	return h
}

func (h *host) behave(how string) { h.behaviour.Store(&how) }

func (h *host) open() *local.Backend {
	h.t.Helper()
	b, err := local.New(h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// manage runs a manager, over a backend of its own, until stop is called.
func (h *host) manage() (l *Loop, stop func()) {
	h.t.Helper()
	cfg := h.desk.config(h.open(), "here", acts())
	cfg.ProbeInterval, cfg.ProbeTimeout = 500*time.Millisecond, 500*time.Millisecond
	cfg.Spec = func(s *store.Snapshot, o store.Object, role backend.Role) (backend.Spec, error) {
		spec, err := h.spec(s, o, role)
		spec.Lake = backend.Lake{Name: "sales", DatabaseID: h.database, Database: *h.behaviour.Load()}
		return spec, err
	}
	l, err := New(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(stop)
	return l, stop
}

// await waits until the fleet's nodes of a pool are as ok wants them, and returns how long it took.
func (h *host) await(l *Loop, pool, what string, within time.Duration, ok func([]backend.Member) bool) []backend.Member {
	h.t.Helper()
	deadline := time.After(within)
	for {
		s, changed := l.cfg.Fleet.Current()
		if ok(s.Pools[pool]) {
			return s.Pools[pool]
		}
		select {
		case <-changed:
		case <-deadline:
			h.t.Fatalf("not within %s: %s; nodes %+v, %s", within, what, s.Pools[pool], l.report())
		}
	}
}

func allServe(n int) func([]backend.Member) bool {
	return func(members []backend.Member) bool {
		for _, m := range members {
			if m.Phase != backend.Serving {
				return false
			}
		}
		return len(members) == n
	}
}

// pids maps the pids to the start times that the kernel tells, the one truth about who survived.
func pids(t *testing.T, members []backend.Member) map[int]string {
	t.Helper()
	got := map[int]string{}
	for _, m := range members {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", m.PID))
		if err != nil {
			t.Fatal(err)
		}
		got[m.PID] = info.ModTime().String()
	}
	return got
}

func signalNode(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

func TestKilledNodeIsReplaced(t *testing.T) {
	h := newHost(t)
	pool := h.put("pool", dual(3))
	l, _ := h.manage()
	members := h.await(l, pool, "a cold pool of three serves", 3*time.Second, allServe(3))
	killed := members[0]
	signalNode(t, killed.PID, syscall.SIGKILL)
	h.await(l, pool, "the killed node is out of routing", time.Second, func(m []backend.Member) bool {
		for _, m := range m {
			if m.ID == killed.ID {
				return false
			}
		}
		return true
	})
	h.await(l, pool, "it is replaced", 2*time.Second, allServe(3))
}

func TestStoppedNodeIsQuarantined(t *testing.T) {
	h := newHost(t)
	pool := h.put("pool", dual(2))
	l, _ := h.manage()
	before := h.await(l, pool, "the pool serves", 3*time.Second, allServe(2))
	frozen := before[0]
	signalNode(t, frozen.PID, syscall.SIGSTOP)
	h.await(l, pool, "the frozen node is quarantined", 2*time.Second, func(members []backend.Member) bool {
		return members[0].Phase == backend.Quarantined && members[1].Phase == backend.Serving
	})
	signalNode(t, frozen.PID, syscall.SIGCONT)
	after := h.await(l, pool, "it is admitted again", 5*time.Second, allServe(2))
	if diff := cmp.Diff(pids(t, before), pids(t, after)); diff != "" {
		t.Errorf("other processes:\n%s", diff)
	}
}

func TestRestartedManagerAdopts(t *testing.T) {
	h := newHost(t)
	pool := h.put("pool", dual(3))
	l, stop := h.manage()
	before := h.await(l, pool, "the pool serves", 3*time.Second, allServe(3))
	processes := pids(t, before)
	stop()
	begin := time.Now()
	l, _ = h.manage()
	after := h.await(l, pool, "the next manager serves", time.Second, allServe(3))
	select {
	case <-l.FirstPass():
	case <-time.After(time.Second):
		t.Error("the first pass takes more than a second")
	}
	t.Logf("adopted three nodes in %s", time.Since(begin))
	if diff := cmp.Diff(processes, pids(t, after)); diff != "" {
		t.Errorf("other processes:\n%s", diff)
	}
	for i := range before {
		if before[i].ID != after[i].ID || before[i].Incarnation != after[i].Incarnation {
			t.Errorf("%+v became %+v", before[i], after[i])
		}
	}
	killed := after[0]
	signalNode(t, killed.PID, syscall.SIGKILL)
	h.await(l, pool, "an adopted node that is killed is replaced", 2*time.Second, func(members []backend.Member) bool {
		for _, m := range members {
			if m.ID == killed.ID {
				return false
			}
		}
		return allServe(3)(members)
	})
}

func TestChangedPoolRolls(t *testing.T) {
	h := newHost(t)
	pool := h.put("pool", dual(2))
	l, _ := h.manage()
	before := h.await(l, pool, "the pool serves", 3*time.Second, allServe(2))
	h.put("pool", plus(dual(2), "threads", cty.NumberIntVal(5)))
	h.await(l, pool, "all nodes are new, and two served all the time", 10*time.Second, func(members []backend.Member) bool {
		serve := 0
		for _, m := range members {
			if m.Phase == backend.Serving {
				serve++
			}
		}
		if serve < 2 {
			t.Fatalf("%d nodes serve: %+v", serve, members)
		}
		return allServe(2)(members) && members[0].SpecHash != before[0].SpecHash && members[1].SpecHash != before[0].SpecHash
	})
}

func TestScaleAndDelete(t *testing.T) {
	h := newHost(t)
	pool := h.put("pool", dual(1))
	l, _ := h.manage()
	first := h.await(l, pool, "one serves", 3*time.Second, allServe(1))
	h.put("pool", dual(3))
	h.await(l, pool, "three serve", 3*time.Second, allServe(3))
	ring, err := h.ring().Pool(pool)
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	err = fakenode.Tell(t.Context(), first[0].Endpoint, ring, fakenode.Control{Transactions: &one})
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "the manager knows of the transaction", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.members[first[0].ID].status.Transactions == 1
	})
	h.put("pool", dual(1))
	left := h.await(l, pool, "one serves again", 5*time.Second, allServe(1))
	if diff := cmp.Diff(pids(t, first), pids(t, left)); diff != "" {
		t.Errorf("the node with a transaction was drained:\n%s", diff)
	}
	h.bury("pool", "bi")
	h.await(l, pool, "it drains", 3*time.Second, func(members []backend.Member) bool {
		return len(members) == 1 && members[0].Phase == backend.Draining
	})
	zero := 0
	err = fakenode.Tell(t.Context(), first[0].Endpoint, ring, fakenode.Control{Transactions: &zero})
	if err != nil {
		t.Fatal(err)
	}
	h.await(l, pool, "nothing is left", 3*time.Second, allServe(0))
	poll(t, "no process, remains or row is left", func() bool {
		nodes, err := h.open().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, err := h.store.ListNodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes) == 0 && len(rows) == 0
	})
}

func TestCrashingProcessSaysWhy(t *testing.T) {
	h := newHost(t)
	h.behave(fakenode.Crash)
	pool := h.put("pool", dual(1))
	l, _ := h.manage()
	<-l.FirstPass()
	poll(t, "the third failure is counted", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		b := l.pools[pool].backoff
		if want := "exit status 3: fake node: told to crash"; b.failures > 0 && b.reason != want {
			t.Fatalf("reason %q, want %q", b.reason, want)
		}
		return b.failures == 3
	})
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
