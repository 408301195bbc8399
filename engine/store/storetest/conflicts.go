package storetest

import (
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

func conflictValues(f *fixture) {
	tenant, db, pool, _, _, _ := acme(f)
	f.commit(tenant, db, pool)
	planned := Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"4GiB"}`)
	change := store.Change{Writes: []store.Write{
		Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"2GiB","threads":3,"nodes":{"dual":2}}`),
	}, Stack: store.Stack{Name: "x", Lineage: uuid.NewString()}, By: "bob"}
	if _, err := f.Store.Commit(f.ctx(), change); err != nil {
		f.Fatal(err)
	}
	f.refused(`pool.acme/bi: memory is now "2GiB" (by stack x, revision 2), this plan saw "1GiB"; `+
		`threads is now 3 (by stack x, revision 2), this plan saw unset`, planned)
	// A commit of something else in between changes nothing about it.
	f.commit(New(f, "tenant", `{"name":"other"}`))
	f.commit(Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"8GiB","nodes":{"dual":2}}`))
	f.refused(`pool.acme/bi: memory is now "8GiB" (by ann, revision 4), this plan saw "1GiB"`, planned)
}

func conflictSecret(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	user := New(f, "user", `{"tenant":"acme","name":"ana","password":"hmac:one"}`)
	f.commit(tenant, user)
	planned := Next(f, f.object(user), `{"tenant":"acme","name":"ana"}`)
	f.commit(Next(f, f.object(user), `{"tenant":"acme","name":"ana","password":"hmac:two"}`))
	f.refused(`user.acme/ana: password was changed (by ann, revision 2)`, planned)
}

func conflictOther(f *fixture) {
	a, b := New(f, "tenant", `{"name":"a"}`), New(f, "tenant", `{"name":"b"}`)
	f.commit(a, b)
	seenA, seenB := f.object(a), f.object(b)
	// An object of the same id already.
	again := New(f, "tenant", `{"name":"a"}`)
	again.ID = a.ID
	f.refused(`tenant.a: it exists already (by ann, revision 1), this plan saw none`, again)
	// Removed and buried since.
	f.commit(store.Write{Op: store.Remove, ID: a.ID, Saw: 1}, store.Write{Op: store.Bury, ID: b.ID, Saw: 1})
	f.refused(`tenant.a: it was removed (by ann, revision 2), this plan saw revision 1`, Next(f, seenA, `{"name":"a","disabled":true}`))
	f.refused(`tenant.b: it is being deleted (by ann, revision 2), this plan saw revision 1`, Next(f, seenB, `{"name":"b","disabled":true}`))
	// Never there.
	never := New(f, "tenant", `{"name":"never"}`)
	never.Saw = 1
	f.refused(`tenant.never: it does not exist, this plan saw revision 1`, never)
	// A tombstone cannot be put.
	f.refused(`tenant.b: it is being deleted (by stack s, revision 2)`, Next(f, f.object(b), `{"name":"b","disabled":true}`))
}

func lineage(f *fixture) {
	one, two := uuid.NewString(), uuid.NewString()
	commit := func(line string, adopt bool, name string) error {
		_, err := f.Store.Commit(f.ctx(), store.Change{
			Writes:     []store.Write{New(f, "tenant", `{"name":"`+name+`"}`)},
			Stack:      store.Stack{Name: "core", Lineage: line},
			AdoptStack: adopt,
		})
		return err
	}
	if err := commit(one, false, "a"); err != nil {
		f.Fatal(err)
	}
	if err := commit(one, false, "b"); err != nil {
		f.Fatal(err)
	}
	err := commit(two, false, "c")
	var stack *store.StackError
	if !errors.As(err, &stack) || *stack != (store.StackError{Name: "core", Have: one, Want: two}) {
		f.Fatalf("another lineage: got %v", err)
	}
	if got := f.snapshot(); got.Stacks["core"].Lineage != one || got.Revision != 2 {
		f.Errorf("the refused commit left a trace: %+v", got)
	}
	if err := commit(two, true, "c"); err != nil {
		f.Fatal(err)
	}
	if got := f.snapshot().Stacks["core"]; got != (store.Stack{Name: "core", Lineage: two}) {
		f.Errorf("adopted stack is %+v", got)
	}
	if err := commit(one, false, "d"); !errors.As(err, &stack) {
		f.Errorf("the old lineage: got %v, want a StackError", err)
	}
}

func planOnce(f *fixture) {
	plan := uuid.NewString()
	change := store.Change{Writes: []store.Write{New(f, "tenant", `{"name":"a"}`)}, PlanID: plan}
	if _, err := f.Store.Commit(f.ctx(), change); err != nil {
		f.Fatal(err)
	}
	change.Writes = []store.Write{New(f, "tenant", `{"name":"b"}`)}
	if _, err := f.Store.Commit(f.ctx(), change); !errors.Is(err, store.ErrPlanUsed) {
		f.Errorf("second commit: got %v, want ErrPlanUsed", err)
	}
	if err := f.Store.Check(f.ctx(), change); !errors.Is(err, store.ErrPlanUsed) {
		f.Errorf("check: got %v, want ErrPlanUsed", err)
	}
	f.wantAddrs("tenant.a")
	// A refused commit does not use its plan up.
	change.PlanID = uuid.NewString()
	bad := New(f, "tenant", `{"name":"a"}`)
	change.Writes = []store.Write{bad}
	if _, err := f.Store.Commit(f.ctx(), change); err == nil || !strings.Contains(err.Error(), "already") {
		f.Fatalf("duplicate: got %v", err)
	}
	change.Writes = []store.Write{New(f, "tenant", `{"name":"b"}`)}
	if _, err := f.Store.Commit(f.ctx(), change); err != nil {
		f.Errorf("after a refused commit: %v", err)
	}
	// An apply may have nothing to write but its record.
	if _, err := f.Store.Commit(f.ctx(), store.Change{PlanID: plan}); !errors.Is(err, store.ErrPlanUsed) {
		f.Errorf("empty change: got %v, want ErrPlanUsed", err)
	}
	if _, err := f.Store.Commit(f.ctx(), store.Change{PlanID: uuid.NewString()}); err != nil {
		f.Errorf("empty change: %v", err)
	}
}
