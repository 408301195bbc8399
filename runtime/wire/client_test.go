package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

// recorder is a Flight server that keeps what it is asked and gives prepared answers.
type recorder struct {
	flight.UnimplementedFlightServiceServer
	ring    *wire.Keyring
	answers []string
	asked   chan *flight.Action
}

func (r *recorder) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	var assertion wire.Assertion
	for _, sealed := range md.Get(wire.AssertionKey) {
		if err := r.ring.Open(wire.PurposeAssertion, []byte(sealed), &assertion); err != nil {
			return status.Error(codes.Unauthenticated, err.Error())
		}
	}
	life := time.Until(assertion.Expires)
	if !assertion.Manager || life <= 0 || life > 30*time.Second {
		return status.Errorf(codes.Unauthenticated, "assertion %+v", assertion)
	}
	r.asked <- a
	for _, body := range r.answers {
		if err := stream.Send(&flight.Result{Body: []byte(body)}); err != nil {
			return err
		}
	}
	if a.GetType() == wire.SessionsAction {
		<-stream.Context().Done()
	}
	return nil
}

func serve(t *testing.T, answers ...string) (*wire.Client, *recorder) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "n.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{ring: keyring(t, key(1, 1)), answers: answers, asked: make(chan *flight.Action, 1)}
	server := grpc.NewServer()
	flight.RegisterFlightServiceServer(server, r)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	conn, err := wire.Dial("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return wire.NewClient(conn, r.ring), r
}

func TestClientTells(t *testing.T) {
	live := wire.Live{MaxConcurrent: 3, StatementTimeout: time.Second}
	keys := []wire.Key{key(2, 2), key(1, 1)}
	cancel := wire.Cancel{Statement: "q", Cause: "asked to"}
	tests := map[string]struct {
		call func(context.Context, *wire.Client) error
		body any
	}{
		wire.ConfigureAction: {func(ctx context.Context, c *wire.Client) error { return c.Configure(ctx, live) }, live},
		wire.SetKeysAction:   {func(ctx context.Context, c *wire.Client) error { return c.SetKeys(ctx, keys) }, keys},
		wire.CancelAction:    {func(ctx context.Context, c *wire.Client) error { return c.Cancel(ctx, cancel) }, cancel},
		wire.DrainAction:     {func(ctx context.Context, c *wire.Client) error { return c.Drain(ctx) }, nil},
	}
	for action, test := range tests {
		t.Run(action, func(t *testing.T) {
			client, r := serve(t, `{}`)
			if err := test.call(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			asked := <-r.asked
			var want []byte
			if test.body != nil {
				want, _ = json.Marshal(test.body)
			}
			if asked.GetType() != action || string(asked.GetBody()) != string(want) {
				t.Errorf("asked %s %s, want %s %s", asked.GetType(), asked.GetBody(), action, want)
			}
		})
	}
}

func TestClientStatus(t *testing.T) {
	want := wire.Status{Version: 1, ID: "n", Ready: true, InFlight: 2, P99: time.Second}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	client, _ := serve(t, string(raw))
	got, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-sent +got):\n%s", diff)
	}
	for name, answers := range map[string][]string{"no answer": nil, "no JSON": {"x"}} {
		client, _ := serve(t, answers...)
		if _, err := client.Status(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestClientSessions(t *testing.T) {
	client, _ := serve(t, `{"incarnation":"a"}`, `{"incarnation":"a","sessions":[{"id":"s","state":"transaction"}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	var got []wire.Sessions
	err := client.Sessions(ctx, func(s wire.Sessions) {
		if got = append(got, s); len(got) == 2 {
			cancel()
		}
	})
	if status.Code(errors.Unwrap(err)) != codes.Canceled {
		t.Errorf("it ended with %v", err)
	}
	want := []wire.Sessions{
		{Incarnation: "a"}, {Incarnation: "a", Sessions: []wire.Session{{ID: "s", State: wire.InTransaction}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions (-want +got):\n%s", diff)
	}
}

func TestClientOfAnotherPoolIsRefused(t *testing.T) {
	client, r := serve(t, `{}`)
	r.ring = keyring(t, key(1, 9)) // the client keeps what it was made with
	_, err := client.Status(t.Context())
	if status.Code(errors.Unwrap(err)) != codes.Unauthenticated {
		t.Errorf("error %v", err)
	}
}

func TestDialOutlivesItsServer(t *testing.T) {
	conn, err := wire.Dial("unix:///nowhere/n.sock")
	if err != nil {
		t.Fatalf("dial connects: %v", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = wire.NewClient(conn, keyring(t, key(1, 1))).Status(ctx)
	if status.Code(errors.Unwrap(err)) != codes.Unavailable {
		t.Errorf("error %v, want unavailable at once", err)
	}
}
