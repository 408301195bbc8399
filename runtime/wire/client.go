package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
)

// MaxMessageSize is the largest message in bytes that edge and manager take from a node.
const MaxMessageSize = 256 << 20

// KeepaliveTime is how often an idle connection to a node is pinged. A node's server must permit pings
// at half that interval, also without a stream.
const KeepaliveTime = 20 * time.Second

// Dial returns a connection to a node. It connects on first use, reconnects for ever with a short
// back-off, never goes idle and never repeats a call by itself. It is closed by the caller.
func Dial(endpoint string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(endpoint,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: KeepaliveTime, Timeout: 10 * time.Second, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second,
			},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageSize)),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithIdleTimeout(0),
	)
	if err != nil {
		return nil, fmt.Errorf("dial node %s: %w", endpoint, err)
	}
	return conn, nil
}

// assertionLife is how long the assertion of a manager's call is good for.
const assertionLife = 30 * time.Second

// Client makes the manager's calls to one node. It is safe for concurrent use.
type Client struct {
	flight flight.FlightServiceClient
	pool   *Keyring
}

// NewClient returns a client that asserts itself with the keyring of the node's pool. It neither owns
// nor closes the connection.
func NewClient(conn grpc.ClientConnInterface, pool *Keyring) *Client {
	return &Client{flight: flight.NewFlightServiceClient(conn), pool: pool}
}

// Status asks the node what it says of itself. Errors are gRPC statuses, wrapped.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return one[Status](ctx, c, StatusAction, nil)
}

// Sessions calls on with the sessions that have state on the node, at once and after every change,
// until ctx ends or the node goes away; then it returns why.
func (c *Client) Sessions(ctx context.Context, on func(Sessions)) error {
	return c.each(ctx, SessionsAction, nil, func(body []byte) error {
		var s Sessions
		if err := json.Unmarshal(body, &s); err != nil {
			return fmt.Errorf("decode sessions: %w", err)
		}
		on(s)
		return nil
	})
}

// Configure tells the node its live settings.
func (c *Client) Configure(ctx context.Context, live Live) error {
	return c.tell(ctx, ConfigureAction, live)
}

// SetKeys tells the node the keys of its pool, current first.
func (c *Client) SetKeys(ctx context.Context, keys []Key) error {
	return c.tell(ctx, SetKeysAction, keys)
}

// Drain stops the node taking new statements. It returns at once, while statements still run.
func (c *Client) Drain(ctx context.Context) error {
	return c.tell(ctx, DrainAction, nil)
}

// Cancel interrupts a statement. A statement that is not running is no error.
func (c *Client) Cancel(ctx context.Context, cancel Cancel) error {
	return c.tell(ctx, CancelAction, cancel)
}

// CloseSession ends what runs in a session of the user, rolls back and forgets it. It is the user's own
// action, done for it.
func (c *Client) CloseSession(ctx context.Context, user, session string) error {
	var none Permissions // the node asks for the set that is asserted, and this call needs none
	sealed, err := c.pool.Seal(PurposePermissions, none)
	if err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, PermissionsKey, string(sealed))
	who := Assertion{User: user, Session: session, Permissions: none.Hash()}
	return c.call(ctx, who, &flight.Action{Type: closeSession}, func([]byte) error { return nil })
}

// closeSession is the action of Flight SQL.
const closeSession = "CloseSession"

func (c *Client) tell(ctx context.Context, action string, body any) error {
	return c.each(ctx, action, body, func([]byte) error { return nil })
}

func one[T any](ctx context.Context, c *Client, action string, body any) (T, error) {
	var result T
	answered := false
	err := c.each(ctx, action, body, func(raw []byte) error {
		answered = true
		return json.Unmarshal(raw, &result)
	})
	if err == nil && !answered {
		err = fmt.Errorf("%s: the node gave no answer", action)
	}
	return result, err
}

func (c *Client) each(ctx context.Context, action string, body any, on func([]byte) error) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return fmt.Errorf("%s: encode: %w", action, err)
		}
	}
	return c.call(ctx, Assertion{Manager: true}, &flight.Action{Type: action, Body: raw}, on)
}

func (c *Client) call(ctx context.Context, who Assertion, a *flight.Action, on func([]byte) error) error {
	action := a.GetType()
	who.Expires = time.Now().Add(assertionLife)
	assertion, err := c.pool.Seal(PurposeAssertion, who)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	ctx, cancel := context.WithCancel(ctx) // ends the stream when on fails
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, AssertionKey, string(assertion))
	stream, err := c.flight.DoAction(ctx, a)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	for {
		result, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
		if err := on(result.GetBody()); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
}
