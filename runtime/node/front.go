package node

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/wire"
)

// front is the Flight service. It sends a result batch by batch, so that rows are made no faster than they
// are taken, and leaves the rest to arrow-go's decoding of Flight SQL.
type front struct {
	flight.FlightServer
	s *server
}

func newFront(s *server) *front { return &front{FlightServer: flightsql.NewFlightServer(s), s: s} }

// DoGet sends the result of a ticket.
func (f *front) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	var command anypb.Any
	if err := proto.Unmarshal(ticket.GetTicket(), &command); err != nil {
		return faultf(codes.InvalidArgument, "", "the ticket cannot be read")
	}
	ctx := stream.Context()
	c := callOf(ctx)
	switch {
	case command.MessageIs(&pb.TicketStatementQuery{}):
		h, err := f.s.redeem(c, wire.Ticket, ticketHandle(ticket))
		if err != nil {
			return err
		}
		return f.s.send(ctx, stream, func(ctx context.Context, out sink) error { return f.s.fetch(ctx, c, h, out) })
	case command.MessageIs(&pb.CommandPreparedStatementQuery{}):
		var prepared pb.CommandPreparedStatementQuery
		if err := command.UnmarshalTo(&prepared); err != nil {
			return faultf(codes.InvalidArgument, "", "the ticket cannot be read")
		}
		return f.s.send(ctx, stream, func(ctx context.Context, out sink) error {
			return f.s.fetchPrepared(ctx, c, prepared.GetPreparedStatementHandle(), out)
		})
	}
	return f.FlightServer.DoGet(ticket, stream)
}

// DoPut takes parameters and updates. A first message without descriptor would take arrow-go's server
// down.
func (f *front) DoPut(stream flight.FlightService_DoPutServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return faultf(codes.InvalidArgument, "", "the stream is empty")
	}
	if err != nil {
		return err
	}
	if first.GetFlightDescriptor() == nil {
		return faultf(codes.InvalidArgument, "", "the first message has no descriptor")
	}
	return f.FlightServer.DoPut(&replayed{FlightService_DoPutServer: stream, first: first})
}

// replayed is a stream whose first message was read already.
type replayed struct {
	flight.FlightService_DoPutServer
	first *flight.FlightData
}

func (r *replayed) Recv() (*flight.FlightData, error) {
	if first := r.first; first != nil {
		r.first = nil
		return first, nil
	}
	return r.FlightService_DoPutServer.Recv()
}

// DoExchange is not part of Flight SQL.
func (f *front) DoExchange(flight.FlightService_DoExchangeServer) error {
	return faultf(codes.Unimplemented, "", "DoExchange is not supported")
}
