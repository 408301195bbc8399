package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// changesWait is how long a statement that writes waits for transactions that do.
	changesWait = 30 * time.Second
	// plansWait is how long a statement waits to be prepared before it is sent away.
	plansWait = 5 * time.Second
)

// latch is a lock that several may share or one may have alone, taken with a context and for as long as a
// transaction.
//
// DuckLake keeps the schemas it has read in a cache that all transactions of a process share, and drops
// some while others use them. Transactions that run DDL side by side fail ("schema not found in metadata
// catalog"), make statements of others miss tables that exist, or take the process down. Measured with
// DuckDB 1.5.5, these two latches keep all of that away, and nothing less does:
//
//   - changes: a transaction has it alone from its first DDL to its end; any other that writes shares it
//     from its first write, and a statement outside a transaction that writes or runs DDL while it runs.
//   - plans: every statement shares it while it is prepared, DDL while it runs, and a COMMIT; a transaction
//     that has changes alone has plans alone at these moments, and while it writes.
//
// So a transaction that changes tables and then idles holds up those that write, but no reads; one that
// copies many rows into a new table holds up reads too while it does, and they go to another node.
type latch struct {
	limit  time.Duration // how long a grip waits for it
	expiry *fault        // what a statement is told then

	mu        sync.Mutex
	shared    int      // grips that share it
	exclusive *grip    // the grip that has it alone
	upgrading *grip    // a sharer that waits to have it alone
	queue     []*entry // who waits, in order: nobody overtakes
}

// entry is a grip's place in the queue.
type entry struct {
	grip    *grip
	want    hold
	granted chan struct{}
}

func newChanges() *latch {
	return &latch{limit: changesWait, expiry: notRun(codes.Aborted, wire.Transient,
		"transactions that change tables run one at a time on a node, and another one did not end; try again")}
}

func newPlans() *latch {
	return &latch{limit: plansWait, expiry: notRun(codes.ResourceExhausted, wire.Busy,
		"another one on this node is changing tables")}
}

// grip is one transaction's or statement's hold on a latch. One goroutine at a time may use it.
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
	return g.wait(ctx, holdsShared)
}

// alone waits until every other grip is given back. Of two sharers that both want it, the second fails at
// once: each would wait for the other.
func (g *grip) alone(ctx context.Context) error {
	if g.holds == holdsAlone {
		return nil
	}
	return g.wait(ctx, holdsAlone)
}

func (g *grip) wait(ctx context.Context, want hold) error {
	l := g.latch
	e := &entry{grip: g, want: want, granted: make(chan struct{})}
	l.mu.Lock()
	if g.holds == holdsShared {
		if l.upgrading != nil {
			l.mu.Unlock()
			return errTwoChangers()
		}
		l.upgrading = g
		l.queue = slices.Insert(l.queue, 0, e) // it has waited its turn already
	} else {
		l.queue = append(l.queue, e)
	}
	l.serve()
	l.mu.Unlock()
	timer := time.NewTimer(l.limit)
	defer timer.Stop()
	select {
	case <-e.granted:
		return nil
	case <-timer.C:
		return g.giveUp(e, l.expiry)
	case <-ctx.Done():
		return g.giveUp(e, context.Cause(ctx))
	}
}

// giveUp leaves the queue, unless the latch was given in the meantime.
func (g *grip) giveUp(e *entry, err error) error {
	l := g.latch
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, e)
	if i < 0 {
		return nil
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	if l.upgrading == g {
		l.upgrading = nil
	}
	l.serve()
	return err
}

// serve gives the latch to those at the head of the queue that can have it. mu is held.
func (l *latch) serve() {
	for len(l.queue) > 0 && l.exclusive == nil {
		e := l.queue[0]
		if e.want == holdsAlone {
			own := 0
			if e.grip.holds == holdsShared {
				own = 1
			}
			if l.shared > own {
				return
			}
			l.shared, l.exclusive, l.upgrading = 0, e.grip, nil
		} else {
			l.shared++
		}
		e.grip.holds = e.want
		l.queue = l.queue[1:]
		close(e.granted)
	}
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
	l.serve()
}

func errTwoChangers() error {
	return notRun(codes.Aborted, wire.Transient,
		"another transaction on this node that has written is about to change tables too; try again")
}

func notRun(code codes.Code, reason wire.Reason, why string) *fault {
	f := faultf(code, reason, "the statement was not run: %s", why)
	f.untouched = true
	return f
}
