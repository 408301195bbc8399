package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// stallLimit is how long a client may take no rows before its statement is cancelled.
const stallLimit = 5 * time.Minute

// send writes what fill makes. The schema is always sent, also without rows, unless fill fails first.
func (s *server) send(ctx context.Context, stream flight.FlightService_DoGetServer, fill func(context.Context, sink) error) error {
	var out *sender
	err := fill(ctx, func(ctx context.Context, schema *arrow.Schema) (func(arrow.RecordBatch) error, error) {
		w := flight.NewRecordWriter(stream, ipc.WithSchema(schema))
		out = &sender{w: w, stall: stallLimit, group: &s.sends}
		return func(b arrow.RecordBatch) error { return out.write(ctx, b) }, nil
	})
	if out == nil {
		return err
	}
	return errors.Join(err, out.close(ctx))
}

// sender writes rows to a client that may stop taking them. gRPC blocks then until the call is over, and
// a blocked handler could not end its call: so each write has a goroutine of its own, which is left alone
// when the wait is over and ends once the handler has returned. The group knows of them.
type sender struct {
	w interface {
		Write(arrow.RecordBatch) error
		Close() error
	}
	stall time.Duration
	group *sync.WaitGroup
	left  bool // a write was left alone; nothing else may be written
}

// write sends one batch. It returns when gRPC has taken it, when ctx ends, or when the client stalls.
func (d *sender) write(ctx context.Context, b arrow.RecordBatch) error {
	b.Retain()
	return d.wait(ctx, func() error {
		defer b.Release()
		return d.w.Write(b)
	})
}

// close ends the stream, unless a write was left alone.
func (d *sender) close(ctx context.Context) error {
	if d.left {
		return nil
	}
	return d.wait(ctx, d.w.Close)
}

func (d *sender) wait(ctx context.Context, f func() error) error {
	written := make(chan error, 1)
	d.group.Go(func() { written <- f() })
	timer := time.NewTimer(d.stall)
	defer timer.Stop()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		d.left = true
		return context.Cause(ctx)
	case <-timer.C:
		d.left = true
		return cancelled{fmt.Sprintf("the statement was cancelled: the client took no rows for %s", d.stall)}
	}
}
