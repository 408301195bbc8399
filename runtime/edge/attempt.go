package edge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

// outcome is how one call to a node ended.
type outcome struct {
	err         error // nil: well
	reason      wire.Reason
	class       wire.Class
	state       wire.State
	denial      wire.Denial // why the guard refused, if it did
	rows, bytes int64
	held        *frame // the last one of the node's, not yet delivered
	started     bool   // the node may have seen the call
	delivered   bool   // the client got a frame
	fromNode    bool   // the node itself ended the call, not what is between
	clientGone  bool   // the client ended it
}

// broken reports a fault of the transport.
func (o outcome) broken() bool { return o.err != nil && !o.fromNode && !o.clientGone }

// assertionLife bounds how long an assertion can be replayed; a call that was admitted runs on.
const assertionLife = 15 * time.Second

// attempt makes the call to the node once, and forwards its frames to the client.
func (c *call) attempt(ctx context.Context, n *node, withPermissions bool) outcome {
	md, err := c.metadata(ctx, withPermissions)
	if err != nil {
		c.edge.log.Error("call not sealed", "pool", c.access.PoolID, "err", err)
		return outcome{err: status.Error(codes.Internal, "the call could not be sealed"), fromNode: true}
	}
	parent := ctx
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, md))
	defer cancel() // ends the node's side when the client's fails
	desc := &grpc.StreamDesc{ClientStreams: c.method.up, ServerStreams: c.method.down}
	s, err := n.conn.NewStream(ctx, desc, service+c.method.name, c.edge.callOptions...)
	if err != nil {
		return outcome{err: err, clientGone: parent.Err() != nil}
	}
	send(s, c.first.share())
	if c.up != nil {
		if !c.up.attach(s, c.edge.background.Go) {
			return outcome{err: status.Error(codes.Unavailable,
				"no node took the stream before too much of it was sent; nothing was done, try again"), started: true, fromNode: true}
		}
	} else {
		_ = s.CloseSend()
	}
	o := c.receive(s)
	o.started = true
	o.read(s.Trailer())
	if o.state != "" {
		c.edge.pins.tell(c.acts(), n.pin(), o.state)
		c.edge.pins.own(c.acts(), c.who.life)
	}
	if o.held != nil {
		c.deliver(&o, o.held)
	}
	o.clientGone = o.clientGone || parent.Err() != nil
	return o
}

// receive forwards the node's frames, one by one: what the client does not read, the node does not send.
// Of a method that is late it holds the last one back: a client goes on as soon as it has the answer,
// and the trailer behind it may pin the session.
func (c *call) receive(s grpc.ClientStream) (o outcome) {
	for {
		var f frame
		err := s.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			f.free() // a unary call may have both, a message and an error
			o.err = err
			return o
		}
		o.bytes += int64(f.b.Len())
		next := &f
		if c.method.late {
			next, o.held = o.held, next
		}
		if next != nil && !c.deliver(&o, next) {
			return o
		}
		if !c.method.down {
			return o // the one answer is there, and the status with it
		}
	}
}

// deliver sends a frame to the client. It reports whether that went well.
func (c *call) deliver(o *outcome, f *frame) bool {
	o.delivered = true
	err := c.stream.SendMsg(f)
	f.free()
	if err != nil {
		o.err, o.clientGone = err, true
	}
	return err == nil
}

func (o *outcome) read(trailer metadata.MD) {
	o.reason = wire.Reason(header(trailer, wire.ReasonKey))
	o.class = wire.Class(header(trailer, wire.ClassKey))
	o.state = wire.State(header(trailer, wire.SessionKey))
	if raw := header(trailer, wire.DeniedKey); raw != "" {
		_ = json.Unmarshal([]byte(raw), &o.denial) // without it the audit has less to say
	}
	o.rows, _ = strconv.ParseInt(header(trailer, wire.RowsKey), 10, 64)
	o.fromNode = o.reason != "" || o.state != "" || o.err != nil && !transportCode(status.Code(o.err))
}

// transportCode reports whether gRPC itself gives that code when a connection fails.
func transportCode(c codes.Code) bool {
	return c == codes.Unavailable || c == codes.Internal || c == codes.Unknown
}

// metadata is what goes to the node: the assertion, and what the client sent that is not for us.
func (c *call) metadata(ctx context.Context, withPermissions bool) (metadata.MD, error) {
	in, _ := metadata.FromIncomingContext(ctx)
	md := make(metadata.MD, len(in)+2)
	for name, values := range in {
		if passedOn(name) {
			md[name] = values
		}
	}
	a := c.access
	sealed, err := c.keys.Seal(wire.PurposeAssertion, wire.Assertion{
		User: a.User, Name: a.UserName, Tenant: a.Tenant, Session: c.session, Statement: c.statement,
		Permissions: a.PermissionsHash, Expires: time.Now().Add(assertionLife),
	})
	if err != nil {
		return nil, err
	}
	md.Set(wire.AssertionKey, string(sealed))
	if withPermissions {
		if sealed, err = c.keys.Seal(wire.PurposePermissions, a.Permissions); err != nil {
			return nil, err
		}
		md.Set(wire.PermissionsKey, string(sealed))
	}
	return md, nil
}

// passedOn reports whether a client's header may reach a node.
func passedOn(name string) bool {
	switch name {
	case headerAuth, headerAuthQ, headerToken, headerTenant, headerPool, "cookie", "user-agent", "content-type", "te":
		return false
	}
	return !strings.HasPrefix(name, "qod-") && !strings.HasPrefix(name, ":") && !strings.HasPrefix(name, "grpc-")
}
