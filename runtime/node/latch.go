package node

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// latchWait is how long a statement waits for the latch.
const latchWait = 30 * time.Second

// latch keeps a transaction that runs DDL alone among the transactions of this process: DuckLake's
// schema cache is shared between them, and explicit transactions with DDL side by side break each other
// ("schema not found in metadata catalog"). From its first DDL to its end such a transaction holds the
// latch exclusively; other explicit transactions and writes share it. Reads outside a transaction stay
// clear of it.
type latch struct {
	mu        sync.Mutex
	shared    int           // grips that share it
	exclusive *grip         // the grip that has it alone
	upgrading *grip         // a sharer that waits to have it alone
	waiting   int           // grips that wait to have it alone; new sharers queue behind them
	changed   chan struct{} // closed and replaced when something was given back
}

func newLatch() *latch { return &latch{changed: make(chan struct{})} }

// grip is one transaction's hold on the latch. The zero hold is none.
type grip struct {
	latch *latch
	holds hold
}

type hold int

const (
	holdsNothing hold = iota
	holdsShared
	holdsAlone
)

func (l *latch) grip() *grip { return &grip{latch: l} }

// share lets others share too, but nobody be alone.
func (g *grip) share(ctx context.Context) error {
	if g.holds != holdsNothing {
		return nil
	}
	return g.wait(ctx, func() bool {
		if g.latch.exclusive != nil || g.latch.waiting > 0 {
			return false
		}
		g.latch.shared++
		g.holds = holdsShared
		return true
	})
}

// alone waits until every other grip is given back.
func (g *grip) alone(ctx context.Context) error {
	if g.holds == holdsAlone {
		return nil
	}
	l := g.latch
	l.mu.Lock()
	if g.holds == holdsShared {
		if l.upgrading != nil { // both would wait for the other
			l.mu.Unlock()
			return errLatch("another transaction on this node is about to change tables too")
		}
		l.upgrading = g
	}
	l.waiting++
	l.mu.Unlock()
	err := g.wait(ctx, func() bool {
		own := 0
		if g.holds == holdsShared {
			own = 1
		}
		if l.exclusive != nil || l.shared > own {
			return false
		}
		l.shared -= own
		l.exclusive = g
		g.holds = holdsAlone
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if l.upgrading == g {
		l.upgrading = nil
	}
	l.wake()
	return err
}

// release gives it back. It may be called again.
func (g *grip) release() {
	l := g.latch
	l.mu.Lock()
	defer l.mu.Unlock()
	switch g.holds {
	case holdsShared:
		l.shared--
	case holdsAlone:
		l.exclusive = nil
	}
	g.holds = holdsNothing
	l.wake()
}

func (l *latch) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (g *grip) wait(ctx context.Context, take func() bool) error {
	timer := time.NewTimer(latchWait)
	defer timer.Stop()
	for {
		g.latch.mu.Lock()
		if take() {
			g.latch.mu.Unlock()
			return nil
		}
		changed := g.latch.changed
		g.latch.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			return errLatch("transactions that change tables run one at a time on a node, and another one did not end")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func errLatch(why string) error {
	return faultf(codes.Aborted, wire.Transient, "the statement was not run: %s; try again", why)
}
