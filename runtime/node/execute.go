package node

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// runOnce runs a statement for each row of its parameters and puts what it answers into o. Outside a
// transaction several rows are one transaction, so that all of them count or none; and so is a statement
// that returns rows, which may be too many to keep.
func (s *server) runOnce(ctx context.Context, l *lane, q query, o *outcome) error {
	several := q.parameters != nil && q.parameters.rows > 1
	if l.open || !(several || q.st.Returning) {
		return s.runRows(ctx, l, q, o)
	}
	if q.st.Class == wire.DDL {
		return faultf(codes.InvalidArgument, "", "a statement that changes tables takes one row of parameters")
	}
	if err := l.begin(ctx, "BEGIN TRANSACTION"); err != nil {
		return err
	}
	if err := s.runRows(ctx, l, q, o); err != nil {
		_ = l.tidy(ctx, "ROLLBACK") // the statement's error is the one to tell
		return err
	}
	if err := l.conn.run(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		_ = l.tidy(ctx, "ROLLBACK")
		return errNotCommitted(q.st.veil().over(err))
	}
	return nil
}

func (s *server) runRows(ctx context.Context, l *lane, q query, o *outcome) error {
	plan, err := s.planning(ctx, l)
	if err != nil {
		return err
	}
	defer plan.release()
	cur, err := l.conn.prepareChecked(ctx, q.st)
	if err != nil {
		return err
	}
	defer cur.close()
	if q.st.Class != wire.DDL && l.grip.holds != holdsAlone {
		plan.release()
	}
	changed, took, kept := false, false, int64(0)
	err = q.parameters.each(func(values []duckValue) error {
		if err := cur.bind(values); err != nil {
			return err
		}
		if err := cur.start(ctx, false); err != nil {
			return err
		}
		defer cur.finish()
		took = true
		rows, err := cur.drain(context.WithoutCancel(ctx)) // it is done, and its call must not end otherwise
		if err != nil {
			return err
		}
		defer releaseAll(rows)
		for _, b := range rows {
			kept += sizeOf(b)
		}
		o.schema = cur.schema
		changed = countsRows(q.st, cur.schema)
		if !changed && kept > maxDrained {
			return errTooLarge()
		}
		return o.take(rows, changed)
	})
	if err != nil {
		l.torn = took
		return err
	}
	if changed && q.parameters != nil && q.parameters.rows > 1 {
		o.batches = []arrow.RecordBatch{countBatch(o.schema, o.rows)}
	}
	return nil
}

// countsRows says whether a result is the number of rows that the statement changed, and not rows. The
// engine's own word for it leaves out CREATE TABLE AS.
func countsRows(st statement, schema *arrow.Schema) bool {
	return !st.Returning && (st.Class == wire.Write || st.Class == wire.DDL) && schema.NumFields() == 1 &&
		schema.Field(0).Name == "Count" && schema.Field(0).Type.ID() == arrow.INT64
}

// take copies rows into the outcome and counts them, or what they say was changed.
func (o *outcome) take(rows []arrow.RecordBatch, changed bool) error {
	for _, b := range rows {
		if !changed {
			o.rows += b.NumRows()
			continue
		}
		if count, ok := b.Column(0).(*array.Int64); ok && count.Len() > 0 {
			o.rows += count.Value(0)
		}
	}
	if changed {
		o.batches = nil // of several counts their sum is kept
	}
	if len(rows) == 0 {
		return nil
	}
	all := batcher{schema: o.schema, send: func(b arrow.RecordBatch) error {
		b.Retain()
		o.batches = append(o.batches, b)
		return nil
	}}
	for _, b := range rows {
		b.Retain()
		if err := all.add(b); err != nil {
			return err
		}
	}
	return all.flush()
}

// countBatch is one row with the number of rows that several runs changed.
func countBatch(schema *arrow.Schema, rows int64) arrow.RecordBatch {
	b := array.NewInt64Builder(allocator())
	defer b.Release()
	b.Append(rows)
	column := b.NewArray()
	defer column.Release()
	return array.NewRecordBatch(schema, []arrow.Array{column}, 1)
}
