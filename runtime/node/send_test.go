package node

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// blocked is a writer that takes nothing until it is let go.
type blocked chan struct{}

func (w blocked) Write(arrow.RecordBatch) error { <-w; return nil }
func (w blocked) Close() error                  { <-w; return nil }

func TestSenderLeavesABlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group sync.WaitGroup
		w := make(blocked)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errStatementTimeout) })
		d := &sender{w: w, stall: stallLimit, group: &group}
		if err := d.write(ctx, ints(1)); err != errStatementTimeout {
			t.Errorf("write ended with %v, want the cause", err)
		}
		if err := d.close(t.Context()); err != nil {
			t.Errorf("close after a write that was left: %v", err)
		}
		start := time.Now()
		d = &sender{w: w, stall: stallLimit, group: &group}
		err := d.write(t.Context(), ints(1))
		if f := asFault(err); f.code != codes.Canceled || !strings.Contains(f.message, "took no rows for 5m0s") {
			t.Errorf("a client that stalls: %v", err)
		}
		if took := time.Since(start); took != stallLimit {
			t.Errorf("it stalled for %s, want %s", took, stallLimit)
		}
		close(w)
		group.Wait()
		d = &sender{w: w, stall: stallLimit, group: &group}
		if err := d.write(t.Context(), ints(1)); err != nil {
			t.Error(err)
		}
		if err := d.close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestCancelOfUnreadResult: a client that has stopped reading must not keep its statement, nor make the
// node look deaf.
func TestCancelOfUnreadResult(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	info, err := c.Execute(t.Context(), "SELECT range FROM range(50000000)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Client.Client.DoGet(t.Context(), info.Endpoint[0].Ticket, grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Recv(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the statement", func() bool { return m.status().InFlight == 1 })
	result, err := c.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || result.Status != flight.CancelStatusCancelled {
		t.Errorf("cancel: %v, %v", result, err)
	}
	eventually(t, "the end of the statement", func() bool { return m.status().InFlight == 0 })
	for err == nil {
		_, err = r.Recv()
	}
	if status.Code(err) != codes.Canceled {
		t.Errorf("the stream ended with %v", err)
	}
	if st := m.status(); st.Fatal != "" {
		t.Errorf("the node is fatal: %s", st.Fatal)
	}
}
