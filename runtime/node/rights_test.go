package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// carrying is a call that carries a permission set.
func carrying(t *testing.T, keys *wire.Keyring, p wire.Permissions) *call {
	t.Helper()
	sealed, err := keys.Seal(wire.PurposePermissions, p)
	if err != nil {
		t.Fatal(err)
	}
	return &call{Assertion: wire.Assertion{Permissions: p.Hash()}, sealedPermissions: sealed}
}

func testKeys(t *testing.T) *wire.Keyring {
	t.Helper()
	keys, err := wire.NewKeyring(wire.Key{ID: 1, Key: make([]byte, wire.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestRightsAreMadeOnce: calls with the same set wait for one making of it, and only as long as they want.
func TestRightsAreMadeOnce(t *testing.T) {
	keys := testKeys(t)
	synctest.Test(t, func(t *testing.T) {
		sets, made, want := newPermissionSets(), 0, &guard.Rights{}
		hold := make(chan struct{})
		ready := func(ctx context.Context, _ wire.Permissions) (*guard.Rights, error) {
			made++
			<-hold
			return want, ctx.Err()
		}
		gone, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				ctx := t.Context()
				if i == 3 {
					ctx = gone
				}
				got, err := sets.of(ctx, carrying(t, keys, wire.Permissions{Admin: true}), keys, ready)
				if got != want && !(i == 3 && errors.Is(err, context.Canceled)) {
					t.Errorf("call %d: %v, %v", i, got, err)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		close(hold)
		all.Wait()
		if made != 1 {
			t.Errorf("made %d times", made)
		}
		if _, err := sets.of(t.Context(), &call{Assertion: wire.Assertion{Permissions: wire.Permissions{Admin: true}.Hash()}}, keys, ready); err != nil {
			t.Errorf("a call without the set: %v", err)
		}
	})
}

// TestRightsThatCannotBeMade are made again by the next call.
func TestRightsThatCannotBeMade(t *testing.T) {
	keys, sets, want := testKeys(t), newPermissionSets(), &guard.Rights{}
	broken := errors.New("broken")
	c := carrying(t, keys, wire.Permissions{})
	_, err := sets.of(t.Context(), c, keys, func(context.Context, wire.Permissions) (*guard.Rights, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = sets.of(t.Context(), c, keys, func(context.Context, wire.Permissions) (*guard.Rights, error) { panic("x") })
	}()
	got, err := sets.of(t.Context(), c, keys, func(context.Context, wire.Permissions) (*guard.Rights, error) { return want, nil })
	if got != want || err != nil {
		t.Errorf("then %v, %v", got, err)
	}
}

// TestRightsAreForgotten: the oldest make room.
func TestRightsAreForgotten(t *testing.T) {
	keys, sets := testKeys(t), newPermissionSets()
	ready := func(context.Context, wire.Permissions) (*guard.Rights, error) { return &guard.Rights{}, nil }
	first := wire.Permissions{}
	for i := range maxPermissionSets + 1 {
		p := first
		if i > 0 {
			p.Grants = []wire.Permission{{Schema: string(rune(i))}}
		}
		if _, err := sets.of(t.Context(), carrying(t, keys, p), keys, ready); err != nil {
			t.Fatal(err)
		}
	}
	if len(sets.byHash) != maxPermissionSets || len(sets.order) != maxPermissionSets {
		t.Errorf("%d sets are remembered, %d in order", len(sets.byHash), len(sets.order))
	}
	_, err := sets.of(t.Context(), &call{Assertion: wire.Assertion{Permissions: first.Hash()}}, keys, ready)
	if err == nil || asFault(err).code != codes.FailedPrecondition || asFault(err).reason != wire.NeedPermissions {
		t.Errorf("the first set: %v", err)
	}
}
