package node

import (
	"context"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// query is a statement on its way: what the guard made of it, and where it is to run.
type query struct {
	st          statement
	prepared    bool   // checked as one that may have parameters
	names       *names // by which it was checked
	transaction string // id of a transaction of the protocol, or ""
	bind        string // id of bound parameters, or ""
	parameters  *parameters
}

// question checks a statement in a transaction of the protocol, if any.
func (s *server) question(ctx context.Context, c *call, sql string, transaction []byte, prepared bool) (query, error) {
	id, err := s.transactionOf(c, transaction)
	if err != nil {
		return query{}, err
	}
	return s.ask(ctx, c, sql, id, prepared)
}

// ask checks a statement by what names mean where it is going to run, and says its class in the trailer.
func (s *server) ask(ctx context.Context, c *call, sql, transaction string, prepared bool) (query, error) {
	m, err := s.meaning(ctx, c.Session, transaction)
	if err != nil {
		return query{}, err
	}
	q := query{prepared: prepared, names: m, transaction: transaction}
	if q.st, err = s.check(ctx, c, sql, prepared, q.names); err != nil {
		return query{}, err
	}
	c.say(wire.ClassKey, string(q.st.Class))
	return q, nil
}

// GetFlightInfoStatement prepares a read, and runs anything else.
func (s *server) GetFlightInfoStatement(ctx context.Context, cmd flightsql.StatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	c := callOf(ctx)
	q, err := s.question(ctx, c, cmd.GetQuery(), cmd.GetTransactionId(), false)
	if err != nil {
		return nil, err
	}
	return s.flightInfo(ctx, c, q, desc)
}

func (s *server) flightInfo(ctx context.Context, c *call, q query, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	n, done := s.sessions.use(c)
	defer done()
	h := wire.Handle{Kind: wire.Ticket, Statement: c.statementID()}
	var schema *arrow.Schema
	if q.st.reads() {
		if err := s.allow(n, q); err != nil {
			return nil, err
		}
		described, err := s.describe(ctx, c, n, q)
		if err != nil {
			return nil, err
		}
		schema = described.schema
		h.SQL, h.Bind, h.Transaction = q.st.text, q.bind, q.transaction
		h.ReadOnly = q.transaction == "" && !n.pinned()
	} else {
		o, err := s.once(ctx, c, n, q)
		if err != nil {
			return nil, err
		}
		schema, h.Statement = o.schema, o.id
	}
	sealed, err := s.mint(c, h)
	if err != nil {
		return nil, err
	}
	ticket, err := ticketOf(sealed)
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, memory.DefaultAllocator),
		FlightDescriptor: desc,
		Endpoint:         []*flight.FlightEndpoint{{Ticket: ticket}},
		TotalRecords:     -1,
		TotalBytes:       -1,
		Ordered:          true,
	}, nil
}

// GetSchemaStatement tells the schema of a statement's result. It runs nothing.
func (s *server) GetSchemaStatement(ctx context.Context, cmd flightsql.StatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	c := callOf(ctx)
	q, err := s.question(ctx, c, cmd.GetQuery(), cmd.GetTransactionId(), false)
	if err != nil {
		return nil, err
	}
	return s.schemaOf(ctx, c, q)
}

func (s *server) schemaOf(ctx context.Context, c *call, q query) (*flight.SchemaResult, error) {
	n, done := s.sessions.use(c)
	defer done()
	if err := s.allow(n, q); err != nil {
		return nil, err
	}
	described, err := s.describe(ctx, c, n, q)
	if err != nil {
		return nil, err
	}
	schema := described.schema
	if schema == nil {
		schema = arrow.NewSchema(nil, nil)
	}
	return &flight.SchemaResult{Schema: flight.SerializeSchema(schema, memory.DefaultAllocator)}, nil
}

// DoPutCommandStatementUpdate runs a statement and returns the number of rows it changed.
func (s *server) DoPutCommandStatementUpdate(ctx context.Context, cmd flightsql.StatementUpdate) (int64, error) {
	c := callOf(ctx)
	q, err := s.question(ctx, c, cmd.GetQuery(), cmd.GetTransactionId(), false)
	if err != nil {
		return 0, err
	}
	return s.update(ctx, c, q)
}

func (s *server) update(ctx context.Context, c *call, q query) (int64, error) {
	if q.st.reads() {
		return 0, faultf(codes.InvalidArgument, "", "the statement only reads: send it as a query")
	}
	n, done := s.sessions.use(c)
	defer done()
	o, err := s.once(ctx, c, n, q)
	if err != nil {
		return 0, err
	}
	s.outcomes.fetch(o.id, n.id) // the count is all that the client comes for
	return o.rows, nil
}

// description is what preparing a statement tells.
type description struct {
	schema     *arrow.Schema // of the result; nil while it depends on parameters that are not bound
	parameters *arrow.Schema
}

// describe prepares a statement where it would run.
func (s *server) describe(ctx context.Context, c *call, n *session, q query) (description, error) {
	if q.st.answersNothing() {
		return description{schema: controlSchema(), parameters: arrow.NewSchema(nil, nil)}, nil
	}
	x, finish := s.running.begin(ctx, s.live.Load().StatementTimeout, n.id, c.statementID())
	defer finish()
	l, err := s.enter(x.ctx, n, q.transaction, false)
	if err != nil {
		return description{}, err
	}
	defer s.leave(n, l)
	x.protected.Store(l.open || q.transaction != "")
	looking := internal("", wire.Read, guard.Select, false)
	if err := s.ready(x.ctx, n, l, looking); err != nil {
		return description{}, s.note(err)
	}
	if err := s.agree(x.ctx, c, n, l, &q); err != nil {
		return description{}, s.note(err)
	}
	plan, err := s.planning(x.ctx, l)
	if err != nil {
		return description{}, err
	}
	defer plan.release()
	d, err := describeOn(x.ctx, l.conn, q)
	l.dirty = l.dirty || x.ctx.Err() != nil
	return d, s.note(s.settle(n, l, err))
}

func describeOn(ctx context.Context, conn *conn, q query) (description, error) {
	cur, err := conn.prepareChecked(ctx, q.st)
	if err != nil {
		return description{}, err
	}
	defer cur.close()
	var d description
	if d.schema, err = cur.preparedSchema(); err != nil {
		return d, err
	}
	if d.parameters, err = cur.parameterSchema(); err != nil || d.schema != nil || !q.st.reads() {
		return d, err
	}
	if d.parameters.NumFields() > 0 && q.parameters == nil {
		return d, nil
	}
	// Only the planned statement knows its types, so it is started, and ended before its first row.
	err = q.parameters.each(func(values []duckValue) error {
		if err := cur.bindExact(ctx, values); err != nil {
			return err
		}
		if err := cur.start(ctx, true); err != nil {
			return err
		}
		d.schema = cur.schema
		return errFirst
	})
	if err == errFirst {
		err = nil
	}
	return d, err
}

// allow says whether this node takes the statement.
func (s *server) allow(n *session, q query) error {
	if err := n.takeLost(); err != nil {
		return err
	}
	here := n.inTransaction(q.transaction)
	if s.draining.Load() && !here {
		return errDraining()
	}
	switch {
	case q.st.Class == wire.Metadata:
	case s.cfg.Role == roleRead && !q.st.reads():
		return errWrongRole(s.cfg.Role)
	case s.cfg.Role == roleWrite && q.st.reads() && q.transaction == "" && !n.pinned():
		return errWrongRole(s.cfg.Role)
	}
	return nil
}

// admit counts a statement against the node's limit until the returned function is called. Statements of
// an open transaction always get in: others may be waiting for its end.
func (s *server) admit(n *session, transaction string) (func(), error) {
	limit := int64(s.live.Load().MaxConcurrent)
	if count := s.inFlight.Add(1); limit > 0 && count > limit && !n.inTransaction(transaction) {
		s.inFlight.Add(-1)
		return nil, faultf(codes.ResourceExhausted, wire.Busy, "the node runs %d statements, its limit", limit)
	}
	return func() { s.inFlight.Add(-1) }, nil
}

func errDraining() error {
	return faultf(codes.Unavailable, wire.Draining, "the node takes no new statements")
}

func errWrongRole(role string) error {
	return faultf(codes.FailedPrecondition, wire.WrongRole, "the statement is not for a %s node", role)
}

// once runs a statement that is not a read, under the id of the call, exactly once: the same id again gets
// the same answer.
func (s *server) once(ctx context.Context, c *call, n *session, q query) (*outcome, error) {
	if o := s.outcomes.find(c.Statement, n.id); o != nil {
		return o, o.error()
	}
	if err := s.allow(n, q); err != nil {
		return nil, err
	}
	release, err := s.admit(n, q.transaction)
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := s.recorded(ctx, c, n, q.st, func(x *execution, o *outcome) error { return s.onceOn(x, c, n, q, o) })
	if err != nil {
		return nil, err
	}
	c.say(wire.RowsKey, strconv.FormatInt(o.rows, 10))
	return o, o.error()
}

// onceOn runs the statement on the lane it belongs on.
func (s *server) onceOn(x *execution, c *call, n *session, q query, o *outcome) error {
	if q.st.NoOp {
		o.schema = controlSchema()
		return nil
	}
	l, err := s.enter(x.ctx, n, q.transaction, q.st.leaves())
	if err != nil {
		return err
	}
	defer s.leave(n, l)
	x.protected.Store(l.open || q.transaction != "")
	if err := s.ready(x.ctx, n, l, q.st); err != nil {
		return s.settle(n, l, err)
	}
	if q.st.Class == wire.Transaction {
		o.schema = controlSchema()
		return s.control(x.ctx, n, l, q.st)
	}
	if err := s.agree(x.ctx, c, n, l, &q); err != nil {
		return s.settle(n, l, err)
	}
	if err = s.enterable(x.ctx, c, l, q.st); err == nil {
		err = s.runOnce(x.ctx, l, q, o)
	}
	l.dirty = l.dirty || x.ctx.Err() != nil || (err != nil && q.st.leaves())
	if err == nil && q.st.leaves() {
		n.left(l)
	}
	err = s.settle(n, l, err)
	s.learn(x.ctx, n, l, q.st)
	return err
}

// error is how the statement failed, or nil.
func (o *outcome) error() error {
	if o.err == nil {
		return nil
	}
	return o.err
}

// recorded runs f under the statement id of the call and keeps how it ended. The outcome is returned
// whether it is good or bad; the error is that f was not run.
func (s *server) recorded(ctx context.Context, c *call, n *session, st statement, f func(*execution, *outcome) error) (*outcome, error) {
	id := c.statementID()
	x, finish, twin := s.running.beginUnique(ctx, s.live.Load().StatementTimeout, n.id, id)
	for twin != nil {
		select {
		case <-twin:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if o := s.outcomes.find(id, n.id); o != nil {
			return o, nil
		}
		x, finish, twin = s.running.beginUnique(ctx, s.live.Load().StatementTimeout, n.id, id)
	}
	defer finish()
	if o := s.outcomes.find(id, n.id); o != nil {
		return o, nil
	}
	o := &outcome{id: id, session: n.id, class: st.Class}
	if err := s.note(f(x, o)); err != nil {
		o.err = asFault(err)
		o.batches = nil
		if o.err.untouched {
			return nil, err
		}
	}
	s.stats.add(time.Since(x.started))
	s.outcomes.keep(o)
	n.setLast(o)
	return o, nil
}
