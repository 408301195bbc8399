package node

import (
	"context"
	"errors"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	duck "github.com/duckdb/duckdb-go-bindings"
	"google.golang.org/grpc/codes"
)

// maxParameters bounds the parameters of one statement, in bytes.
const maxParameters = 64 << 20

// parameters are the rows that a client bound to a prepared statement. A nil *parameters is none.
type parameters struct {
	batches []arrow.RecordBatch
	rows    int
	bytes   int64
	kept    int // under how many ids a session keeps them; guarded by its sets' mutex
}

// readParameters takes all rows from a client's stream. A stream without columns binds nothing, and
// that is what JDBC sends for a statement without parameters.
func readParameters(r flight.MessageReader) (*parameters, error) {
	p := &parameters{}
	for r.Next() {
		b := r.RecordBatch()
		if b.NumCols() == 0 || b.NumRows() == 0 {
			continue
		}
		if p.bytes += sizeOf(b); p.bytes > maxParameters {
			releaseAll(p.batches)
			return nil, faultf(codes.ResourceExhausted, "",
				"the parameters take more than %d MiB, the limit of one statement: bind fewer rows at a time", maxParameters>>20)
		}
		b.Retain()
		p.batches = append(p.batches, b)
		p.rows += int(b.NumRows())
	}
	if err := r.Err(); err != nil {
		return nil, faultf(codes.InvalidArgument, "", "read parameters: %s", err)
	}
	if p.rows == 0 {
		return nil, nil
	}
	return p, nil
}

// each calls f with every row, or once with no values when there are no parameters.
func (p *parameters) each(f func(values []duck.Value) error) error {
	if p == nil {
		return f(nil)
	}
	for _, b := range p.batches {
		for row := range int(b.NumRows()) {
			values, err := rowValues(b, row)
			if err != nil {
				return err
			}
			err = f(values)
			destroyValues(values)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// errFirst ends each after its first row.
var errFirst = errors.New("first row")

// bind binds one row, in the client's types.
func (q *cursor) bind(values []duck.Value) error {
	if n := int(duck.NParams(q.stmt)); n != len(values) {
		return faultf(codes.InvalidArgument, "", "the statement has %d parameters, %d are bound", n, len(values))
	}
	for i, v := range values {
		if v.Ptr == nil {
			return faultf(codes.InvalidArgument, "", "parameter %d is no value", i+1)
		}
		if duck.BindValue(q.stmt, duck.IdxT(i+1), v) == duck.StateError {
			return q.veil.over(kindFault("Invalid Input", "bind parameter: "+duck.PrepareError(q.stmt)))
		}
	}
	return nil
}

// bindExact binds one row after casting each value to the type that the engine inferred for its
// parameter. With other types the engine would plan again, and the result's types could differ from
// those that the client was told.
func (q *cursor) bindExact(ctx context.Context, values []duck.Value) error {
	casts := make([]string, len(values))
	exact := 0
	for i := range values {
		t := duck.ParamLogicalType(q.stmt, duck.IdxT(i+1))
		name := ""
		if t.Ptr != nil {
			name = castName(t)
		}
		duck.DestroyLogicalType(&t)
		casts[i] = "?"
		if name != "" {
			casts[i] = "CAST(? AS " + name + ")"
			exact++
		}
	}
	if exact == 0 || len(values) != int(duck.NParams(q.stmt)) {
		return q.bind(values)
	}
	cast, err := q.conn.prepareVeiled(ctx, "SELECT "+strings.Join(casts, ", "), q.veil)
	if err != nil {
		return err
	}
	defer cast.close()
	if err := cast.bind(values); err != nil {
		return err
	}
	if err := cast.start(ctx, false); err != nil {
		return err
	}
	rows, err := cast.drain(ctx)
	if err != nil {
		return err
	}
	defer releaseAll(rows)
	converted, err := rowValues(rows[0], 0)
	if err != nil {
		return err
	}
	defer destroyValues(converted)
	for i := range values {
		if casts[i] != "?" {
			values[i], converted[i] = converted[i], values[i]
		}
	}
	return q.bind(values)
}

// parameterSchema describes the parameters to a client: the type that the engine inferred, or text, which
// the engine casts. Drivers can bind neither null nor union types.
func (q *cursor) parameterSchema() (*arrow.Schema, error) {
	fields := make([]arrow.Field, duck.NParams(q.stmt))
	var options duck.ArrowOptions
	duck.ConnectionGetArrowOptions(q.conn.c, &options)
	defer duck.DestroyArrowOptions(&options)
	for i := range fields {
		name := duck.ParameterName(q.stmt, duck.IdxT(i+1))
		fields[i] = arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
		t := duck.ParamLogicalType(q.stmt, duck.IdxT(i+1))
		if t.Ptr == nil {
			continue
		}
		if castName(t) != "" {
			schema, err := arrowSchema(options, []duck.LogicalType{t}, []string{name})
			if err != nil {
				duck.DestroyLogicalType(&t)
				return nil, q.veil.over(err)
			}
			fields[i] = schema.Field(0)
		}
		duck.DestroyLogicalType(&t)
	}
	return arrow.NewSchema(fields, nil), nil
}
