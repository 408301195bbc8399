package engine

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/qod-io/qod/engine/store"
)

const (
	// leaseOutside is the right to do outside steps.
	leaseOutside = "outside"
	// settleEvery is how often outside steps are looked at when nothing changes.
	settleEvery = 30 * time.Second
)

// Run settles for as long as ctx lives: at once, after each change of the store, and every 30 seconds.
// While another process has the lease it waits for its turn.
func (e *Engine) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return e.Store.Watch(ctx, func(store.Revision) {
			select {
			case changed <- struct{}{}:
			default: // a pass is due anyway
			}
		})
	})
	g.Go(func() error {
		for ctx.Err() == nil {
			if err := e.lead(ctx, changed); err != nil && ctx.Err() == nil {
				e.Log.Debug("outside steps", "error", err)
			}
			wait(ctx, nil, time.Second)
		}
		return ctx.Err()
	})
	return g.Wait()
}

// lead settles until the lease or ctx ends. A failure that repeats is tried again ever later, and logged
// once.
func (e *Engine) lead(ctx context.Context, changed <-chan struct{}) error {
	lease, err := e.Store.Acquire(ctx, leaseOutside, e.Holder)
	if err != nil {
		return err
	}
	defer lease.Release()
	ctx, cancel := until(ctx, lease.Done(), store.ErrTermOver)
	defer cancel()
	pause, logged := time.Second, ""
	for ctx.Err() == nil {
		err := e.Settle(ctx, lease)
		if err == nil || ctx.Err() != nil {
			if logged != "" && ctx.Err() == nil {
				e.Log.Info("outside steps go on")
			}
			pause, logged = time.Second, ""
			wait(ctx, changed, settleEvery)
			continue
		}
		if err.Error() != logged {
			logged, pause = err.Error(), time.Second
			e.Log.Warn("outside steps failed", "error", err, "retry", pause)
		}
		wait(ctx, nil, pause)
		pause = min(2*pause, settleEvery)
	}
	return ctx.Err()
}

// acquire takes the right to do outside steps. Where another process has it, the lease is nil and held
// says who.
func (e *Engine) acquire(ctx context.Context) (lease store.Lease, held, err error) {
	lease, err = e.Store.Acquire(ctx, leaseOutside, e.Holder)
	if errors.Is(err, store.ErrHeld) {
		return nil, err, nil
	}
	return lease, nil, err
}

// until returns a context that ends, with the cause, when the channel is closed.
func until(ctx context.Context, closed <-chan struct{}, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-closed:
			cancel(cause)
		case <-stop:
		}
	}()
	return ctx, func() { close(stop); <-done; cancel(context.Canceled) }
}

func wait(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}
