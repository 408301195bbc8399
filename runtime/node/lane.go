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
	names       *names // what unqualified names mean on the connection; nil: as where nothing was set
	unsure      bool   // it could not be found out what they mean since a statement may have changed it

	// Of who has the turn.
	conn    *conn // nil until the first statement
	dirty   bool  // the connection must not be used by another session
	torn    bool  // the statement that failed had taken effect in part
	grip    *grip
	private bool            // not of a session: for one statement
	seen    map[string]bool // folded names of all that may be temporary objects, or be again after a rollback
	veil    veilDepth       // the thickest over the statements of the transaction that is open
}

func (s *server) newLane() *lane {
	l := &lane{turn: make(chan struct{}, 1), grip: s.changes.grip()}
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
		gone, ours := l.gone, l.transaction == transaction
		n.mu.Unlock()
		if ours && !gone {
			return l, nil
		}
		if gone {
			l.dirty = true
			s.dissolve(l)
		}
		l.turn <- struct{}{}
	}
}

// choose returns the lane for a statement, or nil for one of its own. The session's mutex is held.
func (s *server) choose(n *session, transaction string, leaves bool) (*lane, error) {
	if n.closed {
		return nil, faultf(codes.Aborted, "", "the session was closed")
	}
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
	taken := l.gone // from its session, which was closed meanwhile
	over := taken || !l.open && !(l.stateful && n.main == l)
	if over && !taken {
		if n.main == l {
			n.main = nil
		}
		delete(n.extra, l.transaction)
		l.gone = true
	}
	n.mu.Unlock()
	if over {
		l.dirty = l.dirty || taken
		s.dissolve(l)
	}
	n.registry.publish(n)
	l.turn <- struct{}{}
}

// dissolve gives a lane's connection back. A transaction that is still open on it is rolled back. It may
// be called again.
func (s *server) dissolve(l *lane) {
	if l.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), tidyLimit)
		defer cancel()
		if plan, err := s.planning(ctx, l); err == nil { // to roll back; a stuck planner must not keep it from that
			defer plan.release()
		}
		s.pool.put(l.conn, !l.dirty && !l.open && !l.stateful)
		l.conn = nil
	}
	l.grip.release()
}

// closeLanes rolls back and closes lanes that were taken from their session, once their statements have
// ended. A lane whose statement outlasts ctx is dissolved when that one leaves it.
func (s *server) closeLanes(ctx context.Context, lanes []*lane) {
	for _, l := range lanes {
		select {
		case <-l.turn:
		default:
			select {
			case <-l.turn:
			case <-ctx.Done():
				continue
			}
		}
		l.dirty = true
		s.dissolve(l)
		l.turn <- struct{}{}
	}
}

// ready gives the lane its connection and, for a transaction of the protocol, begins it; and it takes
// the latch on changes as the statement needs it.
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
	if err := l.begin(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	n.mu.Lock()
	l.open = true
	n.mu.Unlock()
	return nil
}

// grab takes the latch on changes as a statement on this lane needs it.
func (l *lane) grab(ctx context.Context, st statement) error {
	switch {
	case st.Temporary || (st.Class != wire.DDL && st.Class != wire.Write):
		return nil
	case st.Class == wire.DDL && (l.open || l.transaction != ""):
		return l.grip.alone(ctx)
	}
	return l.grip.share(ctx)
}

// planning takes the latch on plans for a statement on this lane, until the returned grip is released.
func (s *server) planning(ctx context.Context, l *lane) (*grip, error) {
	g := s.plans.grip()
	if l.grip.holds == holdsAlone {
		return g, g.alone(ctx)
	}
	return g, g.share(ctx)
}

func errAborted() error {
	return faultf(codes.FailedPrecondition, "", "the transaction is aborted: ROLLBACK first")
}

// settle is called after each statement with its error. In a transaction it finds out whether the engine
// aborted it; outside one it lets the latch go.
func (s *server) settle(n *session, l *lane, err error) error {
	torn := l.torn
	l.torn = false
	if !l.open {
		l.grip.release()
		return err
	}
	if err == nil || l.aborted {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyLimit)
	defer cancel()
	if torn || l.conn.run(ctx, "SELECT 1") != nil {
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

// begin runs a BEGIN. It is never interrupted, and after one that fails nobody knows what is open.
func (l *lane) begin(ctx context.Context, sql string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := l.conn.run(context.WithoutCancel(ctx), sql)
	if err != nil {
		l.dirty = true
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
