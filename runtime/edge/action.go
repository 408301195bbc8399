package edge

import (
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// actions are the types that clients may call, in the order ListActions shows them.
func actions() []string {
	return []string{
		"CreatePreparedStatement", "ClosePreparedStatement", "BeginTransaction", "EndTransaction",
		"CancelFlightInfo", "CancelQuery", "RenewFlightEndpoint",
		"SetSessionOptions", "GetSessionOptions", "CloseSession",
	}
}

func (e *Edge) listActions(s grpc.ServerStream) error {
	if err := s.RecvMsg(&pb.Empty{}); err != nil {
		return err
	}
	for _, name := range actions() {
		if err := s.SendMsg(&pb.ActionType{Type: name}); err != nil {
			return err
		}
	}
	return nil
}

// parseAction reads an action. Those of the manager are not among the ones a client may call.
func parseAction(data []byte) (request, *failure) {
	var a pb.Action
	if err := proto.Unmarshal(data, &a); err != nil {
		return request{}, malformed("action")
	}
	switch a.GetType() {
	case "BeginTransaction":
		return request{class: wire.Transaction}, nil
	case "SetSessionOptions":
		return request{class: wire.Setting}, nil
	case "GetSessionOptions":
		return request{class: wire.Metadata, safe: true}, nil
	case "CloseSession":
		return request{class: wire.Metadata, safe: true, endSession: true}, nil
	case "CreatePreparedStatement", "ClosePreparedStatement", "EndTransaction",
		"BeginSavepoint", "EndSavepoint", "CreatePreparedSubstraitPlan":
		return parseWrapped(a.GetBody())
	case "CancelFlightInfo", "CancelQuery", "RenewFlightEndpoint":
		return parseCancel(a.GetType(), a.GetBody())
	}
	return request{}, fail(codes.InvalidArgument, statusPermanent, "there is no action "+cut(a.GetType(), 64))
}

// parseWrapped reads the actions whose body is an Any.
func parseWrapped(body []byte) (request, *failure) {
	cmd, f := command(body, "action")
	if f != nil {
		return request{}, f
	}
	switch cmd := cmd.(type) {
	case *pb.ActionCreatePreparedStatementRequest:
		return request{
			class: sqltext.Guess(cmd.GetQuery()), sql: cmd.GetQuery(), transaction: cmd.GetTransactionId(),
			counting: onFailure, limited: true, safe: true,
		}, nil
	case *pb.ActionClosePreparedStatementRequest:
		return request{class: wire.Metadata, prepared: cmd.GetPreparedStatementHandle(), closing: true, safe: true}, nil
	case *pb.ActionEndTransactionRequest:
		r := request{class: wire.Transaction, transaction: cmd.GetTransactionId(), counting: onEnd, end: true, sql: "COMMIT"}
		if cmd.GetAction() == pb.ActionEndTransactionRequest_END_TRANSACTION_ROLLBACK {
			r.rollback, r.sql = true, "ROLLBACK"
		}
		return r, nil
	case *pb.ActionBeginSavepointRequest, *pb.ActionEndSavepointRequest, *pb.ActionCreatePreparedSubstraitPlanRequest:
		return request{}, fail(codes.Unimplemented, statusPermanent, "DuckDB has neither savepoints nor Substrait plans")
	}
	return request{}, malformed("action")
}

// parseCancel finds the ticket in the flight info or endpoint that the body has.
func parseCancel(kind string, body []byte) (request, *failure) {
	var endpoints []*pb.FlightEndpoint
	switch kind {
	case "CancelFlightInfo":
		var c pb.CancelFlightInfoRequest
		if err := proto.Unmarshal(body, &c); err != nil {
			return request{}, malformed("action")
		}
		endpoints = c.GetInfo().GetEndpoint()
	case "RenewFlightEndpoint":
		var c pb.RenewFlightEndpointRequest
		if err := proto.Unmarshal(body, &c); err != nil {
			return request{}, malformed("action")
		}
		endpoints = []*pb.FlightEndpoint{c.GetEndpoint()}
	default:
		cmd, f := command(body, "action")
		if f != nil {
			return request{}, f
		}
		var info pb.FlightInfo
		c, ok := cmd.(interface{ GetInfo() []byte }) // the message is deprecated, and clients send it
		if !ok || proto.Unmarshal(c.GetInfo(), &info) != nil {
			return request{}, malformed("action")
		}
		endpoints = info.GetEndpoint()
	}
	if len(endpoints) != 1 {
		return request{}, malformed("flight info: it must have one endpoint")
	}
	r, f := parseTicket(marshalTicket(endpoints[0].GetTicket()))
	r.counting, r.limited, r.safe, r.cancelling = never, false, true, true
	return r, f
}

func marshalTicket(t *pb.Ticket) []byte {
	raw, err := proto.Marshal(t)
	if err != nil {
		return nil // an unreadable ticket is refused where it is parsed
	}
	return raw
}
