package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// DuckDB holds its buffers to its own limit, but not the values that functions make: repeat(a, n) over one
// vector takes 2,048 times the longest of them, and no interrupt is heard before the vector is done. So the
// node watches what its process takes. Beyond one bound it has the allocator give back what nobody uses; if
// that was not it, it ends statements, and beyond another bound itself.

const (
	// uncounted is the least that a node may take beside what DuckDB counts, in bytes.
	uncounted = 512 << 20
	// lookEvery is the pause between two looks at the memory while statements run, and lookHurry the one
	// above half of the limit: with several threads it grows by some gigabytes a second.
	lookEvery = 100 * time.Millisecond
	lookHurry = 20 * time.Millisecond
	// relief is how long after the end of a statement its memory may be on the way back, and obeyWithin how
	// long a statement that was told to end may take to do so, before the next one is told.
	relief     = time.Second
	obeyWithin = 5 * time.Second
	// farewell is how long a node that ends itself gives gRPC to send what it has told its clients.
	farewell = 100 * time.Millisecond
)

// ErrOutgrown is returned by Run when the node took more memory than it may and ending statements did not
// help. The process has to end at once: there is still a call in the engine that takes more.
var ErrOutgrown = errors.New("the node took more memory than it may, and what takes it cannot be ended")

// errMemory is the cause of a statement that was ended for what it takes.
var errMemory = errors.New("the node is out of memory, and the statement was ended since it took the most: " +
	"a function made values too large")

// bounds are how much memory a process may take, in bytes; 0: as much as there is.
type bounds struct {
	engine int64 // DuckDB's own limit on what it counts
	limit  int64 // of the process; beyond it statements are ended
	most   int64 // beyond it the process ends
}

// boundsOf divides the memory of a node or task.
func boundsOf(memory int64) bounds {
	if memory <= 0 {
		return bounds{}
	}
	engine := memory / 4 * 3
	rest := max(memory-engine, uncounted)
	return bounds{engine: engine, limit: engine + rest, most: engine + 2*rest}
}

// Volunteer makes this process the first that the kernel kills when the host is out of memory, before
// Postgres and the manager. Where there is no such thing it does nothing.
func Volunteer() error {
	const score = "/proc/self/oom_score_adj"
	if err := os.WriteFile(score, []byte("1000"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("volunteer for the kernel's killer: %w", err)
	}
	return nil
}

// watched runs serve and watches the memory meanwhile. When that gets out of hand it returns ErrOutgrown and
// leaves serve behind, for which the process has to end.
func (s *server) watched(serve func() (quiet bool, err error)) (quiet bool, err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { s.watchMemory(ctx) })
	type end struct {
		quiet bool
		err   error
	}
	served := make(chan end, 1)
	go func() {
		quiet, err := serve()
		served <- end{quiet, err}
	}()
	select {
	case e := <-served:
		stop()
		watching.Wait()
		return e.quiet, e.err
	case <-s.outgrown:
		select {
		case <-served:
		case <-time.After(farewell):
		}
		return false, ErrOutgrown
	}
}

// watchMemory looks at the memory as long as statements run, until ctx ends or the node has outgrown.
func (s *server) watchMemory(ctx context.Context) {
	w := memoryWatch{bounds: boundsOf(s.cfg.MemoryBytes), running: s.running, before: residentBytes()}
	if w.limit == 0 {
		return
	}
	for {
		if s.running.count() == 0 {
			select {
			case <-ctx.Done():
				return
			case <-s.running.begun:
			}
		}
		v := w.look(time.Now(), residentBytes())
		if v.purge {
			purge()
			continue
		}
		s.heed(w.bounds, v)
		if v.outgrown {
			close(s.outgrown)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(v.pause):
		}
	}
}

// heed writes down what a look at the memory brought, and asks for another node where this one is stuck.
func (s *server) heed(b bounds, v verdict) {
	log := s.log.With("node", s.cfg.ID, "resident", v.resident)
	if v.ended != nil {
		log.Warn("statement ended: the node takes more memory than its limit", "limit", b.limit, "statement", v.ended.ids[0])
	}
	if v.stuck {
		s.health.fail("the node takes more memory than its limit, whatever statements are ended")
	}
	if v.outgrown {
		log.Error("node ends: its memory is out of hand", "most", b.most, "running", s.running.count())
	}
}

// memoryWatch decides what is done about the memory of a node. One goroutine uses it.
type memoryWatch struct {
	bounds
	running *running
	before  int64      // resident at the last look
	over    time.Time  // since when it is above the limit, all that is used; zero: it is not
	purged  bool       // the allocator has given back what is unused since it went above the limit
	victim  *execution // was told to end and has not yet; nil: there is none
	wait    time.Time  // until when no other statement is told
}

// verdict is what a look at the memory brought.
type verdict struct {
	resident int64
	purge    bool          // have the allocator give back what is unused, and look again at once
	pause    time.Duration // until the next look
	ended    *execution    // the statement that was told to end, or nil
	stuck    bool          // the memory stays above the limit
	outgrown bool
}

// look takes the resident memory of a moment into account, and ends a statement if it has to.
func (w *memoryWatch) look(now time.Time, resident int64) verdict {
	v := verdict{resident: resident, pause: lookEvery}
	w.running.charge(resident - w.before)
	w.before = resident
	if resident > w.limit/2 {
		v.pause = lookHurry
	}
	if resident <= w.limit {
		w.over, w.purged = time.Time{}, false
		return v
	}
	if !w.purged {
		w.purged, v.purge = true, true
		return v
	}
	if w.over.IsZero() {
		w.over = now
	}
	v.stuck = now.Sub(w.over) > deafAfter
	v.outgrown = resident > w.most
	if w.victim != nil && w.victim.over() {
		w.victim, w.wait = nil, now.Add(relief)
	}
	if now.Before(w.wait) && (w.victim != nil || !v.outgrown) {
		return v
	}
	if v.ended = w.running.endHeaviest(now, errMemory); v.ended != nil {
		w.victim, w.wait = v.ended, now.Add(obeyWithin)
	}
	return v
}

// over reports whether the statement has ended.
func (x *execution) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// charge puts down what the process has grown by, in bytes, to the statements that are in the engine: to
// each the same, for nobody knows better.
func (r *running) charge(grown int64) {
	if grown <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var inside []*execution
	for x := range r.all {
		if x.entered.Load() != 0 {
			inside = append(inside, x)
		}
	}
	for _, x := range inside {
		x.took += grown / int64(len(inside))
	}
}

// endHeaviest interrupts the statement that took the most for the time it has run, of equal ones the newest,
// and returns it. Each is taken once; without another one it returns nil. One that was interrupted before
// keeps that cause.
func (r *running) endHeaviest(now time.Time, cause error) *execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	pace := func(x *execution) float64 { return float64(x.took) / max(now.Sub(x.started), time.Second).Seconds() }
	var heaviest *execution
	for x := range r.all {
		if !x.blamed && (heaviest == nil || pace(x) > pace(heaviest) ||
			pace(x) == pace(heaviest) && x.started.After(heaviest.started)) {
			heaviest = x
		}
	}
	if heaviest != nil {
		heaviest.blamed = true
		heaviest.end(cause)
	}
	return heaviest
}

// interruption returns why the statement that runs under that id in the session was interrupted, or nil. One
// that may change something is left out: it could take effect all the same.
func (r *running) interruption(id, session string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if !x.unique && x.session == session && slices.Contains(x.ids, id) {
			return context.Cause(x.ctx)
		}
	}
	return nil
}
