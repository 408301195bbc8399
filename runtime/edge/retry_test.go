package edge

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

func TestWrongGuessIsRoutedAgain(t *testing.T) {
	s := newStack(t)
	reads, writes := s.peer(backend.Read), s.peer(backend.Write)
	s.serving(reads, writes)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if who, _, err := query(ctx, c, "SELECT who"); err != nil || who != reads.id {
		t.Fatalf("a read went to %q, %v", who, err)
	}
	if _, err := c.ExecuteUpdate(ctx, "INSERT a"); err != nil || writes.times("INSERT a") != 1 {
		t.Fatalf("a write: %v", err)
	}
	reads.refuseNext(wire.WrongRole)
	info, err := c.Execute(ctx, "SELECT who")
	if err != nil {
		t.Fatal(err)
	}
	if who, _, err := fetch(ctx, c, info); err != nil || who != writes.id {
		t.Errorf("what the reading node took for a write ran at %q, %v", who, err)
	}
	reads.refuseNext(wire.WrongRole)
	writes.refuseNext(wire.WrongRole)
	if _, err = c.Execute(ctx, "SELECT who"); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("what no node takes: %v", err)
	}
}

// What a node refuses before it begins is given to another, a DoPut with all that was sent so far.
func TestRefusedBeforeItBegan(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	for i := range 10 {
		one.refuseNext(wire.Draining)
		if _, err := c.ExecuteUpdate(ctx, "INSERT a"); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	if n := one.times("INSERT a") + two.times("INSERT a"); n != 10 {
		t.Errorf("10 writes ran %d times", n)
	}
}

func TestBusyNodesAreWaitedFor(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	p.refuseNext(wire.Busy, wire.Busy, wire.Busy)
	if _, _, err := query(ctx, c, "INSERT a"); err != nil || p.times("INSERT a") != 1 {
		t.Errorf("after the node had places: %v", err)
	}
	_, addr = s.edge(func(c *Config) { c.QueueWait = 150 * time.Millisecond })
	c = s.client(addr)
	for range 100 {
		p.refuseNext(wire.Busy)
	}
	start := time.Now()
	_, _, err := query(ctx, c, "INSERT b")
	if err == nil || time.Since(start) > 5*time.Second || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a node that is always busy: %v after %s", err, time.Since(start))
	}
}

// The pool's limit holds at the edge: further statements wait, and those in a transaction do not.
func TestLimitOfConcurrentStatements(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge(func(c *Config) { c.QueueWait, c.QueueLength = time.Second, 1 })
	c := s.client(addr)
	pinned := s.login(c, "ana")
	if _, _, err := query(pinned, c, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	<-p.reached
	<-p.reached
	ctx, cancel := context.WithCancel(s.login(c, "ana"))
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range 4 {
		running.Go(func() { _, _, _ = query(ctx, c, "SELECT hang") })
	}
	for range 4 {
		<-p.reached
	}
	if _, _, err := query(pinned, c, "COMMIT"); err != nil {
		t.Errorf("COMMIT behind a full pool: %v", err)
	}
	waiting := s.login(c, "ana")
	refused := make(chan error, 2)
	for range 2 {
		running.Go(func() {
			_, _, err := query(waiting, c, "SELECT who")
			refused <- err
		})
	}
	lost(t, <-refused, codes.ResourceExhausted, "too many statements wait")
	lost(t, <-refused, codes.ResourceExhausted, "waited too long")
}

// The node dies under a read, before a frame came: it runs on another one. A write does not.
func TestNodeDiesBeforeTheFirstFrame(t *testing.T) {
	tests := map[string]struct {
		sql   string
		again bool
		text  string
	}{
		"read":  {"SELECT hang", true, ""},
		"write": {"HANG", false, "whether it took effect is unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			one, two := s.peer(backend.Dual), s.peer(backend.Dual)
			s.serving(one)
			_, addr := s.edge()
			c := s.client(addr)
			ctx := s.login(c, "ana")
			failed := make(chan error, 1)
			go func() {
				_, _, err := query(ctx, c, tc.sql)
				failed <- err
			}()
			<-one.reached
			s.serving(one, two)
			one.kill()
			if got := <-s.fleet.Suspects(); got != one.id {
				t.Errorf("%s is suspected", got)
			}
			if tc.again {
				<-two.reached
				two.kill() // a second time it is not repeated
			}
			err := <-failed
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("err = %v", err)
			}
			for _, secret := range []string{one.socket, two.socket, "dial", "EOF"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the client was told %q", err)
				}
			}
			if !tc.again && two.times(tc.sql) > 0 {
				t.Error("the write ran again")
			}
			if r := s.history(); len(r) != 1 || r[0].Status != statusTransient {
				t.Errorf("history has %+v", r)
			}
		})
	}
}

func TestNodeDiesAfterTheFirstFrame(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	info, err := c.Execute(ctx, "SELECT stall")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatalf("no first batch: %v", r.Err())
	}
	s.serving(one, two)
	one.kill()
	if r.Next() {
		t.Fatal("the result went on")
	}
	lost(t, r.Err(), codes.Unavailable, "the node went away while it sent the result")
	if two.times("SELECT stall") > 0 {
		t.Error("the read ran again although rows had been delivered")
	}
}

// The only node's fault is told as it is: there is no other to wait for.
func TestFaultOfTheOnlyNode(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	p.refuseNext(wire.Transient)
	start := time.Now()
	_, _, err := query(ctx, c, "SELECT who")
	if err == nil || strings.Contains(err.Error(), "nodes serving") || time.Since(start) > 2*time.Second {
		t.Errorf("err = %v after %s", err, time.Since(start))
	}
	if _, _, err := query(ctx, c, "SELECT who"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A node that is dead for all but the fleet: what cannot have begun is given to another one.
func TestDeadNodeIsPassedOver(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	one.kill()
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	for i := range 10 {
		if _, err := c.ExecuteUpdate(ctx, "INSERT a"); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	if two.times("INSERT a") != 10 {
		t.Errorf("10 writes ran %d times", two.times("INSERT a"))
	}
}

func TestNoNode(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.publish(p.member(backend.Starting))
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	_, _, err := query(ctx, c, "SELECT who")
	lost(t, err, codes.Unavailable, "pool acme/bi: 0 of 1 nodes serving")
	if r := s.history(); len(r) != 1 || r[0].Status != statusNoNode {
		t.Errorf("history has %+v", r)
	}
	_, addr = s.edge(func(c *Config) { c.NodeWait = 20 * time.Second })
	c = s.client(addr)
	done := make(chan error, 1)
	go func() {
		_, _, err := query(ctx, c, "SELECT who")
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	s.serving(p)
	if err := <-done; err != nil {
		t.Errorf("once a node serves: %v", err)
	}
}

func TestDecide(t *testing.T) {
	fails := func(r wire.Reason, alter ...func(*outcome)) outcome {
		o := outcome{err: status.Error(codes.Unavailable, "x"), reason: r, started: true, fromNode: r != ""}
		for _, f := range alter {
			f(&o)
		}
		return o
	}
	delivered := func(o *outcome) { o.delivered = true }
	unstarted := func(o *outcome) { o.started = false }
	cancelled := func(o *outcome) { o.clientGone = true }
	ok := facts{replayable: true}
	with := func(alter func(*facts)) facts {
		f := ok
		alter(&f)
		return f
	}
	read := with(func(f *facts) { f.read = true })
	pinned := with(func(f *facts) { f.read, f.pinned = true, true })
	tests := map[string]struct {
		o    outcome
		f    facts
		poor bool // no budget
		want step
	}{
		"well":                          {o: outcome{}, f: read, want: finish},
		"permissions":                   {o: fails(wire.NeedPermissions), f: pinned, want: permissions},
		"permissions, once":             {o: fails(wire.NeedPermissions), f: with(func(f *facts) { f.asked = true }), want: finish},
		"wrong role":                    {o: fails(wire.WrongRole), f: ok, want: reroute},
		"wrong role, once":              {o: fails(wire.WrongRole), f: with(func(f *facts) { f.rerouted = true }), want: finish},
		"wrong role where it must be":   {o: fails(wire.WrongRole), f: pinned, want: finish},
		"busy":                          {o: fails(wire.Busy), f: pinned, want: again},
		"busy for too long":             {o: fails(wire.Busy), f: with(func(f *facts) { f.waited = true }), want: finish},
		"draining":                      {o: fails(wire.Draining), f: ok, want: elsewhere},
		"draining where it must be":     {o: fails(wire.Draining), f: pinned, want: finish},
		"broken read":                   {o: fails(""), f: read, want: elsewhere},
		"broken read of a lone node":    {o: fails(""), f: with(func(f *facts) { f.read, f.alone = true, true }), want: finish},
		"broken read, once":             {o: fails(""), f: with(func(f *facts) { f.read, f.moved = true, 1 }), want: finish},
		"broken read without a budget":  {o: fails(""), f: read, poor: true, want: finish},
		"broken read after a frame":     {o: fails("", delivered), f: read, want: finish},
		"broken read of a pinned one":   {o: fails(""), f: pinned, want: finish},
		"broken write":                  {o: fails(""), f: ok, want: finish},
		"write that never went out":     {o: fails("", unstarted), f: ok, want: elsewhere},
		"the same, too often":           {o: fails("", unstarted), f: with(func(f *facts) { f.moved = mostMoves }), want: finish},
		"what cannot be replayed":       {o: fails(wire.Draining), f: facts{}, want: finish},
		"cancelled":                     {o: fails("", cancelled), f: read, want: finish},
		"transient read":                {o: fails(wire.Transient), f: read, want: elsewhere},
		"transient write":               {o: fails(wire.Transient), f: ok, want: finish},
		"denied":                        {o: fails(wire.Denied), f: read, want: finish},
		"timeout":                       {o: fails(wire.Timeout), f: read, want: finish},
		"engine broken under a read":    {o: fails(wire.Fatal), f: read, want: elsewhere},
		"preparation of a write broken": {o: fails(""), f: with(func(f *facts) { f.safe = true }), want: elsewhere},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.o, tc.f, func() bool { return !tc.poor }); got != tc.want {
				t.Errorf("decide = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestBudget(t *testing.T) {
	b := budgets{saved: map[string]float64{}}
	spent := 0
	for b.spend("p") {
		spent++
	}
	if spent != budgetMost {
		t.Errorf("%d retries at once", spent)
	}
	for range 11 {
		b.earn("p")
	}
	if !b.spend("p") || b.spend("p") {
		t.Error("eleven statements must earn one retry")
	}
	if !b.spend("q") {
		t.Error("pools share a budget")
	}
}
