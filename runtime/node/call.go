package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/wire"
)

// maxPermissionSets bounds how many permission sets are remembered.
const maxPermissionSets = 1024

type callKey struct{}

// call is who makes an RPC, and what its handlers say in the trailer.
type call struct {
	wire.Assertion
	sealedPermissions []byte
	// permissions reads the set in force, for the handlers that need it.
	permissions func() (wire.Permissions, error)

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
	c.permissions = func() (wire.Permissions, error) { return s.permissions.of(c, s.keys.Load()) }
	return c, nil
}

// permissionSets remembers permission sets by their hash.
type permissionSets struct {
	mu     sync.Mutex
	byHash map[string]wire.Permissions
	order  []string
}

// of returns the permission set of a call: as remembered, or as the call carries it. When it is neither,
// the edge is asked for it.
func (p *permissionSets) of(c *call, keys *wire.Keyring) (wire.Permissions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if set, ok := p.byHash[c.Permissions]; ok {
		return set, nil
	}
	if len(c.sealedPermissions) == 0 {
		return wire.Permissions{}, faultf(codes.FailedPrecondition, wire.NeedPermissions,
			"%s %s", wire.NeedPermissions, c.Permissions)
	}
	var set wire.Permissions
	if err := keys.Open(wire.PurposePermissions, c.sealedPermissions, &set); err != nil {
		return wire.Permissions{}, faultf(codes.Unauthenticated, "", "the permission set is not of this pool")
	}
	if set.Hash() != c.Permissions {
		return wire.Permissions{}, faultf(codes.Unauthenticated, "", "the permission set is not the asserted one")
	}
	if len(p.order) == maxPermissionSets {
		delete(p.byHash, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	p.byHash[c.Permissions] = set
	p.order = append(p.order, c.Permissions)
	return set, nil
}
