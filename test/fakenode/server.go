package fakenode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	controlAction = "fake.control"
	toldAction    = "fake.told"
)

// Control changes what a fake node says of itself. Nil fields leave it as it is.
type Control struct {
	Ready        *bool   `json:"ready,omitempty"`
	Message      *string `json:"message,omitempty"`
	Fatal        *string `json:"fatal,omitempty"`
	InFlight     *int    `json:"inFlight,omitempty"`
	Transactions *int    `json:"transactions,omitempty"`
}

// Told is what a manager has told a fake node.
type Told struct {
	Live       wire.Live  `json:"live"`
	Keys       []wire.Key `json:"keys"`
	Configures int        `json:"configures"`
	SetKeys    int        `json:"setKeys"`
	Drains     int        `json:"drains"`
	Cancelled  []string   `json:"cancelled"`
}

type server struct {
	flight.UnimplementedFlightServiceServer

	mu      sync.Mutex
	keyring *wire.Keyring
	status  wire.Status
	told    Told
}

func newServer(c wire.NodeConfig) (*server, error) {
	keyring, err := wire.NewKeyring(c.Keys...)
	if err != nil {
		return nil, err
	}
	return &server{
		keyring: keyring,
		told:    Told{Live: c.Live, Keys: c.Keys},
		status: wire.Status{
			Version: wire.Version, ID: c.ID, PoolID: c.PoolID, Incarnation: uuid.NewString(),
			SpecHash: c.SpecHash, Role: c.Role, PID: os.Getpid(), Started: time.Now(), Ready: true,
		},
	}, nil
}

func (s *server) authenticate(ctx context.Context) error {
	md, _ := metadata.FromIncomingContext(ctx)
	sealed := md.Get(wire.AssertionKey)
	if len(sealed) != 1 {
		return status.Error(codes.Unauthenticated, "no assertion")
	}
	var a wire.Assertion
	s.mu.Lock()
	err := s.keyring.Open(wire.PurposeAssertion, []byte(sealed[0]), &a)
	s.mu.Unlock()
	if err != nil || !a.Manager || time.Now().After(a.Expires) {
		return status.Error(codes.Unauthenticated, "bad assertion")
	}
	return nil
}

// DoAction answers the actions of package wire and the two of this one.
func (s *server) DoAction(action *flight.Action, stream flight.FlightService_DoActionServer) error {
	if err := s.authenticate(stream.Context()); err != nil {
		return err
	}
	result, err := s.act(action)
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if err := stream.Send(&flight.Result{Body: raw}); err != nil {
		return err
	}
	if action.GetType() == wire.SessionsAction {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	return nil
}

func (s *server) act(action *flight.Action) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch action.GetType() {
	case wire.StatusAction:
	case wire.SessionsAction:
		return wire.Sessions{Incarnation: s.status.Incarnation}, nil
	case wire.ConfigureAction:
		s.told.Configures++
		return struct{}{}, json.Unmarshal(action.GetBody(), &s.told.Live)
	case wire.SetKeysAction:
		return struct{}{}, s.setKeys(action.GetBody())
	case wire.DrainAction:
		s.told.Drains++
		s.status.Draining = true
	case wire.CancelAction:
		var c wire.Cancel
		err := json.Unmarshal(action.GetBody(), &c)
		s.told.Cancelled = append(s.told.Cancelled, c.Statement)
		return struct{}{}, err
	case controlAction:
		return struct{}{}, s.control(action.GetBody())
	case toldAction:
		return s.told, nil
	default:
		return nil, fmt.Errorf("unknown action %s", action.GetType())
	}
	return s.status, nil
}

func (s *server) setKeys(body []byte) error {
	var keys []wire.Key
	if err := json.Unmarshal(body, &keys); err != nil {
		return err
	}
	keyring, err := wire.NewKeyring(keys...)
	if err != nil {
		return err
	}
	s.keyring, s.told.Keys = keyring, keys
	s.told.SetKeys++
	return nil
}

func (s *server) control(body []byte) error {
	var c Control
	if err := json.Unmarshal(body, &c); err != nil {
		return err
	}
	set(&s.status.Ready, c.Ready)
	set(&s.status.Message, c.Message)
	set(&s.status.Fatal, c.Fatal)
	set(&s.status.InFlight, c.InFlight)
	set(&s.status.Transactions, c.Transactions)
	return nil
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
