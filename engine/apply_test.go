package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// An engine judges by the snapshot it plans from whether a stack is the one it takes itself for.
func TestLineage(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	for lineage, words := range map[string]string{"": "there is no .qod.lock.hcl here", "other": "is known with lineage lineage"} {
		other := store.Stack{Name: "s", Lineage: lineage}
		_, err := b.Plan(t.Context(), other, schema.Desired{Objects: estate(t)}, engine.PlanOptions{})
		var refused *store.StackError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), words) {
			t.Errorf("lineage %q: %v", lineage, err)
		}
		p, err := b.Plan(t.Context(), other, schema.Desired{Objects: estate(t)}, engine.PlanOptions{AdoptStack: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"": "lineage", "other": "other"}[lineage]; p.Lineage != want || len(p.Changes) > 0 {
			t.Errorf("adopted with lineage %q as %q, with %d changes", lineage, p.Lineage, len(p.Changes))
		}
	}
}

// change returns a change that leaves an object as it is.
func change(o store.Object, action plan.Action) plan.Change {
	return plan.Change{
		Action: action, ID: o.ID, Kind: o.Kind, Address: o.Address, Addr: o.Addr(), Saw: int64(o.Revision), Spec: o.Spec, Applied: o.Applied,
	}
}

func find(t *testing.T, b *bed, addr string) store.Object {
	t.Helper()
	for _, o := range snapshot(t, b).Objects {
		if o.Addr().String() == addr {
			return o
		}
	}
	t.Fatalf("there is no %s", addr)
	return store.Object{}
}

// A forgotten object stays as it is without an owner, and another stack can take it over.
func TestForgetAndImport(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	was := find(t, b, "user.acme/ana")
	p := b.plan(t, estate(t))
	p.Changes = []plan.Change{change(was, plan.Forget)}
	if err := b.Commit(t.Context(), p, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	o := find(t, b, "user.acme/ana")
	if o.Stack != "" || o.Address != "" || o.Applied != cty.NilVal || !o.Spec.RawEquals(was.Spec) || o.ID != was.ID {
		t.Errorf("forgotten, it is %+v", o)
	}
	if verifier(t, b) == "" {
		t.Error("its password is gone")
	}
	other, err := b.Plan(t.Context(), store.Stack{Name: "other", Lineage: "o"}, schema.Desired{}, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c := change(o, plan.Update)
	c.Address, c.Applied, c.Import = "user.ana", o.Spec, true
	other.Changes = []plan.Change{c}
	if err := b.Commit(t.Context(), other, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	if o := find(t, b, "user.acme/ana"); o.Stack != "other" || o.Address != "user.ana" || !o.Applied.RawEquals(was.Spec) || o.ID != was.ID {
		t.Errorf("imported, it is %+v", o)
	}
	var conflict *store.ConflictError
	other.ID = "9b2d6a3e-0000-4000-8000-000000000001"
	if err := b.Commit(t.Context(), other, engine.Who{}, false); !errors.As(err, &conflict) {
		t.Errorf("an import of what has moved on: %v", err)
	}
}

// What is undone behind an apply's back is reported, and not done again for ever.
func TestLoopBreaker(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	desired := estate(t)
	desired[3] = object(t, "pool", "pool.p", `{"tenant":"acme","name":"p","tenant_db":"a","threads":4,"memory":"2GiB"}`)
	p := b.plan(t, desired)
	if err := b.Commit(t.Context(), p, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	again := func() error {
		return b.Repeats(t.Context(), p, b.stack, schema.Desired{Objects: desired}, engine.PlanOptions{})
	}
	if err := again(); err != nil {
		t.Errorf("nothing reappears: %v", err)
	}
	b.commit(t, estate(t)) // as another controller would
	const want = "not converging: pool.acme/p: memory, threads; the plan that was just applied reappears"
	if err := again(); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
