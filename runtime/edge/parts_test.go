package edge

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

func fleetOf(nodes ...string) *backend.Fleet {
	var members []backend.Member
	for _, id := range nodes {
		members = append(members, backend.Member{Node: backend.Node{ID: id, Role: backend.Dual}, Incarnation: "i", Phase: backend.Serving})
	}
	f := &backend.Fleet{}
	f.Publish(&backend.Snapshot{Pools: map[string][]backend.Member{poolID: members}})
	return f
}

func orderOf(user string) order {
	return order{poolID: poolID, user: user, limit: 1, since: time.Now(), request: router.Request{Pool: "acme/bi"}}
}

// One user's ten statements do not hold up another's one.
func TestPlacesAreGivenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdmission(fleetOf("n"), time.Minute, time.Hour, 64)
		if _, err := a.acquire(t.Context(), orderOf("ana")); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var turns []string
		var all sync.WaitGroup
		wait := func(user string) {
			all.Go(func() {
				if _, err := a.acquire(t.Context(), orderOf(user)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				turns = append(turns, user)
				mu.Unlock()
				a.release(poolID, "n")
			})
			synctest.Wait()
		}
		for range 10 {
			wait("ana")
		}
		wait("ben")
		wait("cat")
		a.release(poolID, "n")
		all.Wait()
		if len(turns) != 12 || slices.Index(turns, "ben") > 2 || slices.Index(turns, "cat") > 2 {
			t.Errorf("turns %v", turns)
		}
		if len(a.pools) != 0 || len(a.load) != 0 {
			t.Errorf("left over: %v, %v", a.pools, a.load)
		}
	})
}

// A statement that waits for its node does not hold up those of its user that any node can run, neither
// those that came before the place was free nor those after.
func TestNoStatementWaitsBehindOneThatCannotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleetOf("away", "n")
		s, _ := f.Current()
		s.Pools[poolID][0].Phase = backend.Quarantined
		a := newAdmission(f, time.Minute, time.Hour, 64)
		pinned := orderOf("ana")
		pinned.request.Pin = &router.Pin{Node: "away", Incarnation: "i"}
		ctx, cancel := context.WithCancel(t.Context())
		var waits sync.WaitGroup
		waits.Go(func() {
			if _, err := a.acquire(ctx, pinned); !errors.Is(err, context.Canceled) {
				t.Errorf("pinned: %v", err)
			}
		})
		synctest.Wait()
		start := time.Now()
		if m, err := a.acquire(t.Context(), orderOf("ana")); err != nil || m.ID != "n" {
			t.Errorf("got %s, %v", m.ID, err)
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("it waited for %s although there was a place", waited)
		}
		waits.Go(func() {
			if m, err := a.acquire(t.Context(), orderOf("ana")); err != nil || m.ID != "n" {
				t.Errorf("got %s, %v", m.ID, err)
			}
		})
		synctest.Wait()
		start = time.Now()
		a.release(poolID, "n")
		synctest.Wait()
		if n := a.pools[poolID].n; n != 1 || time.Since(start) > 0 {
			t.Errorf("%d wait after a place is free", n)
		}
		cancel()
		waits.Wait()
	})
}

func TestWaitsEnd(t *testing.T) {
	tests := map[string]struct {
		nodes []string
		want  error
		after time.Duration
	}{
		"no node":  {nil, router.ErrNoNode, 5 * time.Second},
		"no place": {[]string{"n"}, errQueueTime, 30 * time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdmission(fleetOf(tc.nodes...), 5*time.Second, 30*time.Second, 64)
				if len(tc.nodes) > 0 {
					if _, err := a.acquire(t.Context(), orderOf("ana")); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				_, err := a.acquire(t.Context(), orderOf("ana"))
				if waited := time.Since(start); !errors.Is(err, tc.want) || waited < tc.after || waited > tc.after+time.Second {
					t.Errorf("err = %v after %s", err, waited)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := a.acquire(ctx, orderOf("ana")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("err = %v, want that of the context", err)
				}
				if len(a.pools) != 0 {
					t.Errorf("left in the queue: %v", a.pools)
				}
			})
		})
	}
}

// The pin of a statement is only a wish when any node can run it.
func TestSoftPins(t *testing.T) {
	a := newAdmission(fleetOf("m", "n"), time.Second, time.Second, 64)
	o := orderOf("ana")
	o.soft, o.request.Pin = true, &router.Pin{Node: "n", Incarnation: "i"}
	for _, want := range []string{"n", "m"} { // the second finds n full
		if m, err := a.acquire(t.Context(), o); err != nil || m.ID != want {
			t.Errorf("got %s, %v, want %s", m.ID, err, want)
		}
	}
	a.release(poolID, "m")
	o.request.Pin = &router.Pin{Node: "gone", Incarnation: "i"}
	if m, err := a.acquire(t.Context(), o); err != nil || m.ID != "m" {
		t.Errorf("got %s, %v", m.ID, err)
	}
}

// pass lets the time of a bubble pass.
func pass(d time.Duration) { <-time.After(d) }

func TestPins(t *testing.T) {
	at := router.Pin{Node: "n", Incarnation: "i"}
	sess := session{"p", "s"}
	list := func(p *pins, incarnation string, sessions ...wire.Session) {
		p.list("p", "n", wire.Sessions{Incarnation: incarnation, Sessions: sessions})
	}
	state := func(p *pins) wire.State {
		have, ok := p.of(sess)
		if !ok {
			return wire.Free
		}
		return have.state
	}
	open := wire.Session{ID: "s", State: wire.InTransaction}
	tests := map[string]struct {
		run  func(p *pins)
		want wire.State
	}{
		"told":                 {func(p *pins) { p.tell(sess, at, wire.Stateful) }, wire.Stateful},
		"told in another pool": {func(p *pins) { p.tell(session{"q", "s"}, at, wire.Stateful) }, wire.Free},
		"told that it ends":    {func(p *pins) { p.tell(sess, at, wire.Stateful); p.tell(sess, at, wire.Free) }, wire.Free},
		"told by another":      {func(p *pins) { p.tell(sess, at, wire.Stateful); p.tell(sess, router.Pin{Node: "m"}, wire.Free) }, wire.Stateful},
		"listed":               {func(p *pins) { list(p, "i", open) }, wire.InTransaction},
		"listed no more":       {func(p *pins) { list(p, "i", open); list(p, "i") }, wire.Free},
		"an old list does not undo what was told": {func(p *pins) { p.tell(sess, at, wire.InTransaction); list(p, "i") }, wire.InTransaction},
		"a list that holds does": {func(p *pins) {
			p.tell(sess, at, wire.InTransaction)
			list(p, "i")
			pass(toldFor + time.Second)
		}, wire.Free},
		"a list that was put right does not": {func(p *pins) {
			p.tell(sess, at, wire.InTransaction)
			list(p, "i")
			list(p, "i", open)
			pass(toldFor + time.Second)
		}, wire.InTransaction},
		"a new process does not know":  {func(p *pins) { list(p, "i", open); list(p, "later") }, wire.InTransaction},
		"cleared":                      {func(p *pins) { list(p, "i", open); p.clear(sess, at) }, wire.Free},
		"cleared for an earlier one":   {func(p *pins) { list(p, "i", open); p.clear(sess, router.Pin{Node: "n"}) }, wire.InTransaction},
		"its node just went":           {func(p *pins) { list(p, "i", open); p.keep(nil) }, wire.InTransaction},
		"its node went some hours ago": {func(p *pins) { list(p, "i", open); p.keep(nil); pass(2 * lostFor); p.keep(nil) }, wire.Free},
		"its node was away for a while": {func(p *pins) {
			list(p, "i", open)
			p.keep(nil)
			p.keep(map[process]backend.Member{{node: "n"}: {}})
			pass(2 * lostFor)
			p.keep(nil)
		}, wire.InTransaction},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPins()
				tc.run(p)
				if got := state(p); got != tc.want {
					t.Errorf("state %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestNodesThatNobodyMissesAreForgotten(t *testing.T) {
	p := newPins()
	at := router.Pin{Node: "n", Incarnation: "i"}
	p.tell(session{"p", "s"}, at, wire.Stateful)
	p.keep(nil)
	p.clear(session{"p", "s"}, at)
	p.keep(nil)
	if len(p.lost) != 0 {
		t.Errorf("left over: %v", p.lost)
	}
}

func TestSeenSessionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPins()
		for range 4 {
			for range 2 * sweepAt {
				p.touch(session{"p", strings.Repeat("x", len(p.seen)+1)[:1] + time.Now().String() + string(rune(len(p.seen)))})
			}
			pass(2 * sessionIdle)
		}
		if n := len(p.seen); n > 3*sweepAt {
			t.Errorf("%d sessions are remembered", n)
		}
		if active, _ := p.count(); active != 0 {
			t.Errorf("%d sessions are active after an hour", active)
		}
	})
}

func TestField(t *testing.T) {
	var m []byte
	m = protowire.AppendTag(m, 2, protowire.BytesType)
	m = protowire.AppendBytes(m, make([]byte, 1<<16))
	m = protowire.AppendTag(m, 1, protowire.BytesType)
	m = protowire.AppendBytes(m, []byte("first"))
	m = protowire.AppendTag(m, 1000, protowire.BytesType)
	m = protowire.AppendBytes(m, make([]byte, 1<<16))
	if got := field(m, 1); string(got) != "first" {
		t.Errorf("field = %q", got)
	}
	for n := range len(m) { // whatever is cut off, nothing breaks
		field(m[:n], 1)
	}
	if got := field(m, 3); got != nil {
		t.Errorf("field = %q", got)
	}
}

func TestCut(t *testing.T) {
	for n := 3; n < 40; n++ {
		got := cut("ein ä und ein ü und ein 雪", n)
		if len(got) > n || !utf8.ValidString(got) {
			t.Errorf("cut at %d: %q", n, got)
		}
	}
	if got := cut("a\xffb", 100); !utf8.ValidString(got) {
		t.Errorf("%q", got)
	}
}

func TestCertificate(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	certFile, keyFile, err := SelfSigned(dir, []string{"localhost", "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file %v, %v", info.Mode(), err)
	}
	c, err := LoadCertificate(certFile, keyFile, log)
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(c.Expires()); left < 9*365*24*time.Hour {
		t.Errorf("valid for %s", left)
	}
	first := c.get().Leaf.SerialNumber
	if _, _, err := SelfSigned(dir, nil); err != nil {
		t.Fatal(err)
	}
	again, err := LoadCertificate(certFile, keyFile, log)
	if err != nil || again.get().Leaf.SerialNumber.Cmp(first) != 0 {
		t.Errorf("the certificate is not kept: %v", err)
	}
	other := t.TempDir()
	newCert, newKey, err := SelfSigned(other, []string{"localhost"})
	if err != nil {
		t.Fatal(err)
	}
	replace := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		c.looked = time.Time{}
		c.mu.Unlock()
	}
	replace(newCert, certFile)
	if c.get().Leaf.SerialNumber.Cmp(first) != 0 {
		t.Error("half of a change is served")
	}
	replace(newKey, keyFile)
	if c.get().Leaf.SerialNumber.Cmp(first) == 0 {
		t.Error("the change is not served")
	}
	if err := os.WriteFile(filepath.Join(dir, "edge.crt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := SelfSigned(dir, nil); err == nil {
		t.Error("a damaged certificate is replaced silently")
	}
}

func TestStorable(t *testing.T) {
	if got := storable("a\x00b\xffc"); got != "ab\ufffdc" {
		t.Errorf("storable = %q", got)
	}
}

func TestUpstreamThatIsFullIsNotReplayed(t *testing.T) {
	u := &upstream{full: true}
	if u.attach(nil, func(func()) { t.Error("it is read") }) {
		t.Error("an attempt was given half a stream")
	}
}
