package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// cancelWait is how long a cancel waits for its statement to end.
const cancelWait = 2 * time.Second

// DoAction answers the manager's actions; those of Flight SQL are for sessions.
func (f *front) DoAction(action *flight.Action, stream flight.FlightService_DoActionServer) error {
	ctx := stream.Context()
	c := callOf(ctx)
	if !strings.HasPrefix(action.GetType(), "qod.") {
		return f.FlightServer.DoAction(action, stream)
	}
	if !c.Manager {
		return faultf(codes.PermissionDenied, wire.Denied, "only the manager may do %s", action.GetType())
	}
	reply := func(v any) error {
		body, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode answer to %s: %w", action.GetType(), err)
		}
		return stream.Send(&flight.Result{Body: body})
	}
	switch action.GetType() {
	case wire.StatusAction:
		return reply(f.s.status())
	case wire.SessionsAction:
		return f.s.watchSessions(ctx, reply)
	case wire.ConfigureAction:
		var live wire.Live
		if err := decode(action, &live); err != nil {
			return err
		}
		f.s.live.Store(&live)
		return reply(f.s.status())
	case wire.SetKeysAction:
		return f.s.setKeys(action, reply)
	case wire.DrainAction:
		f.s.draining.Store(true)
		return reply(f.s.status())
	case wire.CancelAction:
		return f.s.cancelByManager(ctx, action, reply)
	}
	return faultf(codes.Unimplemented, "", "there is no action %s", action.GetType())
}

func decode(action *flight.Action, v any) error {
	if err := json.Unmarshal(action.GetBody(), v); err != nil {
		return faultf(codes.InvalidArgument, "", "the body of %s cannot be read", action.GetType())
	}
	return nil
}

func (s *server) setKeys(action *flight.Action, reply func(any) error) error {
	var keys []wire.Key
	if err := decode(action, &keys); err != nil {
		return err
	}
	ring, err := wire.NewKeyring(keys...)
	if err != nil {
		return faultf(codes.InvalidArgument, "", "the keys are unusable")
	}
	s.keys.Store(ring)
	return reply(s.status())
}

func (s *server) cancelByManager(ctx context.Context, action *flight.Action, reply func(any) error) error {
	var request wire.Cancel
	if err := decode(action, &request); err != nil {
		return err
	}
	cause := cancelled{"the statement was cancelled"}
	if request.Cause != "" {
		cause.why = request.Cause
	}
	done := s.running.cancel(request.Statement, "", cause)
	if done == nil {
		return faultf(codes.NotFound, "", "statement %s does not run here", request.Statement)
	}
	ended(ctx, done)
	return reply(s.status())
}

// ended waits for a cancelled statement, and says whether it has ended.
func ended(ctx context.Context, done <-chan struct{}) bool {
	timer := time.NewTimer(cancelWait)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// watchSessions sends the sessions that have state, at once and after every change.
func (s *server) watchSessions(ctx context.Context, reply func(any) error) error {
	for {
		sessions, changed := s.sessions.list()
		if err := reply(wire.Sessions{Incarnation: s.incarnation, Sessions: sessions}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return errStopping
		}
	}
}

// CancelFlightInfo interrupts the statement whose result a ticket of the info stands for.
func (s *server) CancelFlightInfo(ctx context.Context, request *flight.CancelFlightInfoRequest) (flight.CancelFlightInfoResult, error) {
	c := callOf(ctx)
	state := flight.CancelStatusNotCancellable
	for _, endpoint := range request.GetInfo().GetEndpoint() {
		h, err := s.redeem(c, wire.Ticket, ticketHandle(endpoint.GetTicket()))
		if err != nil {
			return flight.CancelFlightInfoResult{}, err
		}
		done := s.running.cancel(h.Statement, c.Session, cancelled{"the client cancelled the statement"})
		if done == nil {
			continue
		}
		state = flight.CancelStatusCancelling
		if ended(ctx, done) {
			state = flight.CancelStatusCancelled
		}
	}
	return flight.CancelFlightInfoResult{Status: state}, nil
}
