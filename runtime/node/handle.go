package node

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/wire"
)

// handleTTL is how long a handle is good for, unless what it stands for ends sooner.
const handleTTL = 24 * time.Hour

func newID() string { return uuid.NewString() }

// mint seals a handle of this node for the session of the call.
func (s *server) mint(c *call, h wire.Handle) ([]byte, error) {
	h.Node, h.Incarnation = s.cfg.ID, s.incarnation
	h.Session, h.User = c.Session, c.User
	h.Issued = time.Now()
	return s.keys.Load().Seal(wire.PurposeHandle, h)
}

// redeem opens a handle of that kind. It must be of the caller's session; only the ticket of a read that
// any node can run may be used from another session of the same user, since clients pass such tickets on.
func (s *server) redeem(c *call, kind wire.HandleKind, sealed []byte) (wire.Handle, error) {
	var h wire.Handle
	if err := s.keys.Load().Open(wire.PurposeHandle, sealed, &h); err != nil {
		return h, faultf(codes.InvalidArgument, "", "the %s is not of this pool", kind)
	}
	if h.Kind != kind {
		return h, faultf(codes.InvalidArgument, "", "the handle is no %s", kind)
	}
	portable := kind == wire.Ticket && h.ReadOnly && h.Bind == ""
	if h.User != c.User || (h.Session != c.Session && !portable) {
		return h, faultf(codes.PermissionDenied, wire.Denied, "the %s is of another session", kind)
	}
	if time.Since(h.Issued) > handleTTL {
		return h, faultf(codes.NotFound, "", "the %s has expired", kind)
	}
	return h, nil
}

// here says whether this process minted the handle: only then can it know what the handle stands for.
func (s *server) here(h wire.Handle) bool { return h.Incarnation == s.incarnation }

// transactionOf opens a transaction id, "" for none.
func (s *server) transactionOf(c *call, sealed []byte) (string, error) {
	if len(sealed) == 0 {
		return "", nil
	}
	h, err := s.redeem(c, wire.TransactionID, sealed)
	if err != nil {
		return "", err
	}
	if !s.here(h) {
		return "", errTransactionLost("the node of the transaction was replaced")
	}
	return h.Statement, nil
}

func errTransactionLost(why string) error {
	return faultf(codes.Aborted, wire.TransactionLost, "pinned node disappeared; transaction lost: %s", why)
}

// ticketOf wraps a sealed handle the way clients pass it back.
func ticketOf(sealed []byte) (*flight.Ticket, error) {
	command, err := anypb.New(&pb.TicketStatementQuery{StatementHandle: sealed})
	if err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(command)
	if err != nil {
		return nil, err
	}
	return &flight.Ticket{Ticket: raw}, nil
}

// ticketHandle is the sealed handle in a ticket, or nil.
func ticketHandle(ticket *flight.Ticket) []byte {
	var command anypb.Any
	var query pb.TicketStatementQuery
	if proto.Unmarshal(ticket.GetTicket(), &command) != nil || command.UnmarshalTo(&query) != nil {
		return nil
	}
	return query.GetStatementHandle()
}
