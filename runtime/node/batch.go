package node

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

const (
	// batchBytes is the size at which rows are sent: messages of 2,048 rows cost twice the time.
	batchBytes = 1 << 20
	// maxBatchBytes bounds a message; clients of the plain gRPC libraries take 4 MiB.
	maxBatchBytes = 2 << 20
	// batchWait is how long rows of a slow statement wait for company.
	batchWait = 100 * time.Millisecond
)

// batcher joins the engine's chunks of 2,048 rows to batches of about batchBytes, in Go's memory, and
// splits those above maxBatchBytes. send must not keep a batch without retaining it.
type batcher struct {
	schema  *arrow.Schema
	send    func(arrow.RecordBatch) error
	pending []arrow.RecordBatch
	bytes   int64
	since   time.Time
	rows    int64 // sent so far
}

// add takes rec over.
func (b *batcher) add(rec arrow.RecordBatch) error {
	size := sizeOf(rec)
	if len(b.pending) > 0 && b.bytes+size > maxBatchBytes {
		if err := b.flush(); err != nil {
			rec.Release()
			return err
		}
	}
	if len(b.pending) == 0 {
		b.since = time.Now()
	}
	b.pending = append(b.pending, rec)
	b.bytes += size
	if b.bytes >= batchBytes || time.Since(b.since) > batchWait {
		return b.flush()
	}
	return nil
}

// flush sends what is pending.
func (b *batcher) flush() error {
	if len(b.pending) == 0 {
		return nil
	}
	pending, size := b.pending, b.bytes
	b.pending, b.bytes = nil, 0
	defer releaseAll(pending)
	joined, err := join(b.schema, pending)
	if err != nil { // a type that cannot be joined goes as it comes
		for _, rec := range pending {
			if err := b.split(rec, sizeOf(rec)); err != nil {
				return err
			}
		}
		return nil
	}
	defer joined.Release()
	return b.split(joined, size)
}

func (b *batcher) split(rec arrow.RecordBatch, size int64) error {
	pieces := min((size+maxBatchBytes-1)/maxBatchBytes, rec.NumRows())
	if pieces <= 1 {
		b.rows += rec.NumRows()
		return b.send(rec)
	}
	step := (rec.NumRows() + pieces - 1) / pieces
	for from := int64(0); from < rec.NumRows(); from += step {
		piece := rec.NewSlice(from, min(from+step, rec.NumRows()))
		b.rows += piece.NumRows()
		err := b.send(piece)
		piece.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// drop releases what is pending without sending it.
func (b *batcher) drop() {
	releaseAll(b.pending)
	b.pending, b.bytes = nil, 0
}

// join copies the rows of all batches into one, in Go's memory.
func join(schema *arrow.Schema, batches []arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, schema.NumFields())
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	rows := int64(0)
	for _, b := range batches {
		rows += b.NumRows()
	}
	for i := range columns {
		parts := make([]arrow.Array, len(batches))
		for j, b := range batches {
			parts[j] = b.Column(i)
		}
		joined, err := array.Concatenate(parts, memory.DefaultAllocator)
		if err != nil {
			return nil, err
		}
		columns[i] = joined
	}
	return array.NewRecordBatch(schema, columns, rows), nil
}

// sizeOf is the number of bytes in the buffers of a batch. For a slice it is that of the whole.
func sizeOf(rec arrow.RecordBatch) int64 {
	total := int64(0)
	for _, column := range rec.Columns() {
		total += dataSize(column.Data())
	}
	return total
}

func dataSize(d arrow.ArrayData) int64 {
	total := int64(0)
	for _, b := range d.Buffers() {
		if b != nil {
			total += int64(b.Len())
		}
	}
	for _, child := range d.Children() {
		total += dataSize(child)
	}
	if d.DataType().ID() == arrow.DICTIONARY {
		total += dataSize(d.Dictionary())
	}
	return total
}
