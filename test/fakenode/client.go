package fakenode

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/wire"
)

// Tell sends a Control to the fake node at the endpoint.
func Tell(ctx context.Context, endpoint string, pool *wire.Keyring, c Control) error {
	_, err := call[struct{}](ctx, endpoint, pool, controlAction, c)
	return err
}

// Ask returns what the fake node at the endpoint was told.
func Ask(ctx context.Context, endpoint string, pool *wire.Keyring) (Told, error) {
	return call[Told](ctx, endpoint, pool, toldAction, struct{}{})
}

func call[R, B any](ctx context.Context, endpoint string, pool *wire.Keyring, action string, body B) (R, error) {
	var result R
	conn, err := wire.Dial(endpoint)
	if err != nil {
		return result, err
	}
	defer conn.Close()
	raw, err := json.Marshal(body)
	if err != nil {
		return result, err
	}
	sealed, err := pool.Seal(wire.PurposeAssertion,
		wire.Assertion{Manager: true, Expires: time.Now().Add(time.Minute)})
	if err != nil {
		return result, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, wire.AssertionKey, string(sealed))
	stream, err := flight.NewFlightServiceClient(conn).DoAction(ctx, &flight.Action{Type: action, Body: raw})
	if err != nil {
		return result, fmt.Errorf("%s: %w", action, err)
	}
	answer, err := stream.Recv()
	if err != nil {
		return result, fmt.Errorf("%s: %w", action, err)
	}
	return result, json.Unmarshal(answer.GetBody(), &result)
}
