package node

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

type callKey struct{}

// call is who makes an RPC, and what its handlers say in the trailer.
type call struct {
	wire.Assertion
	sealedPermissions []byte
	// rights reads the permission set in force, for the handlers that need it.
	rights func(context.Context) (*guard.Rights, error)

	mu      sync.Mutex
	trailer metadata.MD
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }

// say puts a value into the trailer.
func (c *call) say(key, value string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trailer.Set(key, value)
}

// statementID is the edge's id of the statement, or a fresh one.
func (c *call) statementID() string {
	if c.Statement == "" {
		return newID()
	}
	return c.Statement
}

// identify opens the assertion of a call. A call without a good one goes no further.
func (s *server) identify(ctx context.Context) (*call, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	sealed := md.Get(wire.AssertionKey)
	if len(sealed) != 1 {
		return nil, faultf(codes.Unauthenticated, "", "the call carries no assertion")
	}
	c := &call{trailer: metadata.MD{}}
	if err := s.keys.Load().Open(wire.PurposeAssertion, []byte(sealed[0]), &c.Assertion); err != nil {
		return nil, faultf(codes.Unauthenticated, "", "the assertion is not of this pool")
	}
	if !time.Now().Before(c.Expires) {
		return nil, faultf(codes.Unauthenticated, "", "the assertion has expired")
	}
	if !c.Manager && (c.Session == "" || c.User == "") {
		return nil, faultf(codes.Unauthenticated, "", "the assertion names no session")
	}
	if sets := md.Get(wire.PermissionsKey); len(sets) == 1 {
		c.sealedPermissions = []byte(sets[0])
	}
	c.rights = func(ctx context.Context) (*guard.Rights, error) {
		return s.permissions.of(ctx, c, s.keys.Load(), func(ctx context.Context, p wire.Permissions) (*guard.Rights, error) {
			return s.guard.Rights(ctx, p, s.cfg.Lake.Name)
		})
	}
	return c, nil
}
