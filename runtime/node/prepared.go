package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// maxBound bounds how many sets of parameters a session keeps; the least recently used go first.
	maxBound = 1000
	// maxBoundBytes and maxBoundAll bound the parameters that a session and all sessions keep, in bytes.
	maxBoundBytes = 128 << 20
	maxBoundAll   = 512 << 20
	// boundTTL is how long a set of parameters is kept after its last use.
	boundTTL = 30 * time.Minute
)

// boundSets is the parameters that a session bound, by the id of the bind, and the last bind of each
// prepared statement for clients that keep to the handle they had.
type boundSets struct {
	all *atomic.Int64 // bytes that all sessions keep

	mu     sync.Mutex
	sets   map[string]*boundSet
	bytes  int64
	closed bool // it keeps nothing any more
}

type boundSet struct {
	parameters *parameters
	used       time.Time
}

func newBoundSets(all *atomic.Int64) *boundSets {
	return &boundSets{all: all, sets: map[string]*boundSet{}}
}

// keep keeps parameters under ids. The session's older ones make room; when it has none and the node is
// full nevertheless, the parameters are refused.
func (b *boundSets) keep(p *parameters, ids ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return faultf(codes.Aborted, "", "the session was closed")
	}
	now := time.Now()
	for _, id := range ids {
		b.remove(id)
		b.sets[id] = &boundSet{parameters: p, used: now}
		if p.kept++; p.kept == 1 {
			b.bytes += p.bytes
			b.all.Add(p.bytes)
		}
	}
	for len(b.sets) > maxBound || b.bytes > maxBoundBytes || b.all.Load() > maxBoundAll {
		oldest := b.oldest(p)
		if oldest == "" {
			break
		}
		b.remove(oldest)
	}
	if b.all.Load() <= maxBoundAll {
		return nil
	}
	for _, id := range ids {
		b.remove(id)
	}
	return faultf(codes.ResourceExhausted, wire.Busy, "the parameters bound on this node take %d MiB, its limit", maxBoundAll>>20)
}

// oldest is the id of the least recently used parameters other than p, "" when there are none. mu is held.
func (b *boundSets) oldest(p *parameters) string {
	oldest := ""
	for id, set := range b.sets {
		if set.parameters != p && (oldest == "" || set.used.Before(b.sets[oldest].used)) {
			oldest = id
		}
	}
	return oldest
}

// remove forgets what is kept under an id. mu is held.
func (b *boundSets) remove(id string) {
	set := b.sets[id]
	if set == nil {
		return
	}
	delete(b.sets, id)
	if set.parameters.kept--; set.parameters.kept == 0 {
		b.bytes -= set.parameters.bytes
		b.all.Add(-set.parameters.bytes)
	}
}

// expire forgets what was not used for long.
func (b *boundSets) expire(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, set := range b.sets {
		if now.Sub(set.used) > boundTTL {
			b.remove(id)
		}
	}
}

// close forgets everything and keeps nothing any more.
func (b *boundSets) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for id := range b.sets {
		b.remove(id)
	}
}

func (b *boundSets) find(id string) (*parameters, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := b.sets[id]
	if set == nil || time.Since(set.used) > boundTTL {
		b.remove(id)
		return nil, false
	}
	set.used = time.Now()
	return set.parameters, true
}

func (b *boundSets) drop(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		b.remove(id)
	}
}

// CreatePreparedStatement checks and describes a statement. The handle carries its SQL, so that nothing
// of it stays here and any node of the pool can run it.
func (s *server) CreatePreparedStatement(ctx context.Context, request flightsql.ActionCreatePreparedStatementRequest) (flightsql.ActionCreatePreparedStatementResult, error) {
	var result flightsql.ActionCreatePreparedStatementResult
	c := callOf(ctx)
	q, err := s.question(ctx, c, request.GetQuery(), request.GetTransactionId(), true)
	if err != nil {
		return result, err
	}
	n, done := s.sessions.use(c)
	defer done()
	if err := s.allow(n, q); err != nil {
		return result, err
	}
	described, err := s.describe(ctx, c, n, q)
	if err != nil {
		return result, err
	}
	update := !q.st.reads() && !q.st.Returning
	result.IsUpdate = &update
	result.ParameterSchema = described.parameters
	if !update { // a driver takes a statement with a result schema for a query
		result.DatasetSchema = described.schema
	}
	result.Handle, err = s.mint(c, wire.Handle{
		Kind: wire.Prepared, Statement: newID(), SQL: q.st.text, Transaction: q.transaction, ReadOnly: q.st.reads(),
	})
	return result, err
}

// preparedQuery opens a prepared handle: its statement, checked again, and its last parameters.
func (s *server) preparedQuery(ctx context.Context, c *call, sealed []byte) (query, wire.Handle, error) {
	h, err := s.redeem(c, wire.Prepared, sealed)
	if err != nil {
		return query{}, h, err
	}
	if h.Transaction != "" && !s.here(h) {
		return query{}, h, errTransactionLost("the node of the transaction was replaced")
	}
	q, err := s.ask(ctx, c, h.SQL, h.Transaction, true)
	if err != nil {
		return query{}, h, err
	}
	q.bind = h.Bind
	if h.Bind == "" {
		q.bind = h.Statement // the last bind under the handle that was never replaced, if any
		n, done := s.sessions.use(c)
		defer done()
		p, ok := n.bound.find(h.Statement)
		if !ok {
			q.bind = ""
		}
		q.parameters = p
		return q, h, nil
	}
	q.parameters, err = s.boundOf(c, h)
	return q, h, err
}

// boundOf returns the parameters that a handle names, nil for none.
func (s *server) boundOf(c *call, h wire.Handle) (*parameters, error) {
	if h.Bind == "" {
		return nil, nil
	}
	n, done := s.sessions.use(c)
	defer done()
	p, ok := n.bound.find(h.Bind)
	if !ok {
		return nil, faultf(codes.FailedPrecondition, "", "the bound parameters are gone: bind them again")
	}
	return p, nil
}

// GetFlightInfoPreparedStatement is GetFlightInfoStatement for a prepared statement.
func (s *server) GetFlightInfoPreparedStatement(ctx context.Context, cmd flightsql.PreparedStatementQuery, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	c := callOf(ctx)
	q, _, err := s.preparedQuery(ctx, c, cmd.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	return s.flightInfo(ctx, c, q, desc)
}

// GetSchemaPreparedStatement tells the schema of the statement's result.
func (s *server) GetSchemaPreparedStatement(ctx context.Context, cmd flightsql.PreparedStatementQuery, _ *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	c := callOf(ctx)
	q, _, err := s.preparedQuery(ctx, c, cmd.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	return s.schemaOf(ctx, c, q)
}

// fetchPrepared serves a DoGet that names the prepared statement itself: it runs it.
func (s *server) fetchPrepared(ctx context.Context, c *call, sealed []byte, out sink) error {
	q, h, err := s.preparedQuery(ctx, c, sealed)
	if err != nil {
		return err
	}
	if q.st.reads() {
		return s.read(ctx, c, q, h.Statement, out)
	}
	n, done := s.sessions.use(c)
	defer done()
	o, err := s.once(ctx, c, n, q)
	if err != nil {
		return err
	}
	return s.replay(ctx, c, wire.Handle{Incarnation: s.incarnation, Session: n.id, Statement: o.id}, out)
}

// DoPutPreparedStatementQuery binds parameters and returns a handle for this bind. The old handle runs
// with its last bind.
func (s *server) DoPutPreparedStatementQuery(ctx context.Context, cmd flightsql.PreparedStatementQuery, r flight.MessageReader, _ flight.MetadataWriter) ([]byte, error) {
	c := callOf(ctx)
	h, err := s.redeem(c, wire.Prepared, cmd.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	p, err := readParameters(r)
	if err != nil {
		return nil, err
	}
	n, done := s.sessions.use(c)
	defer done()
	if p == nil {
		n.bound.drop(h.Statement)
		h.Bind = ""
		return s.mint(c, h)
	}
	h.Bind = newID()
	if err := n.bound.keep(p, h.Bind, h.Statement); err != nil {
		return nil, err
	}
	return s.mint(c, h)
}

// DoPutPreparedStatementUpdate runs a statement once for each row of parameters and returns the total of
// rows changed.
func (s *server) DoPutPreparedStatementUpdate(ctx context.Context, cmd flightsql.PreparedStatementUpdate, r flight.MessageReader) (int64, error) {
	c := callOf(ctx)
	q, _, err := s.preparedQuery(ctx, c, cmd.GetPreparedStatementHandle())
	if err != nil {
		return 0, err
	}
	p, err := readParameters(r)
	if err != nil {
		return 0, err
	}
	if p != nil {
		q.parameters = p
	}
	return s.update(ctx, c, q)
}

// ClosePreparedStatement forgets the parameters of a prepared statement. Drivers close late and more than
// once, also after the transaction or the node of the statement is gone: all of that is fine.
func (s *server) ClosePreparedStatement(ctx context.Context, request flightsql.ActionClosePreparedStatementRequest) error {
	c := callOf(ctx)
	h, err := s.redeem(c, wire.Prepared, request.GetPreparedStatementHandle())
	if err != nil {
		return nil
	}
	if n := s.sessions.find(c.Session); n != nil {
		n.bound.drop(h.Bind, h.Statement)
	}
	return nil
}
