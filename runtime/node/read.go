package node

import (
	"context"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// sink takes the schema of a result and returns where its rows go, until ctx ends.
type sink func(ctx context.Context, schema *arrow.Schema) (send func(arrow.RecordBatch) error, err error)

// read runs a read and sends its rows as they are made. It returns when all are sent, or with the error
// that ended them: the last row is only the last one when read returns nil.
func (s *server) read(ctx context.Context, c *call, q query, id string, out sink) error {
	n, done := s.sessions.use(c)
	defer done()
	if err := n.takeLost(); err != nil {
		return err
	}
	release, err := s.admit(n, q.transaction)
	if err != nil {
		return err
	}
	defer release()
	x, finish := s.running.begin(ctx, s.live.Load().StatementTimeout, n.id, c.statementID(), id)
	defer finish()
	rows, err := s.readOn(x, c, n, q, out)
	o := &outcome{id: c.statementID(), session: n.id, class: q.st.Class, rows: rows}
	if err = s.note(err); err != nil {
		o.err = asFault(err)
	}
	n.setLast(o)
	s.stats.add(time.Since(x.started))
	c.say(wire.RowsKey, strconv.FormatInt(rows, 10))
	return err
}

func (s *server) readOn(x *execution, c *call, n *session, q query, out sink) (int64, error) {
	l, err := s.enter(x.ctx, n, q.transaction, false)
	if err != nil {
		return 0, err
	}
	defer s.leave(n, l)
	x.protected.Store(l.open || q.transaction != "")
	if err := s.ready(x.ctx, n, l, q.st); err != nil {
		return 0, s.settle(n, l, err)
	}
	if err := s.agree(x.ctx, c, n, l, &q); err != nil {
		return 0, s.settle(n, l, err)
	}
	// Outside a transaction, one that can only read: what the guard may have missed cannot write, and
	// preparing and running see the same snapshot with half the round trips to Postgres.
	own := !l.open
	if own {
		if err := l.begin(x.ctx, "BEGIN TRANSACTION READ ONLY"); err != nil {
			return 0, err
		}
	}
	rows, err := s.readRows(x.ctx, l, q, out)
	l.dirty = l.dirty || x.ctx.Err() != nil
	if own {
		end := "COMMIT"
		if err != nil {
			end = "ROLLBACK"
		}
		_ = l.tidy(x.ctx, end) // nothing was written; a connection that cannot end it is dropped
	}
	return rows, s.settle(n, l, err)
}

func (s *server) readRows(ctx context.Context, l *lane, q query, out sink) (int64, error) {
	plan, err := s.planning(ctx, l)
	if err != nil {
		return 0, err
	}
	defer plan.release()
	cur, err := l.conn.prepareChecked(ctx, q.st)
	if err != nil {
		return 0, err
	}
	defer cur.close()
	plan.release() // never held while rows go to a client
	var batches *batcher
	defer func() {
		if batches != nil {
			batches.drop()
		}
	}()
	err = q.parameters.each(func(values []duckValue) error {
		if err := s.startRead(ctx, l, cur, values); err != nil {
			return err
		}
		defer cur.finish()
		if batches == nil {
			send, err := out(ctx, cur.schema)
			if err != nil {
				return err
			}
			batches = &batcher{schema: cur.schema, send: send}
		}
		return pump(ctx, cur, batches)
	})
	if batches == nil {
		return 0, err
	}
	if err == nil {
		err = batches.flush()
	}
	return batches.rows, err
}

// startRead binds a row and starts the statement. With parameters the engine may plan again when it starts.
func (s *server) startRead(ctx context.Context, l *lane, cur *cursor, values []duckValue) error {
	if len(values) > 0 {
		plan, err := s.planning(ctx, l)
		if err != nil {
			return err
		}
		defer plan.release()
	}
	if err := cur.bindExact(ctx, values); err != nil {
		return err
	}
	return cur.start(ctx, true)
}

func pump(ctx context.Context, cur *cursor, batches *batcher) error {
	for {
		rec, err := cur.next(ctx)
		if err != nil || rec == nil {
			return err
		}
		if err := batches.add(rec); err != nil {
			return err
		}
	}
}

// fetch sends the result that a ticket stands for: it runs a read, and sends again what anything else
// answered when it ran.
func (s *server) fetch(ctx context.Context, c *call, h wire.Handle, out sink) error {
	if h.SQL == "" {
		return s.replay(ctx, c, h, out)
	}
	if !h.ReadOnly && !s.here(h) {
		return errTransactionLost("the node of the result was replaced")
	}
	q, err := s.ask(ctx, c, h.SQL, h.Transaction, true)
	if err != nil {
		return err
	}
	q.bind = h.Bind
	if q.parameters, err = s.boundOf(c, h); err != nil {
		return err
	}
	return s.read(ctx, c, q, h.Statement, out)
}

// replay sends what a statement answered.
func (s *server) replay(ctx context.Context, c *call, h wire.Handle, out sink) error {
	var o *outcome
	if s.here(h) {
		o = s.outcomes.fetch(h.Statement, h.Session)
	}
	if o == nil {
		return errResultGone()
	}
	c.say(wire.ClassKey, string(o.class))
	if o.err != nil {
		return o.err
	}
	send, err := out(ctx, o.schema)
	if err != nil {
		return err
	}
	for _, b := range o.batches {
		if err := send(b); err != nil {
			return err
		}
	}
	c.say(wire.RowsKey, strconv.FormatInt(o.rows, 10))
	return nil
}

func errResultGone() error {
	return faultf(codes.NotFound, "", "the result is gone: it was kept for %s, or until its node was replaced", outcomeTTL)
}
