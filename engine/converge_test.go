package engine_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// fleet is a Runtime that says what a test has it say.
type fleet struct {
	missing map[string]string
	loads   map[string]engine.Load
	held    error
	asked   int
}

func (f *fleet) Step(context.Context) error { return nil }
func (f *fleet) Held() error                { return f.held }

func (f *fleet) Missing(context.Context, *store.Snapshot) (map[string]string, error) {
	return f.missing, nil
}

func (f *fleet) Load(context.Context) (map[string]engine.Load, error) {
	f.asked++
	return f.loads, nil
}

// quiet converges without being told anything.
func quiet() engine.Convergence {
	return engine.Convergence{
		Stack: "s", LockTimeout: 2 * time.Minute, Pending: func([]plan.Finding) {}, Held: func(error) {},
	}
}

func TestConverge(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	if err := b.Converge(t.Context(), quiet()); err != nil {
		t.Error(err)
	}
	if len(b.outside.have) != 2 {
		t.Errorf("have %v", b.outside.have)
	}
}

// Where nobody acts, Converge gives up after the lock timeout, and says what is missing and who holds.
func TestConvergeGivesUp(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Second, 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			b.commit(t, estate(t)[:2])
			lease, err := b.store.Acquire(t.Context(), "outside", "somebody who does nothing")
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Release()
			told, holders, start := 0, 0, time.Now()
			c := quiet()
			c.LockTimeout = timeout
			c.Pending = func([]plan.Finding) { told++ }
			c.Held = func(error) { holders++ }
			err = b.Converge(t.Context(), c)
			var pending *engine.NotConvergedError
			if !errors.As(err, &pending) || len(pending.Pending) != 1 || !strings.HasPrefix(err.Error(), "committed, not converged:") ||
				!strings.Contains(err.Error(), "somebody who does nothing") {
				t.Errorf("got %v", err)
			}
			if told != 1 || holders != 1 {
				t.Errorf("told what is pending %d times, and who holds %d times", told, holders)
			}
			if took := time.Since(start); took < timeout || took > timeout+time.Second {
				t.Errorf("it gave up after %s, want %s", took, timeout)
			}
		})
	}
}

// A step that keeps failing is tried for some seconds, and holds up nothing that does not need it.
func TestConvergeGivesUpOnFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.outside.fails["a"] = errors.New("no space left on device")
		b.commit(t, estate(t)[:3])
		start := time.Now()
		err := b.Converge(t.Context(), quiet())
		var pending *engine.NotConvergedError
		if !errors.As(err, &pending) || !strings.Contains(err.Error(), "no space left") || len(pending.Pending) != 1 {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took < 5*time.Second || took > 30*time.Second {
			t.Errorf("it gave up after %s", took)
		}
		if len(b.outside.have) != 1 || b.outside.calls < 6 {
			t.Errorf("%d steps, and there is %v", b.outside.calls, b.outside.have)
		}
	})
}

// The first interrupt has no further step start, and the one that runs end.
func TestInterruptedConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.Parallelism = 1
		b.commit(t, estate(t)[:3])
		stopping, block := make(chan struct{}), make(chan struct{})
		b.outside.block = block
		result := make(chan error, 1)
		c := quiet()
		c.Stopping = stopping
		go func() { result <- b.Converge(t.Context(), c) }()
		synctest.Wait() // the first database is being made
		close(stopping)
		synctest.Wait()
		close(block)
		err := <-result
		var pending *engine.NotConvergedError
		if !errors.As(err, &pending) || !errors.Is(err, engine.ErrInterrupted) {
			t.Fatalf("got %v", err)
		}
		if diff := cmp.Diff([]string{"tenant_db.acme/b: not provisioned yet"}, lines(pending.Pending)); diff != "" {
			t.Error(diff)
		}
		if b.outside.calls != 1 || len(b.outside.have) != 1 {
			t.Errorf("%d steps were started, %d ended well", b.outside.calls, len(b.outside.have))
		}
		if err := b.Converge(t.Context(), quiet()); err != nil || len(b.outside.have) != 2 {
			t.Errorf("the next apply: %v, have %v", err, b.outside.have)
		}
	})
}

func lines(findings []plan.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, f.Addr.String()+": "+f.Message)
	}
	return out
}

func TestParallelism(t *testing.T) {
	for want, parallelism := range map[int]int{1: 1, 2: 0} { // there are two databases
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			b.Parallelism = parallelism
			b.commit(t, estate(t))
			b.outside.block = make(chan struct{})
			result := make(chan error, 1)
			go func() { result <- b.Converge(t.Context(), quiet()) }()
			synctest.Wait()
			close(b.outside.block)
			if err := <-result; err != nil {
				t.Error(err)
			}
			if b.outside.most != want {
				t.Errorf("parallelism %d: %d steps at the same time", parallelism, b.outside.most)
			}
		})
	}
}

// One that fails holds up those that need it, and they say so; the others go on.
func TestSkippedDependants(t *testing.T) {
	b := newBed(t)
	f := &fleet{missing: map[string]string{}}
	b.Runtime = f
	b.outside.fails["b"] = errors.New("no room")
	desired := append(estate(t), object(t, "pool", "pool.q", `{"tenant":"acme","name":"q","tenant_db":"b"}`, "tenant_db.b"))
	b.commit(t, desired)
	for _, o := range snapshot(t, b).Objects {
		if o.Kind.Name == "pool" {
			f.missing[o.ID] = "1 of 1 nodes missing"
		}
	}
	if err := b.settle(t); err == nil {
		t.Error("no error")
	}
	var skipped []bool
	for _, f := range b.plan(t, desired).Live {
		skipped = append(skipped, engine.Skipped(f))
	}
	if diff := cmp.Diff([]bool{false, false, true}, skipped); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"tenant_db.acme/b: not provisioned yet: no room",
		"pool.acme/p: 1 of 1 nodes missing",
		"pool.acme/q: waits for tenant_db.acme/b, which failed: no room",
	}
	if diff := cmp.Diff(want, lines(b.plan(t, desired).Live)); diff != "" {
		t.Error(diff)
	}
	delete(b.outside.fails, "b")
	if err := b.settle(t); err != nil {
		t.Fatal(err)
	}
	b.outside.fails["a"] = errors.New("in use")
	f.missing = nil
	b.commit(t, nil)
	if err := b.settle(t); err == nil {
		t.Error("no error")
	}
	want = []string{"tenant_db.acme/a: still being destroyed: in use"}
	if diff := cmp.Diff(want, lines(b.plan(t, nil).Live)); diff != "" {
		t.Error(diff)
	}
}

// A serve logs a failure that repeats once, and again when it is another one.
func TestRepeatedFailuresAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		log := &bytes.Buffer{}
		b.Log = slog.New(slog.NewTextHandler(log, nil))
		b.outside.fails["a"] = errors.New("no room")
		b.commit(t, estate(t)[:2])
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		pass(t, 5*time.Minute)
		first := strings.Count(log.String(), "outside steps failed")
		b.outside.fail("a", errors.New("no power"))
		pass(t, 5*time.Minute)
		second := strings.Count(log.String(), "outside steps failed")
		b.outside.fail("a", nil)
		pass(t, 5*time.Minute)
		cancel()
		<-done
		if first != 1 || second != 2 || strings.Count(log.String(), "go on") != 1 {
			t.Errorf("%d lines, then %d:\n%s", first, second, log)
		}
	})
}

// pass lets time pass, and what is due happen.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func (o *outside) fail(name string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.fails, name)
	if err != nil {
		o.fails[name] = err
	}
}

// A cause is told once, and the way out always.
func TestNotConvergedSaysTheWayOut(t *testing.T) {
	finding := plan.Finding{Addr: schema.Addr{Kind: "tenant_db", Path: "acme/sales"}, Message: "not provisioned yet: disk full"}
	for name, tt := range map[string]struct {
		cause error
		want  string
	}{
		"listed": {errors.New("provision tenant_db.acme/sales: disk full"), "Mend the cause and run qod apply again"},
		"other":  {errors.New("read nodes: no route"), "last error: read nodes: no route\nWhat is done is kept."},
		"none":   {nil, "Mend the cause and run qod apply again"},
		"told":   {engine.ErrInterrupted, "last error: interrupted: run qod apply again, it goes on from here"},
	} {
		got := (&engine.NotConvergedError{Pending: []plan.Finding{finding}, Cause: tt.cause}).Error()
		if !strings.Contains(got, tt.want) || strings.Count(got, "disk full") != 1 || strings.Count(got, "run qod apply again") != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}
