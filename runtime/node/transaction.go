package node

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// controlSchema is what the engine answers to BEGIN, COMMIT and ROLLBACK, without rows.
func controlSchema() *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "Success", Type: arrow.FixedWidthTypes.Boolean, Nullable: true}}, nil)
}

// control runs BEGIN, COMMIT or ROLLBACK as SQL.
func (s *server) control(ctx context.Context, n *session, l *lane, st statement) error {
	if l.transaction != "" {
		return faultf(codes.InvalidArgument, "",
			"the statement is in a transaction of the protocol, which only EndTransaction ends")
	}
	if !st.endsTransaction() {
		if l.open {
			return faultf(codes.FailedPrecondition, "", "a transaction is open already")
		}
		if err := l.begin(ctx, st.SQL); err != nil {
			return err
		}
		n.mu.Lock()
		l.open = true
		n.mu.Unlock()
		return nil
	}
	if !l.open {
		return faultf(codes.FailedPrecondition, "", "no transaction is open")
	}
	return s.endTransaction(ctx, n, l, st.commits())
}

// endTransaction ends the lane's transaction. The engine answers COMMIT of an aborted transaction with
// success and keeps nothing of it: that is told as what it is.
func (s *server) endTransaction(ctx context.Context, n *session, l *lane, commit bool) error {
	plan, err := s.planning(ctx, l)
	if err != nil {
		return err // nothing was done: the transaction is as it was
	}
	defer plan.release()
	switch {
	case commit && !l.aborted:
		// Never interrupted: the engine may have committed and then say that it was.
		if err = l.conn.run(context.WithoutCancel(ctx), "COMMIT"); err != nil {
			err = errNotCommitted(veil{depth: l.veil}.over(err))
			s.rollBack(ctx, n, l)
		}
	case commit:
		err = faultf(codes.Aborted, "", "the transaction was aborted by an earlier error and is rolled back: nothing is committed")
		s.rollBack(ctx, n, l)
	default:
		s.rollBack(ctx, n, l)
	}
	n.mu.Lock()
	n.transactionEnded(l)
	n.mu.Unlock()
	l.grip.release()
	plan.release()
	s.relearn(ctx, n, l)
	return err
}

// rollBack ends the lane's transaction without keeping anything of it, which always works: a connection
// that cannot even do that is closed, and what the session had on it is gone.
func (s *server) rollBack(ctx context.Context, n *session, l *lane) {
	err := l.tidy(ctx, "ROLLBACK")
	if err == nil || asFault(err).kind == "TransactionContext" { // the engine had ended it already
		return
	}
	s.log.WarnContext(ctx, "connection is given up: it cannot roll back", "node", s.cfg.ID, "session", n.id,
		"error", trim(veil{depth: l.veil}.over(err).Error()))
	s.pool.put(l.conn, false)
	l.conn = nil
	n.mu.Lock()
	l.stateful = false
	n.mu.Unlock()
}

func errNotCommitted(err error) error {
	f := asFault(err)
	if f.reason == wire.Transient {
		return faultf(codes.Aborted, wire.Transient, "transient failure inside transaction: %s", f.message)
	}
	return faultf(codes.Aborted, f.reason, "the transaction is rolled back: %s", f.message)
}

// BeginTransaction makes the id of a transaction. It begins with its first statement: drivers keep one
// begun at all times.
func (s *server) BeginTransaction(ctx context.Context, _ flightsql.ActionBeginTransactionRequest) ([]byte, error) {
	c := callOf(ctx)
	if s.draining.Load() {
		return nil, errDraining()
	}
	if s.cfg.Role == roleRead {
		return nil, errWrongRole(s.cfg.Role)
	}
	c.say(wire.ClassKey, string(wire.Transaction))
	return s.mint(c, wire.Handle{Kind: wire.TransactionID, Statement: newID()})
}

// EndTransaction ends a transaction. One whose first statement never came ends at once.
func (s *server) EndTransaction(ctx context.Context, request flightsql.ActionEndTransactionRequest) error {
	c := callOf(ctx)
	c.say(wire.ClassKey, string(wire.Transaction))
	id, err := s.transactionOf(c, request.GetTransactionId())
	if err != nil {
		return err
	}
	if id == "" {
		return faultf(codes.InvalidArgument, "", "the transaction id is missing")
	}
	commit := request.GetAction() == flightsql.EndTransactionCommit
	if !commit && request.GetAction() != flightsql.EndTransactionRollback {
		return faultf(codes.InvalidArgument, "", "a transaction ends with commit or rollback")
	}
	n, done := s.sessions.use(c)
	defer done()
	if !commit {
		n.forgive(id)
	} else if err := n.takeLost(); err != nil {
		return err
	}
	st := internal("ROLLBACK", wire.Transaction, guard.Rollback, false)
	if commit {
		st = internal("COMMIT", wire.Transaction, guard.Commit, false)
	}
	o, err := s.recorded(ctx, c, n, st, func(x *execution, o *outcome) error { return s.endByID(x, n, id, commit) })
	if err != nil {
		return err
	}
	return o.error()
}

// endByID ends the transaction with that id, when it has begun.
func (s *server) endByID(x *execution, n *session, id string, commit bool) error {
	n.mu.Lock()
	begun := n.extra[id] != nil || (n.main != nil && n.main.transaction == id)
	ended := slices.Contains(n.ended, id)
	if !begun && !ended {
		n.end(id)
	}
	n.mu.Unlock()
	if !begun {
		if ended && commit {
			return faultf(codes.FailedPrecondition, "", "the transaction has ended")
		}
		return nil
	}
	l, err := s.enter(x.ctx, n, id, false)
	if err != nil {
		return err
	}
	defer s.leave(n, l)
	x.protected.Store(true)
	if !l.open { // its first statement never got as far as to begin it
		n.mu.Lock()
		n.transactionEnded(l)
		n.mu.Unlock()
		return nil
	}
	return s.endTransaction(x.ctx, n, l, commit)
}
