package node

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/qod-io/qod/runtime/wire"
)

// maxReceive bounds a message from a client in bytes: batches of 64 MiB and their envelope.
const maxReceive = 65 << 20

// newGRPC returns a gRPC server that serves s and health, behind the assertion.
func newGRPC(s *server) *grpc.Server {
	g := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxReceive),
		grpc.WaitForHandlers(true),
		grpc.StatsHandler(peers{}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(s.stream),
	)
	flight.RegisterFlightServiceServer(g, newFront(s))
	grpc_health_v1.RegisterHealthServer(g, probe{s: s})
	return g
}

func (s *server) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	handled := make(chan any, 1)
	err = s.around(ctx, info.FullMethod, func(ctx context.Context) error {
		response, err := handler(ctx, request)
		handled <- response
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-handled, nil
}

func (s *server) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return s.around(stream.Context(), info.FullMethod, func(ctx context.Context) error {
		return handler(service, &served{ServerStream: stream, ctx: ctx})
	})
}

// around identifies the caller, runs f, and puts into the trailer what the edge is to know. A panic
// becomes an error of its call alone.
func (s *server) around(ctx context.Context, method string, f func(context.Context) error) (err error) {
	var c *call
	defer func() { err = s.conclude(ctx, c, err) }()
	defer s.survive(method, &err)
	if strings.HasPrefix(method, "/grpc.health.v1.") {
		return f(ctx)
	}
	if c, err = s.identify(ctx); err != nil {
		return err
	}
	return s.answer(c, func() (err error) {
		defer s.survive(method, &err)
		return f(context.WithValue(ctx, callKey{}, c))
	})
}

// survive is deferred, and turns a panic into an error.
func (s *server) survive(method string, err *error) {
	if p := recover(); p != nil {
		s.log.Error("call panicked", "node", s.cfg.ID, "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = faultf(codes.Internal, "", "the node failed to handle the call")
	}
}

// answer runs f. When the node has outgrown its memory, a call whose read was interrupted does not wait for
// its end, which may never come: the client is told why before the process ends, and no edge tries the
// statement on the next node. What else runs then is cut off with the process, and what comes is sent away.
func (s *server) answer(c *call, f func() error) error {
	select {
	case <-s.outgrown:
		return errDraining()
	default:
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-s.outgrown:
		if err := s.running.interruption(c.Statement, c.Session); err != nil {
			return err
		}
		return <-done
	}
}

// conclude sets the trailer of a call and gives its error a status.
func (s *server) conclude(ctx context.Context, c *call, err error) error {
	var f *fault
	if err != nil {
		f = asFault(err)
	}
	if c != nil {
		if c.Session != "" {
			c.say(wire.SessionKey, string(s.sessions.stateOf(c.Session)))
		}
		if f != nil && f.reason != "" {
			c.say(wire.ReasonKey, string(f.reason))
		}
		if f != nil && f.denial != nil {
			if raw, err := json.Marshal(f.denial); err == nil { // texts always encode
				c.say(wire.DeniedKey, string(raw))
			}
		}
		c.mu.Lock()
		_ = grpc.SetTrailer(ctx, c.trailer) // fails only when the stream is gone
		c.mu.Unlock()
	}
	if f == nil {
		return nil
	}
	return f.GRPCStatus().Err()
}

// served is a stream with a context of our own.
type served struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *served) Context() context.Context { return s.ctx }
