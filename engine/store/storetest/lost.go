package storetest

import (
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

// owner commits as the stack of the fixture's objects.
type owner struct {
	*fixture
	stack store.Stack
}

func newOwner(f *fixture) *owner {
	return &owner{f, store.Stack{Name: "s", Lineage: uuid.NewString()}}
}

func (o *owner) apply(c store.Change) {
	o.Helper()
	c.Stack, c.By = o.stack, "ann"
	if _, err := o.Store.Commit(o.ctx(), c); err != nil {
		o.Fatal(err)
	}
}

// wantLost compares what stack s has lost; what any other stack has lost is an error.
func (o *owner) wantLost(step string, want ...store.Lost) {
	o.Helper()
	got := o.snapshot().Lost
	if diff := cmp.Diff(want, got["s"]); diff != "" {
		o.Errorf("%s: lost (-want +got):\n%s", step, diff)
	}
	for stack, list := range got {
		if stack != "s" {
			o.Errorf("%s: stack %q has lost %v", step, stack, list)
		}
	}
}

func lostOf(w store.Write) store.Lost {
	return store.Lost{ID: w.ID, Addr: w.Kind.Addr(w.Spec), Address: w.Address}
}

// end removes or buries an object as it is now.
func (o *owner) end(op store.Op, w store.Write) store.Write {
	o.Helper()
	return store.Write{Op: op, ID: w.ID, Kind: w.Kind, Saw: o.object(w).Revision}
}

// losses are deletions by somebody else, until their stack takes note.
func losses(f *fixture) {
	o := newOwner(f)
	tenant, db, pool, role, user, grant := acme(f)
	o.apply(store.Change{Writes: []store.Write{tenant, db, pool, role, user, grant}})
	o.wantLost("all is there")
	f.commit(o.end(store.Remove, grant))
	f.commit(o.end(store.Bury, pool))
	o.wantLost("removed and buried", lostOf(pool), lostOf(grant))
	f.commit(o.end(store.Remove, pool))
	o.wantLost("the tombstone is gone", lostOf(pool), lostOf(grant))
	o.apply(store.Change{Writes: []store.Write{Next(f, f.object(role), `{"tenant":"acme","name":"owner"}`)}})
	o.wantLost("a commit about something else", lostOf(pool), lostOf(grant))
	if _, err := f.Store.Commit(f.ctx(), store.Change{
		Stack: store.Stack{Name: "other", Lineage: uuid.NewString()}, Settle: []string{pool.ID},
	}); err != nil {
		f.Fatal(err)
	}
	o.wantLost("noted by another stack", lostOf(pool), lostOf(grant))
	o.apply(store.Change{Settle: []string{pool.ID, uuid.NewString()}})
	o.wantLost("one is noted", lostOf(grant))
	again := New(f, "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`)
	o.apply(store.Change{Writes: []store.Write{again}, Settle: []string{grant.ID}})
	o.wantLost("all are noted")
}

// returned comes back under its id: then it is not lost, also when its stack ends it later.
func returned(f *fixture) {
	o := newOwner(f)
	tenant := New(f, "tenant", `{"name":"acme"}`)
	o.apply(store.Change{Writes: []store.Write{tenant}})
	f.commit(o.end(store.Remove, tenant))
	o.wantLost("removed", lostOf(tenant))
	f.commit(tenant)
	o.wantLost("there again")
	o.apply(store.Change{Writes: []store.Write{o.end(store.Remove, tenant)}})
	o.wantLost("ended by its stack")
	f.commit(tenant)
	f.commit(o.end(store.Remove, tenant))
	o.wantLost("removed once more", lostOf(tenant))
}

// keptObjects are all ways in which an object leaves a stack, or its place, without a loss.
func keptObjects(f *fixture) {
	o := newOwner(f)
	tenant, db, pool, role, user, grant := acme(f)
	nobodys := New(f, "tenant", `{"name":"nobodys"}`)
	nobodys.Address, nobodys.Stack = "", ""
	o.apply(store.Change{Writes: []store.Write{tenant, db, pool, role, user, grant, nobodys}})
	f.commit(o.end(store.Remove, nobodys))
	o.apply(store.Change{Writes: []store.Write{o.end(store.Remove, grant)}})
	o.apply(store.Change{Writes: []store.Write{o.end(store.Bury, pool)}})
	f.commit(o.end(store.Remove, pool))
	o.wantLost("ended by its stack")
	renamed := Next(f, f.object(role), `{"tenant":"acme","name":"chief"}`)
	renamed.Address = "role.chief"
	o.apply(store.Change{Writes: []store.Write{renamed}})
	o.wantLost("renamed and moved")
	forgotten := Next(f, f.object(user), `{"tenant":"acme","name":"ana"}`)
	forgotten.Address, forgotten.Stack = "", ""
	o.apply(store.Change{Writes: []store.Write{forgotten}})
	f.commit(o.end(store.Remove, user))
	o.wantLost("forgotten, then removed")
	taken := Next(f, f.object(db), `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	taken.Stack = "other"
	other := store.Change{Writes: []store.Write{taken}, Stack: store.Stack{Name: "other", Lineage: uuid.NewString()}}
	if _, err := f.Store.Commit(f.ctx(), other); err != nil {
		f.Fatal(err)
	}
	o.wantLost("taken over by another stack")
	other.Writes = []store.Write{o.end(store.Remove, db)}
	if _, err := f.Store.Commit(f.ctx(), other); err != nil {
		f.Fatal(err)
	}
	o.wantLost("taken over, then ended")
	f.refused("tenant.acme: it cannot be deleted: role.acme/chief would be left without it", o.end(store.Remove, tenant))
	o.wantLost("a commit that was refused")
}
