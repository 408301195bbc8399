package storetest

import (
	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

func swapNames(f *fixture) {
	a, b := New(f, "tenant", `{"name":"a"}`), New(f, "tenant", `{"name":"b"}`)
	inA, inB := New(f, "role", `{"tenant":"a","name":"of-a"}`), New(f, "role", `{"tenant":"b","name":"of-b"}`)
	f.commit(a, b, inA, inB)
	f.commit(Next(f, f.object(a), `{"name":"b"}`), Next(f, f.object(b), `{"name":"a"}`))
	f.wantSpec(a, `{"name":"b"}`)
	f.wantSpec(b, `{"name":"a"}`)
	f.wantSpec(inA, `{"name":"of-a","tenant":"b"}`)
	f.wantSpec(inB, `{"name":"of-b","tenant":"a"}`)
	f.wantAddrs("tenant.a", "tenant.b", "role.a/of-b", "role.b/of-a")
}

func renameCascade(f *fixture) {
	tenant, db, pool, role, user, grant := acme(f)
	bystander := New(f, "tenant", `{"name":"bystander"}`)
	pool.Address = "pool.bi" // of a block; the others have their own names for addresses
	f.commit(tenant, db, pool, role, user, grant, bystander)
	rev := f.commit(Next(f, f.object(tenant), `{"name":"apex"}`))
	f.wantAddrs("tenant.apex", "tenant.bystander", "tenant_db.apex/sales", "pool.apex/bi", "role.apex/owner",
		"user.apex/ana", "pool_grant.apex/bi/user:ana")
	for _, w := range []store.Write{db, pool, role, user, grant} {
		o := f.object(w)
		if o.Revision != rev || o.Generation != 2 {
			f.Errorf("%s: revision %d, generation %d, want %d and 2", o.Addr(), o.Revision, o.Generation, rev)
		}
		if !o.Applied.RawEquals(o.Spec) {
			f.Errorf("%s: what was applied did not follow: %#v", o.Addr(), o.Applied)
		}
		address := o.Addr().String()
		if w.ID == pool.ID {
			address = pool.Address
		}
		if o.Address != address || o.Stack != w.Stack {
			f.Errorf("%s: address and stack are now %s and %s", o.Addr(), o.Address, o.Stack)
		}
	}
	if o := f.object(bystander); o.Revision != 1 {
		f.Errorf("%s was touched", o.Addr())
	}
	// References still hold after it: both ways of finding them.
	f.refused(`tenant.apex: it cannot be deleted: pool.apex/bi, pool_grant.apex/bi/user:ana, role.apex/owner, `+
		`tenant_db.apex/sales, user.apex/ana would be left without it`,
		store.Write{Op: store.Remove, ID: tenant.ID, Saw: rev})
	f.commit(Next(f, f.object(user), `{"tenant":"apex","name":"anna","roles":["owner"]}`))
	f.wantSpec(grant, `{"pool":"bi","tenant":"apex","user":"anna"}`)
}

func renameApplied(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	role := New(f, "role", `{"tenant":"acme","name":"owner"}`)
	user := New(f, "user", `{"tenant":"acme","name":"ana","roles":["owner"]}`)
	f.commit(tenant, role, user)
	// Somebody took the role away by hand: only what was applied still names it.
	drift := Next(f, f.object(user), `{"tenant":"acme","name":"ana"}`)
	drift.Applied = user.Applied
	f.commit(drift)
	f.commit(Next(f, f.object(role), `{"tenant":"acme","name":"boss"}`))
	o := f.object(user)
	f.wantValue(o.Kind, o.Spec, `{"name":"ana","tenant":"acme"}`)
	f.wantValue(o.Kind, o.Applied, `{"name":"ana","roles":["boss"],"tenant":"acme"}`)
	if o.Generation != 2 {
		f.Errorf("generation is %d, want 2: the spec did not change again", o.Generation)
	}
}

func renameInSet(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	a, b := New(f, "role", `{"tenant":"acme","name":"a"}`), New(f, "role", `{"tenant":"acme","name":"b"}`)
	user := New(f, "user", `{"tenant":"acme","name":"ana","roles":["a","b"]}`)
	every, one := New(f, "pool_grant", `{"tenant":"acme","pool":"*","user":"ana"}`), New(f, "pool_grant", `{"tenant":"acme","pool":"*","role":"a"}`)
	f.commit(tenant, a, b, user, every, one)
	f.commit(Next(f, f.object(a), `{"tenant":"acme","name":"b"}`), Next(f, f.object(b), `{"tenant":"acme","name":"c"}`))
	f.wantSpec(user, `{"name":"ana","roles":["b","c"],"tenant":"acme"}`)
	f.wantSpec(one, `{"pool":"*","role":"b","tenant":"acme"}`)
	f.wantSpec(every, `{"pool":"*","tenant":"acme","user":"ana"}`)
}

// moveAway gives an object another tenant: whoever refers to it cannot follow by a name alone.
func moveAway(f *fixture) {
	tenant, db, pool, role, user, grant := acme(f)
	f.commit(tenant, db, pool, role, user, grant, New(f, "tenant", `{"name":"beta"}`))
	f.refused(`user.acme/ana: roles names role.acme/owner, which is now role.beta/owner`,
		Next(f, f.object(role), `{"tenant":"beta","name":"owner"}`))
}

func renameAndWrite(f *fixture) {
	tenant, db, pool, role, user, grant := acme(f)
	f.commit(tenant, db, pool, role, user, grant)
	toApex := Next(f, f.object(tenant), `{"name":"apex"}`)
	f.refused(`pool.acme/bi: tenant names tenant.acme, which is now tenant.apex`,
		toApex, Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"2GiB"}`))
	same := pool
	same.Saw = f.object(pool).Revision
	f.refused(`pool.acme/bi: tenant names tenant.acme, which is now tenant.apex`, toApex, same)
	second := New(f, "tenant", `{"name":"acme"}`)
	second.Address = "tenant.second"
	f.commit(toApex, Next(f, f.object(pool), `{"tenant":"apex","name":"bi","tenant_db":"sales","memory":"2GiB"}`), second)
	f.wantAddrs("tenant.acme", "tenant.apex", "tenant_db.apex/sales", "pool.apex/bi", "role.apex/owner",
		"user.apex/ana", "pool_grant.apex/bi/user:ana")
}

func dependants(f *fixture) {
	tenant, db, pool, role, user, grant := acme(f)
	f.commit(tenant, db, pool, role, user, grant)
	for _, op := range []store.Op{store.Bury, store.Remove} {
		f.refused(`tenant_db.acme/sales: it cannot be deleted: pool.acme/bi would be left without it`,
			store.Write{Op: op, ID: db.ID, Saw: 1})
	}
	f.refused(`tenant.acme: it cannot be deleted: pool.acme/bi, pool_grant.acme/bi/user:ana, role.acme/owner, user.acme/ana would be left without it`,
		store.Write{Op: store.Bury, ID: tenant.ID, Saw: 1}, store.Write{Op: store.Bury, ID: db.ID, Saw: 1})
	// A referrer that lets go in the same commit is no dependant.
	f.commit(store.Write{Op: store.Remove, ID: role.ID, Saw: 1}, Next(f, f.object(user), `{"tenant":"acme","name":"ana"}`))
	f.refused(`user.acme/ana: roles names role.acme/owner, which does not exist`,
		Next(f, f.object(user), `{"tenant":"acme","name":"ana","roles":["owner"]}`))
	// Everything at once, in any order.
	f.commit(store.Write{Op: store.Remove, ID: tenant.ID, Saw: 1}, store.Write{Op: store.Bury, ID: db.ID, Saw: 1},
		store.Write{Op: store.Bury, ID: pool.ID, Saw: 1}, store.Write{Op: store.Remove, ID: user.ID, Saw: 2},
		store.Write{Op: store.Remove, ID: grant.ID, Saw: 1})
	f.wantAddrs("-tenant_db.acme/sales", "-pool.acme/bi")
}

func tombstones(f *fixture) {
	tenant, db, pool, _, _, _ := acme(f)
	f.commit(tenant, db, pool)
	rev := f.commit(store.Write{Op: store.Bury, ID: pool.ID, Saw: 1}, store.Write{Op: store.Bury, ID: db.ID, Saw: 1})
	o := f.object(db)
	if !o.Tombstone || o.Revision != rev || o.Generation != 1 || !o.Spec.RawEquals(db.Spec) || o.Address != db.Address {
		f.Errorf("buried object: %+v", o)
	}
	f.refused(`pool.acme/new: tenant_db names tenant_db.acme/sales, which is being deleted`,
		New(f, "pool", `{"tenant":"acme","name":"new","tenant_db":"sales"}`))
	// Burying again changes nothing.
	f.commit(store.Write{Op: store.Bury, ID: db.ID, Saw: rev})
	if got := f.object(db).Revision; got != rev {
		f.Errorf("revision of what was buried twice is %d, want %d", got, rev)
	}
	// The names are free at once, and the new objects are others.
	db2 := New(f, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	pool2 := New(f, "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`)
	f.commit(db2, pool2)
	f.wantAddrs("tenant.acme", "tenant_db.acme/sales", "-tenant_db.acme/sales", "pool.acme/bi", "-pool.acme/bi")
	// Renaming the new one leaves the old tombstones alone; renaming the tenant takes them along.
	f.commit(Next(f, f.object(db2), `{"tenant":"acme","name":"sold","kind":"ducklake"}`))
	f.wantSpec(pool2, `{"name":"bi","tenant":"acme","tenant_db":"sold"}`)
	f.wantSpec(pool, `{"memory":"1GiB","name":"bi","nodes":{"dual":2},"tenant":"acme","tenant_db":"sales"}`)
	f.commit(Next(f, f.object(tenant), `{"name":"apex"}`))
	f.wantAddrs("tenant.apex", "-tenant_db.apex/sales", "tenant_db.apex/sold", "pool.apex/bi", "-pool.apex/bi")
	f.commit(store.Write{Op: store.Remove, ID: pool.ID, Saw: f.object(pool).Revision},
		store.Write{Op: store.Remove, ID: db.ID, Saw: f.object(db).Revision})
	f.wantAddrs("tenant.apex", "tenant_db.apex/sold", "pool.apex/bi")
}

func removal(f *fixture) {
	tenant, db, pool, _, _, _ := acme(f)
	f.commit(tenant, db, pool)
	f.commit(store.Write{Op: store.Bury, ID: pool.ID, Saw: 1})
	// A tombstone does not hold what it refers to, in either order of going.
	f.commit(store.Write{Op: store.Remove, ID: db.ID, Saw: 1})
	f.commit(store.Write{Op: store.Remove, ID: tenant.ID, Saw: 1})
	f.wantAddrs("-pool.acme/bi")
	f.commit(store.Write{Op: store.Remove, ID: pool.ID, Saw: f.object(pool).Revision})
	f.wantAddrs()
	missing := store.Write{Op: store.Remove, ID: uuid.NewString(), Kind: pool.Kind, Saw: 3}
	f.refused(`pool.`+missing.ID+`: it does not exist, this plan saw revision 3`, missing)
	// The name can come back.
	f.commit(New(f, "tenant", `{"name":"acme"}`))
}

// relink has a name mean another object, in values that stay as they are.
func relink(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	old, other := New(f, "role", `{"tenant":"acme","name":"owner"}`), New(f, "role", `{"tenant":"acme","name":"reader"}`)
	group := New(f, "group", `{"tenant":"acme","name":"staff","roles":["owner","reader"]}`)
	f.commit(tenant, old, other, group)
	anew := New(f, "role", `{"tenant":"acme","name":"owner"}`)
	rev := f.commit(store.Write{Op: store.Remove, ID: old.ID, Kind: old.Kind, Saw: f.object(old).Revision}, anew,
		Next(f, f.object(group), `{"tenant":"acme","name":"staff","roles":["owner","reader"]}`))
	if o := f.object(group); o.Revision != rev || o.Generation != 1 {
		f.Errorf("%s: revision %d, generation %d, want %d and 1", o.Addr(), o.Revision, o.Generation, rev)
	}
	f.refused(`role.acme/owner: it cannot be deleted: group.acme/staff would be left without it`,
		store.Write{Op: store.Remove, ID: anew.ID, Kind: anew.Kind, Saw: rev})
	f.commit(Next(f, f.object(anew), `{"tenant":"acme","name":"zoo"}`)) // sorts after the other one
	f.wantSpec(group, `{"name":"staff","roles":["reader","zoo"],"tenant":"acme"}`)
	last := f.object(group).Revision
	f.commit(Next(f, f.object(group), `{"tenant":"acme","name":"staff","roles":["reader","zoo"]}`))
	if o := f.object(group); o.Revision != last {
		f.Errorf("%s was written although nothing differs", o.Addr())
	}
}
