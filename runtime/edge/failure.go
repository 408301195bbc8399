package edge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/router"
)

// maxMessage is the longest text of a status in bytes: clients limit the headers they take.
const maxMessage = 2048

// Statuses of statements in history and metrics.
const (
	statusOK        = "ok"
	statusDenied    = "denied"
	statusNoPool    = "no_pool"
	statusNoNode    = "no_node"
	statusPinLost   = "pin_lost"
	statusTransient = "transient"
	statusPermanent = "permanent"
	statusCancelled = "cancelled"
	statusTimeout   = "timeout"
)

// failure is how a call ends when it does not end well: what the client is told, and what history says.
type failure struct {
	code   codes.Code
	text   string
	status string
	reason string // of a refusal by the edge, for the audit
	gone   bool   // the process that the call was for is gone for good
}

func fail(code codes.Code, status, text string) *failure {
	return &failure{code: code, text: text, status: status}
}

// lostWith is the failure of a call whose process is gone.
func lostWith(code codes.Code, status, text string) *failure {
	return &failure{code: code, text: text, status: status, gone: true}
}

func (f *failure) Error() string { return f.text }

// GRPCStatus is what the client gets.
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, cut(f.text, maxMessage)) }

// cut shortens the text to at most n bytes, at a rune.
func cut(text string, n int) string {
	if len(text) > n {
		const mark = "…"
		n -= len(mark)
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n] + mark
	}
	return strings.ToValidUTF8(text, "�")
}

// What is lost when the process that held it is gone.
type loss int

const (
	lossNone loss = iota
	lossResult
	lossPrepared
	lossSession
	lossTransaction
)

func (l loss) failure() *failure {
	switch l {
	case lossTransaction:
		return lostWith(codes.Aborted, statusPinLost, "pinned node disappeared; transaction lost")
	case lossSession:
		return lostWith(codes.Unavailable, statusPinLost,
			"pinned node disappeared; settings and temporary objects of the session are lost, and it starts anew")
	case lossPrepared:
		return lostWith(codes.Unavailable, statusTransient, "node restarted; prepare the statement again")
	}
	return lostWith(codes.Unavailable, statusTransient, "node restarted; run the query again")
}

// notAuthorized says why a caller may not enter a pool.
func notAuthorized(err error) *failure {
	f := unwelcome(err)
	f.reason = codeOf(err)
	return f
}

func unwelcome(err error) *failure {
	var (
		disabled  *access.DisabledError
		ambiguous *access.AmbiguousError
		pool      *access.PoolError
	)
	switch {
	case errors.As(err, &disabled):
		return fail(codes.PermissionDenied, statusDenied, err.Error())
	case errors.As(err, &ambiguous):
		return fail(codes.InvalidArgument, statusNoPool, err.Error())
	case errors.As(err, &pool):
		return fail(codes.PermissionDenied, statusNoPool, err.Error())
	}
	return fail(codes.Unauthenticated, statusDenied, err.Error())
}

// notAdmitted says why a statement did not get to a node.
func notAdmitted(ctx context.Context, err error, lost loss) *failure {
	switch {
	case errors.Is(err, router.ErrPinLost):
		return lost.failure()
	case errors.Is(err, router.ErrNoNode), errors.Is(err, router.ErrPinAway):
		return fail(codes.Unavailable, statusNoNode, err.Error()+"; try again")
	case errors.Is(err, errQueueFull), errors.Is(err, errQueueTime):
		return fail(codes.ResourceExhausted, statusTransient, err.Error()+"; try again later")
	}
	return ended(ctx)
}

// deadlineSlack is how long before its deadline a cancelled call still counts as timed out: a client
// resets its streams at the deadline, and the reset may be here before the deadline is.
const deadlineSlack = 50 * time.Millisecond

// reasonStale is that of a statement refused because nobody knows whether its user's rights still hold.
const reasonStale = "stale_grants"

// outdated refuses a statement because the store has been silent for so long.
func outdated(age, limit time.Duration) *failure {
	f := fail(codes.Unavailable, statusTransient, fmt.Sprintf("this serve has heard nothing from its store for %s, and so cannot know whether "+
		"your rights still hold (QOD_STALE_GRANTS_SEC is %d): try again, or another serve", age.Round(time.Second), int(limit.Seconds())))
	f.reason = reasonStale
	return f
}

// ended says that the client ended the call, or that its deadline did, or that it is no longer welcome.
func ended(ctx context.Context) *failure {
	var d *dismissal
	if errors.As(context.Cause(ctx), &d) {
		return d.failure()
	}
	if d, ok := ctx.Deadline(); ok && time.Until(d) < deadlineSlack {
		return fail(codes.DeadlineExceeded, statusTimeout, "the client's deadline passed")
	}
	return fail(codes.Canceled, statusCancelled, "the client cancelled the call")
}
