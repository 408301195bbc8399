package node

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// tidyLimit bounds a ROLLBACK or COMMIT that ends what another statement began.
const tidyLimit = 30 * time.Second

// lane is one connection on which a session's statements run one after the other.
type lane struct {
	turn chan struct{} // holds a token while nobody is on the lane

	// Guarded by the session's mutex; open, aborted and stateful change only by who has the turn.
	transaction string // id of the protocol's transaction on it, "" for none
	open        bool   // a transaction is open
	aborted     bool   // and all it can do is to roll back
	stateful    bool   // settings, temporary objects or prepared names are on the connection
	gone        bool   // no longer the session's

	// Of who has the turn.
	conn    *conn // nil until the first statement
	dirty   bool  // the connection must not be used by another session
	grip    *grip
	private bool // not of a session: for one statement
}

func (s *server) newLane() *lane {
	l := &lane{turn: make(chan struct{}, 1), grip: s.latch.grip()}
	l.turn <- struct{}{}
	return l
}

// enter finds the lane for a statement and waits for its turn. A statement of a free session that leaves
// nothing gets a lane of its own.
func (s *server) enter(ctx context.Context, n *session, transaction string, leaves bool) (*lane, error) {
	for {
		n.mu.Lock()
		l, err := s.choose(n, transaction, leaves)
		n.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if l == nil {
			l = s.newLane()
			l.private = true
			<-l.turn
			return l, nil
		}
		select {
		case <-l.turn:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		n.mu.Lock()
		gone := l.gone
		n.mu.Unlock()
		if !gone {
			return l, nil
		}
		l.turn <- struct{}{}
	}
}

// choose returns the lane for a statement, or nil for one of its own. The session's mutex is held.
func (s *server) choose(n *session, transaction string, leaves bool) (*lane, error) {
	if transaction == "" {
		switch {
		case n.main != nil && n.main.transaction == "":
			return n.main, nil
		case !leaves:
			return nil, nil
		case n.main != nil:
			return nil, faultf(codes.FailedPrecondition, "",
				"the session has an open transaction of the protocol: pass its id with a statement that leaves state")
		}
		n.main = s.newLane()
		return n.main, nil
	}
	if slices.Contains(n.ended, transaction) {
		return nil, faultf(codes.FailedPrecondition, "", "the transaction has ended")
	}
	if l := n.extra[transaction]; l != nil {
		return l, nil
	}
	switch {
	case n.main == nil:
		n.main = s.newLane()
		n.main.transaction = transaction
	case n.main.transaction == transaction:
	case n.main.transaction == "" && !n.main.open && len(n.main.turn) == 1:
		n.main.transaction = transaction
	default:
		n.extra[transaction] = s.newLane()
		n.extra[transaction].transaction = transaction
		return n.extra[transaction], nil
	}
	return n.main, nil
}

// leave gives the turn back. A lane on which nothing is left is dissolved, and its connection goes back
// to the pool.
func (s *server) leave(n *session, l *lane) {
	if l.private {
		s.dissolve(l)
		return
	}
	n.mu.Lock()
	over := !l.gone && !l.open && !(l.stateful && n.main == l)
	if over {
		if n.main == l {
			n.main = nil
		}
		delete(n.extra, l.transaction)
		l.gone = true
	}
	n.mu.Unlock()
	if over {
		s.dissolve(l)
	}
	n.registry.publish(n)
	l.turn <- struct{}{}
}

// dissolve gives a lane's connection back. A transaction that is still open on it is rolled back.
func (s *server) dissolve(l *lane) {
	if l.conn != nil {
		s.pool.put(l.conn, !l.dirty && !l.open && !l.stateful)
		l.conn = nil
	}
	l.grip.release()
}

// closeLanes rolls back and closes lanes that were taken from their session, once their statements have
// ended.
func (s *server) closeLanes(ctx context.Context, lanes []*lane) {
	for _, l := range lanes {
		select {
		case <-l.turn:
			l.dirty = true
			s.dissolve(l)
			l.turn <- struct{}{}
		case <-ctx.Done():
			return
		}
	}
}

// ready gives the lane its connection and, for a transaction of the protocol, begins it; and it takes
// the latch as the statement needs it.
func (s *server) ready(ctx context.Context, n *session, l *lane, st statement) error {
	if l.conn == nil {
		c, err := s.pool.get(ctx)
		if err != nil {
			return err
		}
		l.conn = c
	}
	if l.aborted && !st.endsTransaction() {
		return errAborted()
	}
	if err := l.grab(ctx, st); err != nil {
		return err
	}
	if l.transaction == "" || l.open {
		return nil
	}
	if err := l.conn.run(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	n.mu.Lock()
	l.open = true
	n.mu.Unlock()
	return nil
}

// grab takes the latch as a statement on this lane needs it.
func (l *lane) grab(ctx context.Context, st statement) error {
	explicit := l.open || l.transaction != ""
	lasting := !st.Temporary && (st.Class == wire.DDL || st.Class == wire.Write)
	switch {
	case st.Class == wire.Transaction || st.Class == wire.Setting:
		return nil
	case explicit && lasting && st.Class == wire.DDL:
		return l.grip.alone(ctx)
	case explicit || lasting:
		return l.grip.share(ctx)
	}
	return nil
}

func errAborted() error {
	return faultf(codes.FailedPrecondition, "", "the transaction is aborted: ROLLBACK first")
}

// settle is called after each statement with its error. In a transaction it finds out whether the engine
// aborted it; outside one it lets the latch go.
func (s *server) settle(n *session, l *lane, err error) error {
	if !l.open {
		l.grip.release()
		return err
	}
	if err == nil || l.aborted {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyLimit)
	defer cancel()
	if probe := l.conn.run(ctx, "SELECT 1"); probe != nil {
		n.mu.Lock()
		l.aborted = true
		n.mu.Unlock()
	}
	f := asFault(err)
	if f.reason == wire.Transient && f.code == codes.Unavailable {
		return faultf(f.code, f.reason, "transient failure inside transaction: %s", f.message)
	}
	return err
}

// tidy runs a COMMIT or ROLLBACK that ends what a statement began, whether or not its call still lasts.
func (l *lane) tidy(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
	defer cancel()
	err := l.conn.run(ctx, sql)
	if err != nil {
		l.dirty = true
	}
	return err
}
