package edge

import (
	"context"
	"strings"

	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

// finish tells how the call ended.
func (c *call) finish(ctx context.Context, o outcome, n *node) *failure {
	if o.err == nil && c.request.endSession {
		c.edge.pins.close(c.acts())
	}
	f := c.verdict(ctx, o, n)
	if f != nil && f.gone && c.answered(f) {
		f = nil
	}
	c.record(o, f)
	return f
}

// absent tells of a call for which there was no node.
func (c *call) absent(f *failure) *failure {
	if c.to.pin != nil && f.gone {
		c.forget(*c.to.pin)
	}
	if c.answered(f) {
		f = nil
	}
	c.record(outcome{}, f)
	return f
}

// forget clears the session's pin to a process that is gone, if this call tells the client of it.
func (c *call) forget(at router.Pin) {
	if !c.request.closing && !c.request.cancelling {
		c.edge.pins.clear(c.acts(), at)
	}
}

// answered answers in the node's place where its going has done what was asked: a prepared statement
// or session is closed, a transaction rolled back.
func (c *call) answered(f *failure) bool {
	switch {
	case !f.gone:
	case c.request.closing, c.request.rollback:
		return c.stream.SendMsg(&pb.Result{}) == nil
	case c.request.endSession:
		body, err := proto.Marshal(&pb.CloseSessionResult{Status: pb.CloseSessionResult_CLOSED})
		return err == nil && c.stream.SendMsg(&pb.Result{Body: body}) == nil
	case c.request.cancelling:
		f.code, f.text = codes.NotFound, "the statement is not running any more: its node is gone"
	}
	return false
}

// verdict is what the client is told, nil if all is well.
func (c *call) verdict(ctx context.Context, o outcome, n *node) *failure {
	switch {
	case o.err == nil:
		return nil
	case o.clientGone:
		return ended(ctx)
	case o.broken():
		return c.breakage(ctx, o, n)
	}
	s := status.Convert(o.err)
	f := fail(s.Code(), statusPermanent, s.Message())
	switch o.reason {
	case wire.Denied:
		f.status = statusDenied
	case wire.TransactionLost:
		f.status = statusPinLost
	case wire.Timeout:
		f.status = statusTimeout
	case wire.Transient, wire.Draining, wire.Fatal, wire.Busy, wire.WrongRole, wire.NeedPermissions:
		f.status = statusTransient
	default:
		f.status = statusOfCode(f.code)
	}
	if o.reason == wire.Transient && c.to.loss == lossTransaction {
		const prefix = "transient failure inside transaction: "
		f.code, f.text, f.status = codes.Aborted, prefix+strings.TrimPrefix(f.text, prefix), statusPinLost
	}
	return f
}

func statusOfCode(c codes.Code) string {
	switch c {
	case codes.Canceled:
		return statusCancelled
	case codes.DeadlineExceeded:
		return statusTimeout
	case codes.Unavailable:
		return statusTransient
	}
	return statusPermanent
}

// breakage is what the client is told when the connection to the node broke. What gRPC says of it has
// the node's address and goes to the log only.
func (c *call) breakage(ctx context.Context, o outcome, n *node) *failure {
	c.edge.log.Warn("call to node broke", "node", n.ID, "pool", c.access.Tenant+"/"+c.access.Pool,
		"statement", c.statement, "err", o.err)
	if c.to.hard && c.to.loss >= lossSession {
		if !c.edge.alive(ctx, n, c.keys) {
			c.forget(n.pin())
			return c.to.loss.failure()
		}
		if c.to.loss == lossTransaction {
			return fail(codes.Aborted, statusPinLost,
				"transient failure inside transaction: the connection to the node broke")
		}
	}
	switch {
	case o.delivered:
		return fail(codes.Unavailable, statusTransient, "the node went away while it sent the result; run the query again")
	case !o.started:
		return fail(codes.Unavailable, statusTransient, "the node does not answer; nothing was done, try again")
	case c.request.safe || c.onlyReads(o):
		return fail(codes.Unavailable, statusTransient, "the node went away; the statement is safe to run again")
	}
	return fail(codes.Unavailable, statusTransient,
		"the node went away while the statement ran; whether it took effect is unknown")
}
