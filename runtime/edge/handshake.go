package edge

import (
	"context"
	"errors"
	"io"

	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// handshake begins a session. Its bearer goes out as header and as trailer, since clients look at
// either. Tenant and pool need not be known yet: some clients send no other header with it.
func (e *Edge) handshake(s grpc.ServerStream) error {
	ctx := s.Context()
	md, _ := metadata.FromIncomingContext(ctx)
	c, payload, f := e.greet(ctx, s, md)
	if f != nil {
		return f
	}
	if c.token == "" { // a bearer was given: a connection of its own gets a session of its own
		if c, f = e.begin(c); f != nil {
			return f
		}
	}
	e.pins.touch(session{id: c.session}) // it is new, so that no node can have state of it
	answer := metadata.Pairs(headerAuth, "Bearer "+c.token)
	if err := s.SendHeader(answer); err != nil {
		return err
	}
	s.SetTrailer(answer)
	response := &pb.HandshakeResponse{}
	if payload {
		response.Payload = []byte(c.token)
	}
	return s.SendMsg(response)
}

// greet finds the caller by header, or by the payload of the older authentication.
func (e *Edge) greet(ctx context.Context, s grpc.ServerStream, md metadata.MD) (c caller, payload bool, f *failure) {
	if header(md, headerAuth) != "" || header(md, headerAuthQ) != "" {
		c, f = e.identify(ctx, md)
		return c, false, f
	}
	var first pb.HandshakeRequest
	if err := s.RecvMsg(&first); err != nil && !errors.Is(err, io.EOF) {
		return caller{}, false, ended(ctx)
	}
	var auth pb.BasicAuth
	if len(first.GetPayload()) == 0 || proto.Unmarshal(first.GetPayload(), &auth) != nil || auth.GetUsername() == "" {
		return caller{}, false, refused("no credentials: send them as authorization header, Basic or Bearer")
	}
	c, f = e.login(ctx, md, auth.GetUsername(), auth.GetPassword())
	return c, true, f
}
