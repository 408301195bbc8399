package node

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	duck "github.com/duckdb/duckdb-go-bindings"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

// maxMessage bounds the text of an error in bytes: DuckDB echoes the statement, and clients cut the
// stream when the status does not fit their header limit.
const maxMessage = 2 << 10

// fault is an error with what the client and the edge are told about it.
type fault struct {
	code    codes.Code
	reason  wire.Reason
	message string
	kind    string // the engine's name of the error, as in "Binder"; empty when it is not the engine's
	engine  bool   // the message is the engine's
	// untouched says that the statement was not run, and may be sent again under the same id.
	untouched bool
	denial    *wire.Denial // of the guard
}

func (f *fault) Error() string { return f.message }

// GRPCStatus lets gRPC and its clients see the code.
func (f *fault) GRPCStatus() *status.Status { return status.New(f.code, trim(f.message)) }

func faultf(code codes.Code, reason wire.Reason, format string, args ...any) *fault {
	return &fault{code: code, reason: reason, message: fmt.Sprintf(format, args...)}
}

// Causes of a cancelled statement.
var (
	errStatementTimeout = errors.New("the statement ran into its timeout")
	errStopping         = errors.New("the node is stopping")
)

// cancelled is the cause of a statement that somebody ended.
type cancelled struct{ why string }

func (c cancelled) Error() string { return c.why }

// engineFault is an error of the engine that came without a kind.
func engineFault(message string) *fault { return kindFault(kindOf(message), message) }

// resultFault turns the error of a result into a fault. It prefers the cause of ctx over the engine's
// "interrupted", which says nothing.
func resultFault(ctx context.Context, result *duck.Result) error {
	message := duck.ResultError(result)
	kind := kindOf(message)
	switch duck.ResultErrorType(result) {
	case duck.ErrorTypeInterrupt:
		kind = "INTERRUPT"
	case duck.ErrorTypeFatal:
		kind = "FATAL"
	case duck.ErrorTypeInternal:
		kind = "INTERNAL"
	}
	return interrupted(ctx, kindFault(kind, message))
}

// messageFault is resultFault where the engine gives only the text, which begins with its kind.
func messageFault(ctx context.Context, message string) error {
	return interrupted(ctx, kindFault(kindOf(message), message))
}

func interrupted(ctx context.Context, f *fault) error {
	if cause := context.Cause(ctx); cause != nil && f.kind == "INTERRUPT" {
		return cause
	}
	return f
}

// kindOf is the engine's name of an error. It stands at the very beginning, where no user's text can be.
func kindOf(message string) string {
	kind, _, found := strings.Cut(message, " Error: ")
	if !found || len(kind) > 32 {
		return ""
	}
	return kind
}

func kindFault(kind, message string) *fault {
	f := &fault{code: codes.Unknown, message: message, kind: kind, engine: true}
	switch kind {
	case "Parser", "Syntax", "Binder", "Conversion", "Invalid Input", "Out of Range", "Invalid type",
		"Invalid Type", "Mismatch Type", "Unknown Type", "Decimal", "Divide by Zero", "Expression",
		"Parameter Not Resolved", "Parameter Not Allowed", "Settings", "Object Size", "Sequence":
		f.code = codes.InvalidArgument
	case "Catalog":
		f.code = codes.NotFound
		if strings.Contains(message, "already exists") {
			f.code = codes.AlreadyExists
		}
	case "Permission":
		f.code = codes.PermissionDenied
	case "Constraint", "Dependency":
		f.code = codes.FailedPrecondition
	case "TransactionContext":
		f.code = codes.Aborted
	case "Out of Memory":
		f.code = codes.ResourceExhausted
	case "Not implemented":
		f.code = codes.Unimplemented
	case "INTERRUPT":
		f.code = codes.Canceled
	case "FATAL", "INTERNAL":
		f.code, f.reason = codes.Internal, wire.Fatal
	case "IO", "Connection", "Network", "HTTP", "Invalid", "": // "Invalid" is what Postgres's client throws
		f.code, f.reason = codes.Unavailable, wire.Transient
	}
	return f
}

// asFault turns any error of this package into what the client is told.
func asFault(err error) *fault {
	var f *fault
	var c cancelled
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &c):
		return faultf(codes.Canceled, "", "%s", c.why)
	case errors.Is(err, errStatementTimeout):
		return faultf(codes.DeadlineExceeded, wire.Timeout, "%s", errStatementTimeout)
	case errors.Is(err, context.DeadlineExceeded):
		return faultf(codes.DeadlineExceeded, wire.Timeout, "the client's deadline passed")
	case errors.Is(err, context.Canceled):
		return faultf(codes.Canceled, "", "the call was cancelled")
	case errors.Is(err, errMemory):
		return faultf(codes.ResourceExhausted, "", "%s", errMemory)
	case errors.Is(err, errStopping):
		return faultf(codes.Unavailable, wire.Draining, "%s", errStopping)
	}
	if st, ok := status.FromError(err); ok {
		return faultf(st.Code(), "", "%s", st.Message())
	}
	return faultf(codes.Internal, "", "%s", err)
}

// trim bounds a message, keeps it valid text, and blanks what looks like a password.
func trim(message string) string {
	message = strings.ToValidUTF8(scrub(message), "?")
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
}

// scrub blanks the values of password= in what libpq writes. Passwords go in by secret and should never
// come out; this is the second lock.
func scrub(message string) string {
	if !strings.Contains(strings.ToLower(message), "password=") {
		return message
	}
	return regexp.MustCompile(`(?i)password=('(?:[^'\\]|\\.)*'|\S*)`).ReplaceAllString(message, "password=***")
}
