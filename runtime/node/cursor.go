package node

import (
	"context"
	"errors"

	"github.com/apache/arrow-go/v18/arrow"
	duck "github.com/duckdb/duckdb-go-bindings"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// cursor is a prepared statement on a connection and, once started, its result. It must be closed, and
// while it is open nothing else may run on the connection.
type cursor struct {
	conn    *conn
	stmt    duck.PreparedStatement
	pending duck.PendingResult
	result  duck.Result
	options duck.ArrowOptions
	schema  *arrow.Schema // of the result, once started
	veil    veil          // over every error of the engine that the cursor returns
	columns []string      // of the result, where they are not to be named by the SQL that runs; else nil
}

// prepare parses and binds one statement of the node's own. It runs nothing.
func (c *conn) prepare(ctx context.Context, sql string) (*cursor, error) {
	return c.prepareVeiled(ctx, sql, veil{})
}

func (c *conn) prepareVeiled(ctx context.Context, sql string, v veil) (*cursor, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	q := &cursor{conn: c, veil: v}
	var state duck.State
	c.during(ctx, func() { state = duck.Prepare(c.c, sql, &q.stmt) })
	if state == duck.StateError {
		err := v.over(messageFault(ctx, duck.PrepareError(q.stmt)))
		q.close()
		return nil, err
	}
	return q, nil
}

// prepareChecked is prepare for a statement that the guard let through. What the engine takes for another
// kind of statement than the guard did is refused.
func (c *conn) prepareChecked(ctx context.Context, st statement) (*cursor, error) {
	q, err := c.prepareVeiled(ctx, st.SQL, st.veil())
	if err != nil {
		return nil, err
	}
	if kind := duck.PreparedStatementType(q.stmt); !agreed(st.Statement, kind) {
		q.close()
		return nil, faultf(codes.PermissionDenied, wire.Denied,
			"the statement was checked as %s, and the engine takes it for another kind (%d)", st.Kind, kind)
	}
	if st.Original == "" {
		return q, nil
	}
	if err := q.nameColumns(ctx, st.Original); err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func (q *cursor) close() {
	q.finish()
	duck.DestroyPrepare(&q.stmt)
}

// finish ends the result, so that the statement can be started again.
func (q *cursor) finish() {
	defer q.conn.last.inEngine()()
	duck.DestroyArrowOptions(&q.options)
	duck.DestroyResult(&q.result)
	duck.DestroyPending(&q.pending)
	q.schema = nil
}

// preparedSchema is the schema that the result will have, or nil when it depends on the types of
// parameters that are not bound.
func (q *cursor) preparedSchema() (*arrow.Schema, error) {
	n := duck.PreparedStatementColumnCount(q.stmt)
	names := make([]string, n)
	types := make([]duck.LogicalType, n)
	defer destroyTypes(types)
	for i := range n {
		names[i] = duck.PreparedStatementColumnName(q.stmt, i)
		types[i] = duck.PreparedStatementColumnLogicalType(q.stmt, i)
		if types[i].Ptr == nil || duck.GetTypeId(types[i]) == duck.TypeInvalid {
			return nil, nil
		}
	}
	names, err := q.renamed(names)
	if err != nil {
		return nil, err
	}
	var options duck.ArrowOptions
	duck.ConnectionGetArrowOptions(q.conn.c, &options)
	defer duck.DestroyArrowOptions(&options)
	schema, err := arrowSchema(options, types, names)
	return schema, q.veil.over(err)
}

// start runs the statement with what is bound. A streaming result is made as it is read; any other
// is complete when start returns.
func (q *cursor) start(ctx context.Context, streaming bool) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var state duck.State
	q.conn.during(ctx, func() {
		if streaming {
			state = duck.PendingPreparedStreaming(q.stmt, &q.pending)
		} else {
			state = duck.PendingPrepared(q.stmt, &q.pending)
		}
	})
	if state == duck.StateError {
		return q.veil.over(messageFault(ctx, duck.PendingError(q.pending)))
	}
	q.conn.during(ctx, func() { state = duck.ExecutePending(q.pending, &q.result) })
	if state == duck.StateError {
		return q.veil.over(resultFault(ctx, &q.result))
	}
	q.options = duck.ResultGetArrowOptions(&q.result)
	schema, err := q.resultSchema()
	q.schema = schema
	return err
}

func (q *cursor) resultSchema() (*arrow.Schema, error) {
	n := duck.ColumnCount(&q.result)
	names := make([]string, n)
	types := make([]duck.LogicalType, n)
	defer destroyTypes(types)
	for i := range n {
		names[i] = duck.ColumnName(&q.result, i)
		types[i] = duck.ColumnLogicalType(&q.result, i)
	}
	names, err := q.renamed(names)
	if err != nil {
		return nil, err
	}
	schema, err := arrowSchema(q.options, types, names)
	return schema, q.veil.over(err)
}

// next returns the next rows, or nil at the end. The caller releases what it gets.
func (q *cursor) next(ctx context.Context) (arrow.RecordBatch, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var chunk duck.DataChunk
	q.conn.during(ctx, func() { chunk = duck.FetchChunk(q.result) })
	if chunk.Ptr == nil {
		// The end of the rows and an error look the same here; only the result tells.
		if message := duck.ResultError(&q.result); message != "" {
			return nil, q.veil.over(resultFault(ctx, &q.result))
		}
		return nil, nil
	}
	defer duck.DestroyDataChunk(&chunk)
	rec, failure := duck.DataChunkToArrowArray(q.options, q.schema, chunk)
	defer duck.DestroyErrorData(&failure)
	if rec == nil {
		return nil, q.veil.over(engineFault(duck.ErrorDataMessage(failure)))
	}
	return rec, nil
}

func arrowSchema(options duck.ArrowOptions, types []duck.LogicalType, names []string) (*arrow.Schema, error) {
	if len(names) == 0 {
		return arrow.NewSchema(nil, nil), nil
	}
	schema, failure := duck.NewArrowSchema(options, types, names)
	defer duck.DestroyErrorData(&failure)
	if schema == nil {
		return nil, engineFault(duck.ErrorDataMessage(failure))
	}
	return schema, nil
}

func destroyTypes(types []duck.LogicalType) {
	for i := range types {
		duck.DestroyLogicalType(&types[i])
	}
}

// collect runs one statement and returns all of its rows; for results known to be small.
func (c *conn) collect(ctx context.Context, sql string, args ...string) ([]arrow.RecordBatch, error) {
	q, err := c.prepare(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer q.close()
	for i, arg := range args {
		if duck.BindVarchar(q.stmt, duck.IdxT(i+1), arg) == duck.StateError {
			return nil, errors.New("bind parameter of " + sql)
		}
	}
	if err := q.start(ctx, false); err != nil {
		return nil, err
	}
	return q.drain(ctx)
}

// maxDrained bounds a result that is kept whole, in bytes.
const maxDrained = 64 << 20

func errTooLarge() error {
	return faultf(codes.ResourceExhausted, "",
		"the result of the statement takes more than %d MiB, the limit for what is kept", maxDrained>>20)
}

// drain reads the rest of the rows, which must be no more than maxDrained bytes.
func (q *cursor) drain(ctx context.Context) ([]arrow.RecordBatch, error) {
	var all []arrow.RecordBatch
	total := int64(0)
	for {
		rec, err := q.next(ctx)
		if err != nil {
			releaseAll(all)
			return nil, err
		}
		if rec == nil {
			return all, nil
		}
		all = append(all, rec)
		if total += sizeOf(rec); total > maxDrained {
			releaseAll(all)
			return nil, errTooLarge()
		}
	}
}

func releaseAll(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}
