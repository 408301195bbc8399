package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// deafAfter is how long a statement may go on after it was interrupted. Then the engine is taken to be
// stuck, most likely waiting for a Postgres that does not answer, and the node asks to be replaced.
const deafAfter = 60 * time.Second

// running is the statements that run now, by the ids under which they can be cancelled.
type running struct {
	mu    sync.Mutex
	all   map[*execution]struct{}
	begun chan struct{} // holds a token once a statement has begun; one place
}

func newRunning() *running {
	return &running{all: map[*execution]struct{}{}, begun: make(chan struct{}, 1)}
}

// execution is one run of one statement. Its context ends when the statement is to be interrupted: by
// its timeout, by a cancel, or with the call. Cancelling it never reaches any other statement.
type execution struct {
	ids       []string
	session   string
	started   time.Time
	ctx       context.Context
	cancel    context.CancelCauseFunc
	done      chan struct{}
	unique    bool         // runs once under its id
	protected atomic.Bool  // in a transaction: a call that just vanished does not cancel it
	cut       atomic.Int64 // when it was interrupted, in Unix nanoseconds; 0: it was not
	entered   atomic.Int64 // since when it is in a call into the engine, likewise; 0: it is in none

	// Of the mutex of running.
	took   int64 // its share of the memory that the node has grown by meanwhile, in bytes
	blamed bool  // interrupted for what it took
}

type executionKey struct{}

// executionOf is the execution whose context ctx comes from, or nil.
func executionOf(ctx context.Context) *execution {
	x, _ := ctx.Value(executionKey{}).(*execution)
	return x
}

// inEngine notes that x, if it is not nil, is in a call into the engine until the returned function is
// called.
func (x *execution) inEngine() func() {
	if x == nil {
		return func() {}
	}
	x.entered.Store(time.Now().UnixNano())
	return func() { x.entered.Store(0) }
}

// begin registers a statement of a call. Its context is the call's without its end: what the end of the
// call means is decided when it comes. finish must be called.
func (r *running) begin(call context.Context, timeout time.Duration, session string, ids ...string) (*execution, func()) {
	x := newExecution(call, session, ids)
	r.mu.Lock()
	r.add(x)
	r.mu.Unlock()
	return x, r.watch(x, call, timeout)
}

// beginUnique is begin, unless a statement of the session with that id runs already: then it returns a
// channel that is closed once that one has ended, and nothing else.
func (r *running) beginUnique(call context.Context, timeout time.Duration, session, id string) (*execution, func(), <-chan struct{}) {
	x := newExecution(call, session, []string{id})
	r.mu.Lock()
	for other := range r.all {
		if other.session == session && other.unique && other.ids[0] == id {
			r.mu.Unlock()
			x.cancel(nil)
			return nil, nil, other.done
		}
	}
	x.unique = true
	r.add(x)
	r.mu.Unlock()
	return x, r.watch(x, call, timeout), nil
}

// add registers x. The mutex is held.
func (r *running) add(x *execution) {
	r.all[x] = struct{}{}
	select {
	case r.begun <- struct{}{}:
	default:
	}
}

func newExecution(call context.Context, session string, ids []string) *execution {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(call))
	x := &execution{ids: ids, session: session, started: time.Now(), cancel: cancel, done: make(chan struct{})}
	x.ctx = context.WithValue(ctx, executionKey{}, x)
	return x
}

// watch ends x by its timeout or with its call, until the returned function is called.
func (r *running) watch(x *execution, call context.Context, timeout time.Duration) func() {
	settled := make(chan struct{})
	stopCall := context.AfterFunc(call, func() {
		defer close(settled)
		if x.protected.Load() && !errors.Is(call.Err(), context.DeadlineExceeded) && vanished(call, x.done) {
			return
		}
		x.end(context.Cause(call))
	})
	var timer *time.Timer
	if timeout > 0 {
		timer = time.AfterFunc(timeout, func() { x.end(errStatementTimeout) })
	}
	return func() {
		r.mu.Lock()
		delete(r.all, x)
		r.mu.Unlock()
		close(x.done)
		if timer != nil {
			timer.Stop()
		}
		if !stopCall() {
			<-settled
		}
		x.cancel(nil)
	}
}

// end interrupts the statement. The first cause counts.
func (x *execution) end(cause error) {
	x.cut.CompareAndSwap(0, time.Now().UnixNano())
	x.cancel(cause)
}

// cancel interrupts the statement with that id, of that session unless session is empty. It returns a
// channel that is closed once the statement has ended, or nil when there is none.
func (r *running) cancel(id, session string, cause error) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		for _, have := range x.ids {
			if have == id && (session == "" || session == x.session) {
				x.end(cause)
				return x.done
			}
		}
	}
	return nil
}

// cancelAll interrupts every statement, of one session unless session is empty.
func (r *running) cancelAll(session string, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		if session == "" || session == x.session {
			x.end(cause)
		}
	}
}

func (r *running) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// deaf returns the id of a statement that has ignored its interrupt for too long inside one call into the
// engine, or "". A client that takes no rows makes no statement deaf.
func (r *running) deaf(now time.Time) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for x := range r.all {
		cut, entered := x.cut.Load(), x.entered.Load()
		if cut != 0 && entered != 0 && now.Sub(time.Unix(0, max(cut, entered))) > deafAfter {
			return x.ids[0]
		}
	}
	return ""
}
