package node

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// maxPermissionSets bounds how many permission sets are remembered.
const maxPermissionSets = 1024

// permissionSets remembers permission sets, made ready for the guard, by their hash.
type permissionSets struct {
	mu     sync.Mutex
	byHash map[string]*permissionSet
	order  []string
}

// permissionSet is one of them. What the channel guards may be read once it is closed.
type permissionSet struct {
	made   chan struct{}
	rights *guard.Rights
	err    error
}

func newPermissionSets() *permissionSets {
	return &permissionSets{byHash: map[string]*permissionSet{}}
}

// makeRights makes a permission set ready.
type makeRights func(context.Context, wire.Permissions) (*guard.Rights, error)

// of returns the rights of a call: as remembered, or made of the permission set that the call carries.
// When there is neither, the edge is asked for the set. Calls with the same set wait for one making.
func (p *permissionSets) of(ctx context.Context, c *call, keys *wire.Keyring, ready makeRights) (*guard.Rights, error) {
	p.mu.Lock()
	set := p.byHash[c.Permissions]
	p.mu.Unlock()
	if set == nil {
		carried, err := c.carried(keys)
		if err != nil {
			return nil, err
		}
		var mine bool
		if set, mine = p.add(c.Permissions); mine {
			p.finish(ctx, set, c.Permissions, carried, ready)
		}
	}
	select {
	case <-set.made:
		return set.rights, set.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// carried opens the permission set that the call carries.
func (c *call) carried(keys *wire.Keyring) (wire.Permissions, error) {
	var set wire.Permissions
	if len(c.sealedPermissions) == 0 {
		return set, faultf(codes.FailedPrecondition, wire.NeedPermissions, "%s %s", wire.NeedPermissions, c.Permissions)
	}
	if err := keys.Open(wire.PurposePermissions, c.sealedPermissions, &set); err != nil {
		return set, faultf(codes.Unauthenticated, "", "the permission set is not of this pool")
	}
	if set.Hash() != c.Permissions {
		return set, faultf(codes.Unauthenticated, "", "the permission set is not the asserted one")
	}
	return set, nil
}

// add returns the set of that hash, and whether it is new: then the caller makes it.
func (p *permissionSets) add(hash string) (set *permissionSet, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.byHash[hash]; set != nil {
		return set, false
	}
	if len(p.order) == maxPermissionSets {
		delete(p.byHash, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	set = &permissionSet{made: make(chan struct{})}
	p.byHash[hash] = set
	p.order = append(p.order, hash)
	return set, true
}

// finish makes a new set ready, for everybody who waits for it: so it does not end with its call.
func (p *permissionSets) finish(ctx context.Context, set *permissionSet, hash string, carried wire.Permissions, ready makeRights) {
	set.err = faultf(codes.Internal, "", "the permission set could not be read") // should ready panic
	defer func() {
		if set.err != nil {
			p.remove(hash, set)
		}
		close(set.made)
	}()
	set.rights, set.err = ready(context.WithoutCancel(ctx), carried)
}

// remove forgets a set that could not be made, so that the next call makes it again.
func (p *permissionSets) remove(hash string, set *permissionSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byHash[hash] != set {
		return
	}
	delete(p.byHash, hash)
	p.order = slices.DeleteFunc(p.order, func(h string) bool { return h == hash })
}
