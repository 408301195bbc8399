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
	"github.com/qod-io/qod/engine/store"
)

const (
	convergeEvery = 200 * time.Millisecond
	// patience is how long Converge waits for less to be pending than ever before, until it gives up.
	patience = 2 * time.Minute
)

// NotConvergedError says what a committed change still lacks outside the store.
type NotConvergedError struct {
	Pending []plan.Finding
	Cause   error // of the last failing step, if one failed
}

func (e *NotConvergedError) Error() string {
	lines := []string{"committed, not converged:"}
	for _, f := range e.Pending {
		lines = append(lines, fmt.Sprintf("  %s: %s", f.Addr, f.Message))
	}
	if e.Cause != nil {
		lines = append(lines, "last error: "+e.Cause.Error())
	}
	return strings.Join(lines, "\n")
}

func (e *NotConvergedError) Unwrap() error { return e.Cause }

// Converge returns when nothing of the stack is missing outside the store. It acts where this process
// may, and otherwise waits for the one that does. Progress is called with what is pending whenever that
// changes. It fails with a NotConvergedError when ctx ends, or when nothing was finished for two minutes.
func (e *Engine) Converge(ctx context.Context, stack string, progress func([]plan.Finding)) error {
	var last []plan.Finding
	var cause error
	moved, least := time.Now(), math.MaxInt
	for {
		pending, err := e.step(ctx, stack)
		if ctx.Err() != nil {
			return &NotConvergedError{Pending: last, Cause: errors.Join(context.Cause(ctx), cause)}
		}
		switch {
		case err != nil:
			cause = err
		case len(pending) == 0:
			return nil
		}
		if len(pending) > 0 && !slices.Equal(pending, last) {
			last = pending
			progress(pending)
		}
		if len(pending) > 0 && len(pending) < least {
			least, moved = len(pending), time.Now()
		}
		if time.Since(moved) > patience {
			return &NotConvergedError{Pending: last, Cause: cause}
		}
		wait(ctx, nil, convergeEvery)
	}
}

// step does one round of outside steps and node steps, and returns what is pending after it. With an
// error it may not have seen all that is.
func (e *Engine) step(ctx context.Context, stack string) ([]plan.Finding, error) {
	failed := e.settleOnce(ctx)
	pools := map[string]string{}
	if e.Runtime != nil {
		var err error
		if pools, err = e.Runtime.Step(ctx); err != nil {
			return nil, errors.Join(failed, err)
		}
	}
	snap, err := e.Store.Snapshot(ctx)
	if err != nil {
		return nil, errors.Join(failed, fmt.Errorf("read store: %w", err))
	}
	missing, err := e.observe(ctx, snap)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	pending := e.pending(snap, stack, missing, pools)
	if failed != nil && len(pending) > 0 {
		return pending, failed
	}
	return pending, nil
}

func (e *Engine) settleOnce(ctx context.Context) error {
	lease, err := e.Store.Acquire(ctx, leaseOutside, e.Holder)
	if errors.Is(err, store.ErrHeld) {
		return nil // the holder settles
	}
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := under(ctx, lease)
	defer cancel()
	return e.Settle(ctx, lease)
}
