package storetest

import (
	"errors"
	"sync"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
)

func isConflict(err error) bool {
	var conflict *store.ConflictError
	return errors.As(err, &conflict)
}

// acme returns writes for a tenant with one of everything.
func acme(f *fixture) (tenant, db, pool, role, user, grant store.Write) {
	return New(f, "tenant", `{"name":"acme"}`),
		New(f, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`),
		New(f, "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"1GiB","nodes":{"dual":2}}`),
		New(f, "role", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`),
		New(f, "user", `{"tenant":"acme","name":"ana","roles":["owner"]}`),
		New(f, "pool_grant", `{"tenant":"acme","pool":"bi","user":"ana"}`)
}

func putAndRead(f *fixture) {
	if s := f.snapshot(); s.Revision != 0 || len(s.Objects) != 0 {
		f.Fatalf("a new store is not empty: %+v", s)
	}
	tenant, db, pool, role, user, grant := acme(f)
	rev := f.commit(grant, user, role, pool, db, tenant)
	if rev != 1 {
		f.Errorf("first revision is %d", rev)
	}
	f.wantAddrs("tenant.acme", "tenant_db.acme/sales", "pool.acme/bi", "role.acme/owner", "user.acme/ana", "pool_grant.acme/bi/user:ana")
	want := store.Object{
		ID: pool.ID, Kind: pool.Kind, Spec: pool.Spec, Applied: pool.Applied, Address: "pool.acme/bi", Stack: "s",
		Generation: 1, Revision: rev,
	}
	if diff := cmp.Diff(want, f.object(pool), Compare()...); diff != "" {
		f.Errorf("object (-want +got):\n%s", diff)
	}
	// By hand: applied by nobody.
	hand := New(f, "tenant", `{"name":"hand"}`)
	hand.Applied, hand.Address, hand.Stack = cty.NilVal, "", ""
	f.commit(hand)
	if o := f.object(hand); o.Applied != cty.NilVal {
		f.Errorf("applied is %#v, want none", o.Applied)
	}
	drifted := Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"2GiB","nodes":{"dual":2}}`)
	drifted.Applied = pool.Applied
	f.commit(drifted)
	o := f.object(pool)
	f.wantValue(o.Kind, o.Spec, `{"memory":"2GiB","name":"bi","nodes":{"dual":2},"tenant":"acme","tenant_db":"sales"}`)
	f.wantValue(o.Kind, o.Applied, `{"memory":"1GiB","name":"bi","nodes":{"dual":2},"tenant":"acme","tenant_db":"sales"}`)
}

func snapshotOrder(f *fixture) {
	f.commit(New(f, "tenant", `{"name":"b-b"}`), New(f, "tenant", `{"name":"b_a"}`), New(f, "tenant", `{"name":"ba"}`),
		New(f, "tenant", `{"name":"a"}`), New(f, "role", `{"tenant":"a","name":"r"}`), New(f, "pool_grant", `{"tenant":"a","pool":"*","role":"r"}`))
	f.wantAddrs("tenant.a", "tenant.b-b", "tenant.b_a", "tenant.ba", "role.a/r", "pool_grant.a/*/role:r")
}

func generations(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	other := New(f, "tenant", `{"name":"other"}`)
	f.commit(tenant, other)
	applied := Next(f, f.object(tenant), `{"name":"acme"}`)
	applied.Applied = cty.NilVal
	f.commit(applied)
	if o := f.object(tenant); o.Generation != 1 || o.Revision != 2 {
		f.Errorf("after a change of applied: generation %d, revision %d, want 1 and 2", o.Generation, o.Revision)
	}
	f.commit(Next(f, f.object(tenant), `{"name":"acme","disabled":true}`))
	if o := f.object(tenant); o.Generation != 2 || o.Revision != 3 {
		f.Errorf("after a change of spec: generation %d, revision %d, want 2 and 3", o.Generation, o.Revision)
	}
	if o := f.object(other); o.Generation != 1 || o.Revision != 1 {
		f.Errorf("untouched object: generation %d, revision %d, want 1 and 1", o.Generation, o.Revision)
	}
}

func equalPut(f *fixture) {
	tenant, db, pool, role, user, grant := acme(f)
	f.commit(tenant, db, pool, role, user, grant)
	before := f.snapshot()
	same := pool
	same.Saw = f.object(pool).Revision
	after := f.commit(same)
	before.Revision = after
	f.same(before, f.snapshot())
}

func allOrNothing(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	f.commit(tenant)
	stale := Next(f, f.object(tenant), `{"name":"acme","disabled":true}`)
	stale.Saw = 7
	f.refused(`tenant.acme: it was changed (by ann, revision 1), this plan saw revision 7`,
		New(f, "tenant", `{"name":"beta"}`), stale)
}

func secrets(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	user := New(f, "user", `{"tenant":"acme","name":"ana","password":"hmac:1"}`)
	user.Secrets = map[string][]byte{"password_verifier": []byte("verifier"), "other": []byte("x")}
	f.commit(tenant, user)
	open := func(attr string) string {
		key := store.SecretKey{Object: user.ID, Attr: attr}
		sealed, ok := f.snapshot().Secrets[key]
		if !ok {
			return "absent"
		}
		clear, err := f.Sealer.Open(key, sealed)
		if err != nil {
			f.Fatal(err)
		}
		return string(clear)
	}
	want := func(step, password, other string) {
		f.Helper()
		if open("password_verifier") != password || open("other") != other {
			f.Errorf("%s: password %s and other %s, want %s and %s", step, open("password_verifier"), open("other"), password, other)
		}
	}
	want("new", "verifier", "x")
	f.commit(Next(f, f.object(user), `{"tenant":"acme","name":"ana","password":"hmac:1","email":"ana@acme.io"}`))
	want("another attribute changed", "verifier", "x")
	again := Next(f, f.object(user), `{"tenant":"acme","name":"ana","password":"hmac:2","email":"ana@acme.io"}`)
	again.Secrets = map[string][]byte{"password_verifier": []byte("second")}
	f.commit(again)
	want("changed", "second", "x")
	f.commit(Next(f, f.object(user), `{"tenant":"acme","name":"ana"}`))
	want("left out", "absent", "x")
	f.commit(store.Write{Op: store.Remove, ID: user.ID, Saw: f.object(user).Revision})
	want("removed", "absent", "absent")
}

func duplicateKey(f *fixture) {
	first := New(f, "tenant", `{"name":"acme"}`)
	f.commit(first)
	second := New(f, "tenant", `{"name":"acme"}`)
	second.Address = "tenant.second"
	f.refused(`tenant.acme: it exists already (by stack s, revision 1)`, second)
	a, b := New(f, "tenant", `{"name":"beta"}`), New(f, "tenant", `{"name":"beta"}`)
	f.refused(`tenant.beta: one commit makes two objects of this name`, a, b)
	other := New(f, "tenant", `{"name":"other"}`)
	f.commit(other)
	f.refused(`tenant.acme: it exists already (by stack s, revision 1)`, Next(f, f.object(other), `{"name":"acme"}`))
}

func duplicateAddress(f *fixture) {
	a, b := New(f, "tenant", `{"name":"a"}`), New(f, "tenant", `{"name":"b"}`)
	a.Address, b.Address = "tenant.one", "tenant.two"
	f.commit(a, b)
	c := New(f, "tenant", `{"name":"c"}`)
	c.Address = "tenant.one"
	f.refused(`tenant.c: tenant.one of stack "s" is the address of tenant.a already`, c)
	c.Stack = "other"
	f.commit(c)
	for range 2 {
		d := New(f, "tenant", `{"name":"d`+uuid.NewString()[:8]+`"}`)
		d.Address = ""
		f.commit(d)
	}
	// Two blocks may swap their objects in one commit.
	toTwo, toOne := Next(f, f.object(a), `{"name":"a"}`), Next(f, f.object(b), `{"name":"b"}`)
	toTwo.Address, toOne.Address = "tenant.two", "tenant.one"
	f.commit(toTwo, toOne)
	if f.object(a).Address != "tenant.two" || f.object(b).Address != "tenant.one" {
		f.Error("addresses were not swapped")
	}
	// A tombstone gives its address up.
	f.commit(store.Write{Op: store.Bury, ID: a.ID, Saw: f.object(a).Revision})
	e := New(f, "tenant", `{"name":"e"}`)
	e.Address = "tenant.two"
	f.commit(e)
}

func dangling(f *fixture) {
	f.refused(`tenant_db.acme/sales: tenant names tenant.acme, which does not exist`,
		New(f, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`))
	f.commit(New(f, "tenant", `{"name":"acme"}`), New(f, "tenant", `{"name":"beta"}`),
		New(f, "tenant_db", `{"tenant":"beta","name":"sales","kind":"ducklake"}`))
	f.refused(`pool.acme/bi: tenant_db names tenant_db.acme/sales, which does not exist`,
		New(f, "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`))
	f.refused(`user.acme/ana: roles names role.acme/nobody, which does not exist`,
		New(f, "user", `{"tenant":"acme","name":"ana","roles":["nobody"]}`))
}

func malformed(f *fixture) {
	good := New(f, "tenant", `{"name":"acme"}`)
	f.commit(good)
	bad := map[string][]store.Write{
		"no uuid":        {{ID: "acme", Kind: good.Kind, Spec: good.Spec}},
		"another kind":   {{ID: good.ID, Saw: 1, Kind: Kind(f, "role"), Spec: New(f, "role", `{"tenant":"acme","name":"r"}`).Spec}},
		"twice":          {{ID: good.ID, Saw: 1, Op: store.Bury}, {ID: good.ID, Saw: 1, Op: store.Remove}},
		"without a kind": {{ID: uuid.NewString()}},
	}
	for name, writes := range bad {
		if _, err := f.Store.Commit(f.ctx(), store.Change{Writes: writes}); err == nil || isConflict(err) {
			f.Errorf("%s: got %v, want an error that is no conflict", name, err)
		}
	}
	if rev := f.snapshot().Revision; rev != 1 {
		f.Errorf("revision is %d after refused commits, want 1", rev)
	}
}

func concurrent(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	f.commit(tenant)
	const writers = 8
	var group sync.WaitGroup
	results := make(chan error, writers)
	seen := f.object(tenant)
	for range writers {
		w := Next(f, seen, `{"name":"acme","disabled":true}`)
		group.Go(func() {
			_, err := f.Store.Commit(f.ctx(), store.Change{Writes: []store.Write{w}})
			results <- err
		})
	}
	group.Wait()
	close(results)
	won := 0
	for err := range results {
		switch {
		case err == nil:
			won++
		case !isConflict(err):
			f.Errorf("loser got %v, want a ConflictError", err)
		}
	}
	if won != 1 || f.snapshot().Revision != 2 {
		f.Errorf("%d writers won at revision %d, want 1 at 2", won, f.snapshot().Revision)
	}
}
