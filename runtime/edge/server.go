package edge

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// service is the prefix of the methods' names.
const service = "/arrow.flight.protocol.FlightService/"

const maxHeaderBytes = 64 << 10

// newServer describes the Flight service anew: every method is a stream of frames, unary ones too,
// which look the same on the wire.
func (e *Edge) newServer(cert *Certificate, maxRecv int) *grpc.Server {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(maxRecv),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.ChainStreamInterceptor(e.recovering),
	}
	if cert != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(cert.Config())))
	}
	s := grpc.NewServer(options...)
	s.RegisterService(e.service(), nil)
	return s
}

func (e *Edge) service() *grpc.ServiceDesc {
	schemaOf := func(first []byte) (request, *failure) { return parseDescriptor(first, true) }
	infoOf := func(first []byte) (request, *failure) { return parseDescriptor(first, false) }
	forwarded := []method{
		{name: "GetFlightInfo", parse: infoOf},
		{name: "GetSchema", parse: schemaOf},
		{name: "DoGet", down: true, parse: parseTicket},
		{name: "DoPut", up: true, down: true, late: true, parse: parsePut},
		{name: "DoAction", down: true, late: true, parse: parseAction},
	}
	d := &grpc.ServiceDesc{ServiceName: "arrow.flight.protocol.FlightService"}
	add := func(name string, up, down bool, h grpc.StreamHandler) {
		d.Streams = append(d.Streams, grpc.StreamDesc{StreamName: name, Handler: h, ClientStreams: up, ServerStreams: down})
	}
	for _, m := range forwarded {
		add(m.name, m.up, m.down, e.forward(m))
	}
	add("Handshake", true, true, func(_ any, s grpc.ServerStream) error { return e.handshake(s) })
	add("ListActions", false, true, func(_ any, s grpc.ServerStream) error { return e.listActions(s) })
	add("ListFlights", false, true, unsupported("ListFlights"))
	add("PollFlightInfo", false, false, unsupported("PollFlightInfo"))
	add("DoExchange", true, true, unsupported("DoExchange"))
	return d
}

func unsupported(name string) grpc.StreamHandler {
	return func(any, grpc.ServerStream) error {
		return status.Error(codes.Unimplemented, name+" is not part of what qod serves")
	}
}

// recovering turns a panic into the failure of its call. It also gives gRPC's own errors the limit on
// the length of texts.
func (e *Edge) recovering(_ any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			id := uuid.NewString()
			e.metrics.panics.Inc()
			e.log.Error("panic in a call", "id", id, "method", info.FullMethod, "panic", p, "stack", string(debug.Stack()))
			err = status.Errorf(codes.Internal, "internal error %s", id)
		}
	}()
	err = next(nil, s)
	var f *failure
	if errors.As(err, &f) {
		return f.GRPCStatus().Err()
	}
	return err
}
