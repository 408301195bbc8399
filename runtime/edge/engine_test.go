package edge

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

// engine is what a peer runs in place of DuckDB: a handful of statements.
//
//	SELECT who       one row: the peer's id
//	SELECT rows N    N batches of 1 MiB
//	SELECT hang      nothing, until cancelled
//	SELECT stall     one batch, then nothing, until cancelled
//	SELECT fail      an error with a long text
//	BEGIN, COMMIT, ROLLBACK, SET …, HANG, anything else: an update of 7 rows
type engine struct {
	flightsql.BaseServer
	*peer
}

func (e *engine) caller(ctx context.Context) wire.Assertion {
	md, _ := metadata.FromIncomingContext(ctx)
	var a wire.Assertion
	if e.keys.Open(wire.PurposeAssertion, []byte(md.Get(wire.AssertionKey)[0]), &a) != nil {
		e.t.Error("a call without a good assertion was admitted")
	}
	return a
}

func (e *engine) mint(a wire.Assertion, h wire.Handle) []byte {
	h.Node, h.Incarnation, h.Session, h.User, h.Issued = e.id, e.incarnation, a.Session, a.User, time.Now()
	sealed, err := e.keys.Seal(wire.PurposeHandle, h)
	if err != nil {
		e.t.Error(err)
	}
	return sealed
}

func (e *engine) redeem(sealed []byte) (h wire.Handle, err error) {
	if e.keys.Open(wire.PurposeHandle, sealed, &h) != nil {
		err = status.Error(codes.InvalidArgument, "not a handle of this pool")
	}
	return h, err
}

func schemaOf(sql string) *arrow.Schema {
	if strings.HasPrefix(sql, "SELECT rows") || !strings.HasPrefix(sql, "SELECT") {
		return arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	}
	return arrow.NewSchema([]arrow.Field{{Name: "who", Type: arrow.BinaryTypes.String}}, nil)
}

// execute runs what is not a read, once.
func (e *engine) execute(ctx context.Context, sql string) error {
	a := e.caller(ctx)
	e.mu.Lock()
	e.ran[sql]++
	e.mu.Unlock()
	e.reached <- sql
	switch word, _, _ := strings.Cut(sql, " "); word {
	case "BEGIN":
		e.setState(a.Session, wire.InTransaction)
	case "COMMIT", "ROLLBACK":
		e.setState(a.Session, wire.Free)
	case "SET":
		e.setState(a.Session, wire.Stateful)
	case "HANG":
		<-ctx.Done()
		return ctx.Err()
	}
	grpc.SetTrailer(ctx, metadata.Pairs(wire.ClassKey, string(classOf(sql)), wire.RowsKey, "7"))
	return nil
}

func classOf(sql string) wire.Class {
	switch word, _, _ := strings.Cut(sql, " "); word {
	case "SELECT":
		return wire.Read
	case "BEGIN", "COMMIT", "ROLLBACK":
		return wire.Transaction
	case "SET":
		return wire.Setting
	}
	return wire.Write
}

func (e *engine) info(ctx context.Context, sql string, transaction []byte, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	a := e.caller(ctx)
	h := wire.Handle{Kind: wire.Ticket, Statement: a.Statement}
	switch {
	case sql == "SELECT fail":
		return nil, status.Error(codes.InvalidArgument, strings.Repeat("no such column é ", 400))
	case classOf(sql) == wire.Read:
		h.SQL, h.ReadOnly = sql, len(transaction) == 0 && e.state(a.Session) == wire.Free
		grpc.SetTrailer(ctx, metadata.Pairs(wire.ClassKey, string(wire.Read)))
	default:
		if err := e.execute(ctx, sql); err != nil {
			return nil, err
		}
	}
	if len(transaction) > 0 {
		x, err := e.redeem(transaction)
		if err != nil {
			return nil, err
		}
		h.Transaction = x.Statement
		e.setState(a.Session, wire.InTransaction)
	}
	ticket, err := flightsql.CreateStatementQueryTicket(e.mint(a, h))
	if err != nil {
		return nil, err
	}
	return &flight.FlightInfo{
		Schema: flight.SerializeSchema(schemaOf(sql), memory.DefaultAllocator), FlightDescriptor: desc,
		Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: ticket}}}, TotalRecords: -1, TotalBytes: -1,
	}, nil
}

func (e *engine) GetFlightInfoStatement(ctx context.Context, q flightsql.StatementQuery, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return e.info(ctx, q.GetQuery(), q.GetTransactionId(), d)
}

func (e *engine) GetFlightInfoPreparedStatement(ctx context.Context, q flightsql.PreparedStatementQuery, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	h, err := e.redeem(q.GetPreparedStatementHandle())
	if err != nil {
		return nil, err
	}
	return e.info(ctx, h.SQL, nil, d)
}

func (e *engine) DoGetStatement(ctx context.Context, q flightsql.StatementQueryTicket) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	h, err := e.redeem(q.GetStatementHandle())
	if err != nil {
		return nil, nil, err
	}
	sql := h.SQL
	if sql == "" {
		sql = "the kept answer"
	}
	e.mu.Lock()
	e.ran[sql]++
	e.mu.Unlock()
	e.reached <- sql
	out := make(chan flight.StreamChunk)
	go e.produce(ctx, sql, out)
	return schemaOf(sql), out, nil
}

func (e *engine) produce(ctx context.Context, sql string, out chan<- flight.StreamChunk) {
	defer close(out)
	send := func(r arrow.RecordBatch) bool {
		select {
		case out <- flight.StreamChunk{Data: r}:
			e.batches.Add(1)
			return true
		case <-ctx.Done():
			r.Release()
			return false
		}
	}
	wait := func() {
		<-ctx.Done()
		e.cancelled <- sql
	}
	switch {
	case sql == "SELECT hang":
		wait()
	case sql == "SELECT stall":
		send(e.one(sql))
		wait()
	case strings.HasPrefix(sql, "SELECT rows "):
		n, _ := strconv.Atoi(strings.TrimPrefix(sql, "SELECT rows "))
		for i := 0; i < n; i++ {
			if !send(mebibyte(int64(i))) {
				e.cancelled <- sql
				return
			}
		}
	case strings.HasPrefix(sql, "SELECT"):
		send(e.one(sql))
	default:
		send(number(7))
	}
}

func (e *engine) one(sql string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(sql))
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(e.id)
	return b.NewRecordBatch()
}

func number(n int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(""))
	defer b.Release()
	b.Field(0).(*array.Int64Builder).Append(n)
	return b.NewRecordBatch()
}

func mebibyte(n int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schemaOf(""))
	defer b.Release()
	values := make([]int64, 1<<17)
	for i := range values {
		values[i] = n + int64(i)
	}
	b.Field(0).(*array.Int64Builder).AppendValues(values, nil)
	return b.NewRecordBatch()
}

func (e *engine) DoPutCommandStatementUpdate(ctx context.Context, q flightsql.StatementUpdate) (int64, error) {
	if len(q.GetTransactionId()) > 0 {
		e.setState(e.caller(ctx).Session, wire.InTransaction)
	}
	return 7, e.execute(ctx, q.GetQuery())
}

func (e *engine) DoPutPreparedStatementUpdate(ctx context.Context, q flightsql.PreparedStatementUpdate, r flight.MessageReader) (int64, error) {
	h, err := e.redeem(q.GetPreparedStatementHandle())
	if err != nil {
		return 0, err
	}
	for r.Next() {
	}
	return 7, e.execute(ctx, h.SQL)
}

// DoPutCommandStatementIngest counts the rows that arrive.
func (e *engine) DoPutCommandStatementIngest(ctx context.Context, _ flightsql.StatementIngest, r flight.MessageReader) (n int64, err error) {
	for r.Next() {
		n += r.RecordBatch().NumRows()
	}
	return n, r.Err()
}

func (e *engine) CreatePreparedStatement(ctx context.Context, q flightsql.ActionCreatePreparedStatementRequest) (flightsql.ActionCreatePreparedStatementResult, error) {
	sql := q.GetQuery()
	h := wire.Handle{Kind: wire.Prepared, Statement: uuid.NewString(), SQL: sql, ReadOnly: classOf(sql) == wire.Read}
	return flightsql.ActionCreatePreparedStatementResult{Handle: e.mint(e.caller(ctx), h), DatasetSchema: schemaOf(sql)}, nil
}

func (e *engine) ClosePreparedStatement(ctx context.Context, q flightsql.ActionClosePreparedStatementRequest) error {
	_, err := e.redeem(q.GetPreparedStatementHandle())
	return err
}

func (e *engine) BeginTransaction(ctx context.Context, _ flightsql.ActionBeginTransactionRequest) ([]byte, error) {
	return e.mint(e.caller(ctx), wire.Handle{Kind: wire.TransactionID, Statement: uuid.NewString()}), nil
}

func (e *engine) EndTransaction(ctx context.Context, q flightsql.ActionEndTransactionRequest) error {
	_, err := e.redeem(q.GetTransactionId())
	e.setState(e.caller(ctx).Session, wire.Free)
	return err
}

func (e *engine) CancelFlightInfo(ctx context.Context, r *flight.CancelFlightInfoRequest) (flight.CancelFlightInfoResult, error) {
	return flight.CancelFlightInfoResult{Status: flight.CancelStatusCancelled}, nil
}

func (e *engine) CloseSession(ctx context.Context, _ *flight.CloseSessionRequest) (*flight.CloseSessionResult, error) {
	e.setState(e.caller(ctx).Session, wire.Free)
	return &flight.CloseSessionResult{Status: flight.CloseSessionResultClosed}, nil
}

func (e *engine) GetFlightInfoCatalogs(_ context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return &flight.FlightInfo{FlightDescriptor: d, Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: d.Cmd}}}}, nil
}

func (e *engine) DoGetCatalogs(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	out := make(chan flight.StreamChunk)
	close(out)
	return schemaOf("SELECT"), out, nil
}
