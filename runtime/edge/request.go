package edge

import (
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// counting says which calls make a row of history, so that one execution makes one.
type counting int

const (
	never      counting = iota
	onFailure           // a preparation: its execution is counted
	onEnd               // the call executes the statement
	unlessRead          // reads are only planned here: the call that fetches them is counted
)

// request is what the first message of a call says.
type request struct {
	class       wire.Class // a guess, until a node or a handle knows better
	sql         string
	ticket      []byte // sealed handles
	prepared    []byte
	transaction []byte
	counting    counting
	limited     bool // takes one of the node's places for concurrent statements
	safe        bool // repeating it does no harm, whatever a node did with it
	end         bool // ends a transaction
	rollback    bool
	closing     bool // closes a prepared statement
	cancelling  bool // cancels a statement
	endSession  bool
}

func malformed(what string) *failure {
	return fail(codes.InvalidArgument, statusPermanent, "cannot read the "+what)
}

func parseDescriptor(data []byte, onlySchema bool) (request, *failure) {
	var d pb.FlightDescriptor
	if err := proto.Unmarshal(data, &d); err != nil {
		return request{}, malformed("flight descriptor")
	}
	r, f := parseQuery(d.GetCmd())
	if onlySchema {
		r.safe, r.counting, r.limited = true, never, false
	}
	return r, f
}

// parseTicket reads what DoGet gets: a result's ticket, or a command that is its own ticket.
func parseTicket(data []byte) (request, *failure) {
	var t pb.Ticket
	if err := proto.Unmarshal(data, &t); err != nil {
		return request{}, malformed("ticket")
	}
	cmd, f := command(t.GetTicket(), "ticket")
	if f != nil {
		return request{}, f
	}
	if ticket, ok := cmd.(*pb.TicketStatementQuery); ok {
		return request{class: wire.Read, ticket: ticket.GetStatementHandle(), counting: onEnd, limited: true}, nil
	}
	r, f := parseQuery(t.GetTicket())
	if r.counting == unlessRead {
		r.counting = onEnd
	}
	return r, f
}

func parseQuery(raw []byte) (request, *failure) {
	cmd, f := command(raw, "command")
	if f != nil {
		return request{}, f
	}
	switch cmd := cmd.(type) {
	case *pb.CommandStatementQuery:
		return statement(cmd.GetQuery(), cmd.GetTransactionId(), unlessRead), nil
	case *pb.CommandPreparedStatementQuery:
		return request{
			class: wire.Read, prepared: cmd.GetPreparedStatementHandle(), counting: unlessRead, limited: true,
		}, nil
	case *pb.CommandStatementSubstraitPlan:
		return request{class: wire.Write, transaction: cmd.GetTransactionId(), counting: unlessRead, limited: true}, nil
	case *pb.CommandGetSqlInfo, *pb.CommandGetXdbcTypeInfo, *pb.CommandGetCatalogs, *pb.CommandGetDbSchemas,
		*pb.CommandGetTables, *pb.CommandGetTableTypes, *pb.CommandGetPrimaryKeys, *pb.CommandGetExportedKeys,
		*pb.CommandGetImportedKeys, *pb.CommandGetCrossReference:
		return request{class: wire.Metadata, safe: true}, nil
	}
	return request{}, malformed("command")
}

// parsePut reads the descriptor in the first message of DoPut.
func parsePut(data []byte) (request, *failure) {
	var d pb.FlightDescriptor
	if raw := field(data, 1); raw == nil || proto.Unmarshal(raw, &d) != nil {
		return request{}, malformed("flight descriptor: the first message of DoPut must have one")
	}
	cmd, f := command(d.GetCmd(), "command")
	if f != nil {
		return request{}, f
	}
	switch cmd := cmd.(type) {
	case *pb.CommandStatementUpdate:
		return statement(cmd.GetQuery(), cmd.GetTransactionId(), onEnd), nil
	case *pb.CommandPreparedStatementUpdate:
		return request{
			class: wire.Write, prepared: cmd.GetPreparedStatementHandle(), counting: onEnd, limited: true,
		}, nil
	case *pb.CommandPreparedStatementQuery:
		return request{class: wire.Read, prepared: cmd.GetPreparedStatementHandle(), safe: true}, nil
	case *pb.CommandStatementIngest:
		return request{
			class: wire.Write, transaction: cmd.GetTransactionId(), counting: onEnd, limited: true,
			sql: "INGEST INTO " + cmd.GetTable(),
		}, nil
	case *pb.CommandStatementSubstraitPlan:
		return request{class: wire.Write, transaction: cmd.GetTransactionId(), counting: onEnd, limited: true}, nil
	}
	return request{}, malformed("command")
}

func statement(sql string, transaction []byte, c counting) request {
	return request{class: sqltext.Guess(sql), sql: sql, transaction: transaction, counting: c, limited: true}
}

// command opens the Any in which Flight SQL wraps its messages.
func command(raw []byte, what string) (proto.Message, *failure) {
	var wrapped anypb.Any
	if len(raw) == 0 || proto.Unmarshal(raw, &wrapped) != nil {
		return nil, malformed(what)
	}
	cmd, err := wrapped.UnmarshalNew()
	if err != nil {
		return nil, malformed(what)
	}
	return cmd, nil
}

// field returns the bytes of a length-delimited field at the top level of a message, the last one if
// there are several, as protobuf has it. It does not look at the others, which may be large.
func field(data []byte, number protowire.Number) []byte {
	var found []byte
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return nil
		}
		data = data[size:]
		if n == number && kind == protowire.BytesType {
			value, size := protowire.ConsumeBytes(data)
			if size < 0 {
				return nil
			}
			found, data = value, data[size:]
			continue
		}
		if size = protowire.ConsumeFieldValue(n, kind, data); size < 0 {
			return nil
		}
		data = data[size:]
	}
	return found
}
