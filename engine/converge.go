package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/plan"
)

const (
	convergeEvery = 200 * time.Millisecond
	// patience is how long Converge waits for less to be pending than ever before, until it gives up.
	patience = 2 * time.Minute
	// tries is how many rounds in a row may fail before Converge gives up on what is left, where nothing but
	// failing steps and what waits for them is: about fifteen seconds.
	tries = 7
)

// ErrInterrupted is why no further step was started.
var ErrInterrupted = errors.New("interrupted: run qod apply again, it goes on from here")

// NotConvergedError says what a committed change still lacks outside the store.
type NotConvergedError struct {
	Pending []plan.Finding
	Cause   error // of the last failing step, if one failed, and of giving up
}

func (e *NotConvergedError) Error() string {
	lines := []string{"committed, not converged:"}
	for _, f := range e.Pending {
		lines = append(lines, fmt.Sprintf("  %s: %s", f.Addr, f.Message))
	}
	if e.Cause != nil && !e.lists(e.Cause.Error()) {
		lines = append(lines, "last error: "+e.Cause.Error())
	}
	if !errors.Is(e.Cause, ErrInterrupted) {
		lines = append(lines, "What is done is kept. Mend the cause and run qod apply again: it goes on from here.")
	}
	return strings.Join(lines, "\n")
}

// lists reports whether what is pending says the reason of an error, as in "verb object: reason", already.
func (e *NotConvergedError) lists(cause string) bool {
	_, reason, ok := strings.Cut(cause, ": ")
	return ok && slices.ContainsFunc(e.Pending, func(f plan.Finding) bool { return strings.HasSuffix(f.Message, reason) })
}

func (e *NotConvergedError) Unwrap() error { return e.Cause }

// Convergence says what to converge, and who is told.
type Convergence struct {
	Stack string
	// Stopping, once closed, has no further step start. Those that run end.
	Stopping <-chan struct{}
	// LockTimeout is how long another process that has the right to act is waited for while nothing is
	// finished. Zero does not wait.
	LockTimeout time.Duration
	// Pending is called with what is pending whenever that changes.
	Pending func([]plan.Finding)
	// Held is called once when another process has the right to act; the error says which.
	Held func(error)
}

// Converge returns when nothing of the stack is missing outside the store. It acts where this process
// may, and otherwise waits for the one that does. It fails with a NotConvergedError when ctx ends, when it
// is interrupted, when all that is left keeps failing, and when nothing was finished for two minutes.
func (e *Engine) Converge(ctx context.Context, c Convergence) error {
	s := &course{Convergence: c, moved: time.Now(), least: math.MaxInt}
	for {
		if interrupted(c.Stopping) {
			return e.interrupt(ctx, s)
		}
		pending, worked, err := e.round(ctx, s)
		switch {
		case ctx.Err() != nil:
			return &NotConvergedError{Pending: s.last, Cause: errors.Join(context.Cause(ctx), s.cause)}
		case err == nil && len(pending) == 0:
			return nil
		}
		moved := s.note(pending, worked, err)
		if s.over() {
			return &NotConvergedError{Pending: s.last, Cause: errors.Join(s.cause, s.held)}
		}
		if !worked || !moved {
			wait(ctx, c.Stopping, s.pause(err, moved))
		}
	}
}

// round looks once and acts on what it saw, where this process may. With an error it may not have seen
// all that is pending.
func (e *Engine) round(ctx context.Context, s *course) (pending []plan.Finding, worked bool, err error) {
	lease, held, err := e.acquire(ctx)
	if err != nil {
		return nil, false, err
	}
	if lease != nil {
		defer lease.Release()
	}
	if err := e.step(ctx); err != nil {
		return nil, false, err
	}
	seen, err := e.look(ctx)
	if err != nil {
		return nil, false, err
	}
	if held == nil && e.Runtime != nil {
		held = e.Runtime.Held()
	}
	pending = e.pending(seen, s.Stack)
	s.tell(pending, held)
	if lease == nil || len(pending) == 0 {
		return pending, false, nil
	}
	ctx, cancel := until(ctx, lease.Done(), errLost)
	defer cancel()
	worked, err = e.settle(ctx, s.Stopping, lease, seen)
	return pending, worked, err
}

var errLost = errors.New("the right to do outside steps was lost")

// interrupt says what is left; it may be nothing.
func (e *Engine) interrupt(ctx context.Context, s *course) error {
	seen, err := e.look(ctx)
	if err == nil {
		s.last = e.pending(seen, s.Stack)
		if len(s.last) == 0 {
			return nil
		}
	}
	return &NotConvergedError{Pending: s.last, Cause: errors.Join(s.cause, ErrInterrupted)}
}

func interrupted(stopping <-chan struct{}) bool {
	select {
	case <-stopping:
		return true
	default:
		return false
	}
}

// course is how a convergence has gone so far.
type course struct {
	Convergence
	last  []plan.Finding
	cause error // the latest failure
	held  error // who acts in this process's place, as of the last round
	told  bool  // of held
	least int
	moved time.Time // when less was pending than ever before
	vain  int       // rounds in a row that failed and changed nothing
	stuck bool      // in the last round all that is pending failed, or waits for what failed
}

// pause is how long to wait before the next round: ever longer, up to sixteen times, while steps fail.
func (s *course) pause(err error, moved bool) time.Duration {
	if err == nil || moved {
		s.vain = 0
		return convergeEvery
	}
	s.vain++
	return convergeEvery << min(s.vain, 4)
}

// tell passes on what has changed.
func (s *course) tell(pending []plan.Finding, held error) {
	s.held = held
	if held != nil && !s.told && len(pending) > 0 {
		s.told = true
		s.Held(held)
	}
	if len(pending) > 0 && !slices.Equal(pending, s.last) {
		s.last = pending
		s.Pending(pending)
	}
}

// note takes the outcome of a round into account, and reports whether less is pending than ever before.
// Nodes come and go by themselves, so a pool that nothing holds up is never stuck.
func (s *course) note(pending []plan.Finding, worked bool, err error) bool {
	if err != nil {
		s.cause = err
	}
	s.stuck = err != nil && !worked && len(pending) > 0 && !slices.ContainsFunc(pending, func(f plan.Finding) bool {
		return f.Addr.Kind == runs && !Skipped(f)
	})
	if len(pending) == 0 || len(pending) >= s.least {
		return false
	}
	s.least, s.moved = len(pending), time.Now()
	return true
}

// over reports whether waiting any longer is in vain.
func (s *course) over() bool {
	idle := time.Since(s.moved)
	if s.held != nil {
		return idle >= s.LockTimeout
	}
	return idle > patience || s.stuck && s.vain >= tries
}
