// Package backendtest defines what a backend.Backend must do. Each implementation runs it against the
// world it manages. What a node does is not its matter.
package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qod-io/qod/runtime/backend"
)

// World is a place for nodes. Its functions fail the test themselves.
type World struct {
	// Open returns a Backend of this world that knows nothing but what it finds, as a new process would.
	Open func(t *testing.T) backend.Backend
	// Spec returns a spec that a Backend of this world can start, and Stubborn one of a node that does
	// not end when it is asked to.
	Spec, Stubborn func(t *testing.T) backend.Spec
	// StartElsewhere has another process start the node, and kills that process.
	StartElsewhere func(t *testing.T, id string, spec backend.Spec)
	// Await returns once the node answers.
	Await func(t *testing.T, n backend.Node)
	// Kill ends a node's process from outside, uncleanly.
	Kill func(t *testing.T, n backend.Node)
	// Alive tells whether a node's process runs.
	Alive func(t *testing.T, n backend.Node) bool
	// Forgeries leaves the remains of nodes whose process is in truth a foreign one, in every way that
	// this world allows, and returns their ids and a function that tells whether all those still run.
	Forgeries func(t *testing.T) (ids []string, untouched func() bool)
}

// Run runs the suite. Each test gets a world of its own.
func Run(t *testing.T, open func(t *testing.T) World) {
	tests := map[string]func(t *testing.T, w World){
		"start is idempotent by id":               testStartTwice,
		"another instance lists the node":         testListFromAnother,
		"a node outlives its starter":             testOutlivesStarter,
		"an exit is seen at once":                 testExits,
		"an exit of an adopted node is seen":      testExitsAdopted,
		"exits end with their context":            testExitsEnd,
		"remains stay until they are removed":     testRemains,
		"stop is idempotent":                      testStopTwice,
		"an unknown node is stopped":              testStopUnknown,
		"a stubborn node is killed after grace":   testStubborn,
		"a foreign process is not touched":        testForgeries,
		"eight nodes start and stop side by side": testParallel,
		"a bad id is refused":                     testBadID,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func start(t *testing.T, b backend.Backend, spec backend.Spec) backend.Node {
	t.Helper()
	n, err := b.Start(t.Context(), uuid.NewString(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func list(t *testing.T, b backend.Backend) map[string]backend.Node {
	t.Helper()
	nodes, err := b.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]backend.Node{}
	for _, n := range nodes {
		byID[n.ID] = n
	}
	return byID
}

func stop(t *testing.T, b backend.Backend, id string, grace time.Duration) {
	t.Helper()
	if err := b.Stop(t.Context(), id, grace); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); ; <-tick.C {
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

func testStartTwice(t *testing.T, w World) {
	b := w.Open(t)
	first := start(t, b, w.Spec(t))
	for _, again := range []backend.Backend{b, w.Open(t)} {
		second, err := again.Start(t.Context(), first.ID, w.Spec(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("second start gives another node (-first +second):\n%s", diff)
		}
	}
	if got := len(list(t, b)); got != 1 {
		t.Errorf("%d nodes after starting one again", got)
	}
}

func testListFromAnother(t *testing.T, w World) {
	spec := w.Spec(t)
	n := start(t, w.Open(t), spec)
	if n.PoolID != spec.PoolID || n.Role != spec.Role || n.SpecHash != spec.Hash() ||
		n.Endpoint == "" || n.Started.IsZero() {
		t.Errorf("the node does not say what it runs: %+v", n)
	}
	if diff := cmp.Diff(map[string]backend.Node{n.ID: n}, list(t, w.Open(t))); diff != "" {
		t.Errorf("another instance sees another node (-started +listed):\n%s", diff)
	}
}

func testOutlivesStarter(t *testing.T, w World) {
	id, spec := uuid.NewString(), w.Spec(t)
	w.StartElsewhere(t, id, spec)
	b := w.Open(t)
	n, ok := list(t, b)[id]
	if !ok || n.Exited || !w.Alive(t, n) {
		t.Fatalf("the node did not survive: %+v", n)
	}
	again, err := b.Start(t.Context(), id, spec)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, again); diff != "" {
		t.Errorf("it was started again (-listed +started):\n%s", diff)
	}
	stop(t, b, id, time.Second)
	if w.Alive(t, n) {
		t.Error("an adopted node runs after stop")
	}
}

// watch runs Exits and returns what it reports.
func watch(t *testing.T, b backend.Backend) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ids, done := make(chan string, 16), make(chan error, 1)
	go func() { done <- b.Exits(ctx, func(id string) { ids <- id }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("exits ended with %v", err)
		}
	})
	return ids
}

func expectExit(t *testing.T, ids <-chan string, want string) {
	t.Helper()
	select {
	case got := <-ids:
		if got != want {
			t.Errorf("exit of %s, want %s", got, want)
		}
	case <-time.After(time.Second):
		t.Error("no exit was reported within a second")
	}
}

func testExits(t *testing.T, w World) {
	b := w.Open(t)
	before := start(t, b, w.Spec(t))
	ids := watch(t, b)
	w.Kill(t, before)
	expectExit(t, ids, before.ID)
	after := start(t, b, w.Spec(t))
	w.Kill(t, after)
	expectExit(t, ids, after.ID)
	if got := list(t, b)[after.ID]; !got.Exited || got.Reason == "" {
		t.Errorf("the node is not told to be gone, with a reason: %+v", got)
	}
}

func testExitsAdopted(t *testing.T, w World) {
	id := uuid.NewString()
	w.StartElsewhere(t, id, w.Spec(t))
	b := w.Open(t)
	ids := watch(t, b)
	w.Kill(t, list(t, b)[id])
	expectExit(t, ids, id)
}

func testExitsEnd(t *testing.T, w World) {
	b := w.Open(t)
	start(t, b, w.Spec(t))
	watch(t, b)
}

func testRemains(t *testing.T, w World) {
	b := w.Open(t)
	n := start(t, b, w.Spec(t))
	w.Kill(t, n)
	for name, b := range map[string]backend.Backend{"its starter": b, "another": w.Open(t)} {
		eventually(t, name+" says that the node has exited", time.Second, func() bool {
			got, ok := list(t, b)[n.ID]
			return ok && got.Exited
		})
	}
	stop(t, w.Open(t), n.ID, time.Second)
	if got := list(t, b); len(got) != 0 {
		t.Errorf("remains after stop: %+v", got)
	}
}

func testStopTwice(t *testing.T, w World) {
	b := w.Open(t)
	n := start(t, b, w.Spec(t))
	stop(t, b, n.ID, 5*time.Second)
	if w.Alive(t, n) {
		t.Error("it runs after stop")
	}
	stop(t, b, n.ID, time.Second)
	if got := list(t, b); len(got) != 0 {
		t.Errorf("listed after stop: %+v", got)
	}
}

func testStopUnknown(t *testing.T, w World) {
	stop(t, w.Open(t), uuid.NewString(), time.Second)
}

func testStubborn(t *testing.T, w World) {
	b := w.Open(t)
	n := start(t, b, w.Stubborn(t))
	w.Await(t, n)
	begin := time.Now()
	stop(t, b, n.ID, 300*time.Millisecond)
	if took := time.Since(begin); took < 300*time.Millisecond || took > 3*time.Second {
		t.Errorf("stop took %s with a grace of 300ms", took)
	}
	if w.Alive(t, n) {
		t.Error("it runs after stop")
	}
}

func testForgeries(t *testing.T, w World) {
	ids, untouched := w.Forgeries(t)
	b := w.Open(t)
	for _, id := range ids {
		if n, ok := list(t, b)[id]; !ok || !n.Exited {
			t.Errorf("a foreign process was adopted as %+v", n)
		}
		stop(t, b, id, 50*time.Millisecond)
	}
	if !untouched() {
		t.Error("a foreign process was ended")
	}
	if got := list(t, b); len(got) != 0 {
		t.Errorf("remains after stop: %+v", got)
	}
}

func testParallel(t *testing.T, w World) {
	b, spec := w.Open(t), w.Spec(t)
	each := func(ids []string, do func(id string) error) {
		t.Helper()
		errs := make(chan error, len(ids))
		for _, id := range ids {
			go func() { errs <- do(id) }()
		}
		for range ids {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	}
	ids := make([]string, 8)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	each(ids, func(id string) error {
		_, err := b.Start(t.Context(), id, spec)
		for id, n := range list(t, b) { // also while the others are being started
			if n.Exited {
				t.Errorf("node %s is said to be gone while it starts: %s", id, n.Reason)
			}
		}
		return err
	})
	pids := map[int]bool{}
	for _, n := range list(t, b) {
		if n.Exited {
			t.Errorf("it did not start: %+v", n)
		}
		pids[n.PID] = true
	}
	if len(pids) != 8 {
		t.Errorf("%d processes for eight nodes", len(pids))
	}
	each(ids, func(id string) error { return b.Stop(t.Context(), id, 5*time.Second) })
	if got := list(t, b); len(got) != 0 {
		t.Errorf("listed after stop: %+v", got)
	}
}

func testBadID(t *testing.T, w World) {
	b := w.Open(t)
	for _, id := range []string{"", "..", "../../etc", "x"} {
		if _, err := b.Start(t.Context(), id, w.Spec(t)); err == nil {
			t.Errorf("start accepts the id %q", id)
		}
		if err := b.Stop(t.Context(), id, 0); err == nil {
			t.Errorf("stop accepts the id %q", id)
		}
	}
}
