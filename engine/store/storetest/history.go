package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func protection(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme","display_name":"hidden"}`)
	tenant.Protected, tenant.Sensitive = true, []string{"name", "display_name", "name"}
	f.commit(tenant)
	o := f.object(tenant)
	if !o.Protected || !cmp.Equal(o.Sensitive, []string{"display_name", "name"}) {
		f.Errorf("protected %t, sensitive %v", o.Protected, o.Sensitive)
	}
	again := func() store.Write {
		w := Next(f, f.object(tenant), `{"name":"acme","display_name":"hidden"}`)
		w.Protected, w.Sensitive = true, []string{"display_name", "name"}
		return w
	}
	f.commit(again())
	if got := f.object(tenant).Revision; got != o.Revision {
		f.Errorf("an equal put touched the object: revision %d, want %d", got, o.Revision)
	}
	w := again()
	w.Protected = false
	rev := f.commit(w)
	if o := f.object(tenant); o.Protected || o.Revision != rev || o.Generation != 1 {
		f.Errorf("after taking the protection away: %t, revision %d, generation %d", o.Protected, o.Revision, o.Generation)
	}
	w = again()
	w.Protected, w.Sensitive = false, []string{"name"}
	rev = f.commit(w)
	if o := f.object(tenant); o.Revision != rev || !cmp.Equal(o.Sensitive, []string{"name"}) {
		f.Errorf("after another sensitivity: revision %d, want %d, %v", o.Revision, rev, o.Sensitive)
	}
	before := f.applies(0, 1)[0].Before[tenant.ID]
	if !cmp.Equal(before.Sensitive, []string{"display_name", "name"}) {
		f.Errorf("the history has sensitive %v", before.Sensitive)
	}
}

// forgotten gives objects up: they stay, without an owner, and another stack may take them over.
func forgotten(f *fixture) {
	tenant, db, pool, _, _, _ := acme(f)
	pool.Protected = true
	f.commit(tenant, db, pool)
	forget := func(w store.Write) store.Write {
		o := f.object(w)
		return store.Write{ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: o.Spec, Applied: o.Applied, Protected: o.Protected}
	}
	rev := f.commit(forget(db), forget(pool))
	for _, w := range []store.Write{db, pool} {
		o := f.object(w)
		if o.Stack != "" || o.Address != "" || o.Applied != cty.NilVal || o.Protected || o.Revision != rev || o.Generation != 1 {
			f.Errorf("forgotten object: %+v", o)
		}
		if !o.Spec.RawEquals(w.Spec) {
			f.Errorf("%s changed when it was forgotten", o.Addr())
		}
	}
	f.refused(`tenant.acme: it cannot be deleted: pool.acme/bi, tenant_db.acme/sales would be left without it`,
		store.Write{Op: store.Remove, ID: tenant.ID, Saw: 1})
	take := Next(f, f.object(db), `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	take.Stack, take.Address = "other", "tenant_db.mine"
	f.commit(take)
	steal := Next(f, f.object(tenant), `{"name":"acme"}`)
	steal.Stack, steal.Address = "other", "tenant.mine"
	f.commit(steal)
	if o := f.object(db); o.Stack != "other" || o.Address != "tenant_db.mine" || !o.Applied.RawEquals(db.Spec) || o.Generation != 1 {
		f.Errorf("taken over: %+v", o)
	}
	if o := f.object(tenant); o.Stack != "other" || o.Address != "tenant.mine" {
		f.Errorf("taken over from a stack: %+v", o)
	}
	// What the first stack had is free there.
	again := New(f, "tenant", `{"name":"second"}`)
	again.Address = tenant.Address
	f.commit(again)
}

func (f *fixture) applies(after store.Revision, limit int) []store.Apply {
	f.Helper()
	list, err := f.Applies.ListApplies(f.ctx(), after, limit)
	if err != nil {
		f.Fatal(err)
	}
	return list
}

func history(f *fixture) {
	if got := f.applies(0, 0); len(got) != 0 {
		f.Fatalf("a new store has a history: %+v", got)
	}
	start := time.Now().Add(-time.Minute)
	tenant, db, pool, _, _, _ := acme(f)
	pool.Protected = true
	line := uuid.NewString()
	plan := uuid.NewString()
	change := store.Change{
		Writes: []store.Write{tenant, db, pool}, Stack: store.Stack{Name: "s", Lineage: line}, PlanID: plan,
		By: "ann", From: "host", Note: "the 'plan'\n",
	}
	if _, err := f.Store.Commit(f.ctx(), change); err != nil {
		f.Fatal(err)
	}
	if err := f.Store.SetStatus(f.ctx(), db.ID, store.Status{Phase: store.Ready}, nil); err != nil {
		f.Fatal(err)
	}
	was := map[string]store.Object{pool.ID: f.object(pool), db.ID: f.object(db)}
	was[db.ID] = withStatus(was[db.ID], store.Status{})
	drift := Next(f, f.object(pool), `{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"2GiB"}`)
	drift.Applied = pool.Applied
	f.commit(drift, store.Write{Op: store.Put, ID: db.ID, Kind: db.Kind, Saw: 1, Spec: db.Spec})
	drifted := f.object(pool)
	f.commit(store.Write{Op: store.Bury, ID: pool.ID, Saw: 3})
	buried := f.object(pool)
	f.commit(store.Write{Op: store.Remove, ID: pool.ID, Saw: 4})

	got := f.applies(0, 0)
	for i := range got {
		if got[i].At.Before(start) || got[i].At.After(time.Now().Add(time.Minute)) || got[i].At.Location() != time.UTC {
			f.Errorf("revision %d was at %s", got[i].Revision, got[i].At)
		}
		got[i].At = time.Time{}
	}
	poolWas, dbWas := was[pool.ID], was[db.ID]
	want := []store.Apply{
		{Revision: 5, By: "ann", From: "host", Before: map[string]*store.Object{pool.ID: &buried}},
		{Revision: 4, By: "ann", From: "host", Before: map[string]*store.Object{pool.ID: &drifted}},
		{Revision: 3, By: "ann", From: "host", Before: map[string]*store.Object{pool.ID: &poolWas, db.ID: &dbWas}},
		{
			Revision: 1, By: "ann", From: "host", Stack: "s", PlanID: plan, Note: "the 'plan'\n",
			Before: map[string]*store.Object{tenant.ID: nil, db.ID: nil, pool.ID: nil},
		},
	}
	if diff := cmp.Diff(want, got, Compare()...); diff != "" {
		f.Errorf("history (-want +got):\n%s", diff)
	}
	for _, page := range []struct {
		after store.Revision
		limit int
		want  []store.Revision
	}{{0, 2, []store.Revision{5, 4}}, {3, 0, []store.Revision{5, 4}}, {1, 1, []store.Revision{5}}, {5, 0, nil}} {
		var revisions []store.Revision
		for _, a := range f.applies(page.after, page.limit) {
			revisions = append(revisions, a.Revision)
		}
		if diff := cmp.Diff(page.want, revisions); diff != "" {
			f.Errorf("after %d, at most %d (-want +got):\n%s", page.after, page.limit, diff)
		}
	}
}

func withStatus(o store.Object, s store.Status) store.Object {
	o.Status = s
	return o
}

// refusedHistory makes sure that a commit which fails is nowhere.
func refusedHistory(f *fixture) {
	tenant := New(f, "tenant", `{"name":"acme"}`)
	f.commit(tenant)
	stack := store.Stack{Name: "core", Lineage: uuid.NewString()}
	stale := Next(f, f.object(tenant), `{"name":"acme","disabled":true}`)
	stale.Saw = 9
	before := f.snapshot()
	fails := map[string]store.Change{
		"conflict":      {Writes: []store.Write{stale}, Stack: stack, Outputs: []schema.Output{text("a", "1")}},
		"twice":         {Stack: stack, Outputs: []schema.Output{text("a", "1"), text("a", "2")}},
		"unknown":       {Stack: stack, Outputs: []schema.Output{{Name: "a", Value: cty.UnknownVal(cty.String)}}},
		"no value":      {Stack: stack, Outputs: []schema.Output{{Name: "a"}}},
		"marked":        {Stack: stack, Outputs: []schema.Output{{Name: "a", Value: cty.StringVal("x").Mark(1), Sensitive: true}}},
		"without stack": {Outputs: []schema.Output{text("a", "1")}},
	}
	for name, change := range fails {
		if _, err := f.Store.Commit(f.ctx(), change); err == nil {
			f.Errorf("%s: the commit went through", name)
		}
		f.same(before, f.snapshot())
		if got := f.applies(0, 0); len(got) != 1 {
			f.Errorf("%s: the history has %d commits, want 1", name, len(got))
		}
	}
}

func text(name, value string) schema.Output {
	return schema.Output{Name: name, Value: cty.StringVal(value)}
}

func outputs(f *fixture) {
	stack := store.Stack{Name: "core", Lineage: uuid.NewString()}
	commit := func(list []schema.Output, writes ...store.Write) store.Revision {
		f.Helper()
		rev, err := f.Store.Commit(f.ctx(), store.Change{Stack: stack, Outputs: list, Writes: writes, By: "ann"})
		if err != nil {
			f.Fatal(err)
		}
		return rev
	}
	big := cty.MustParseNumberVal("123456789012345678901234567890.5")
	list := []schema.Output{
		{Name: "token", Value: cty.StringVal("s3cret"), Sensitive: true, Description: "a token"},
		{Name: "odd", Value: cty.ObjectVal(map[string]cty.Value{
			"n": big, "s": cty.SetVal([]cty.Value{cty.StringVal("ü\x00'")}), "none": cty.NullVal(cty.Bool), "t": cty.EmptyTupleVal,
		})},
		{Name: "nothing", Value: cty.NullVal(cty.DynamicPseudoType)},
	}
	commit(list)
	commit([]schema.Output{text("of", "another")}, New(f, "tenant", `{"name":"acme"}`))
	rev := commit(list)
	before := f.snapshot()
	if rev != 3 || before.Revision != 3 {
		f.Errorf("revision %d of %d, want 3", rev, before.Revision)
	}
	token := schema.Output{Name: "token", Value: cty.StringVal("s3cret"), Sensitive: true}
	print, err := f.Sealer.FingerprintOutput("core", token)
	if err != nil || !strings.HasPrefix(print, "hmac:") {
		f.Fatalf("fingerprint %q: %v", print, err)
	}
	sealed := list[0]
	sealed.Value = cty.StringVal(print)
	shown := []schema.Output{list[2], list[1], sealed}
	if diff := cmp.Diff(map[string][]schema.Output{"core": shown}, before.Outputs, Compare()...); diff != "" {
		f.Errorf("outputs of the snapshot (-want +got):\n%s", diff)
	}
	open, err := f.Applies.StackOutputs(f.ctx(), "core")
	if diff := cmp.Diff([]schema.Output{list[2], list[1], list[0]}, open, Compare()...); diff != "" || err != nil {
		f.Errorf("outputs with values (-want +got), %v:\n%s", err, diff)
	}
	none, err := f.Applies.StackOutputs(f.ctx(), "nobody")
	if len(none) != 0 || err != nil {
		f.Errorf("outputs of an unknown stack: %v, %v", none, err)
	}
	// Equal ones, in any order, and no writes.
	if got := commit([]schema.Output{list[1], list[0], list[2]}); got != 3 {
		f.Errorf("equal outputs made revision %d", got)
	}
	f.same(before, f.snapshot())
	got := f.applies(0, 0)
	if len(got) != 3 {
		f.Fatalf("%d commits in the history, want 3", len(got))
	}
	want := [][]schema.Output{{text("of", "another")}, shown, {}}
	if diff := cmp.Diff(want, [][]schema.Output{got[0].Outputs, got[1].Outputs, got[2].Outputs}, Compare()...); diff != "" {
		f.Errorf("outputs before (-want +got):\n%s", diff)
	}
}

func outputsLeft(f *fixture) {
	stack := store.Stack{Name: "core", Lineage: uuid.NewString()}
	secret := func(v string) []schema.Output {
		return []schema.Output{{Name: "token", Value: cty.StringVal(v), Sensitive: true}}
	}
	commit := func(c store.Change) error {
		c.Stack = stack
		_, err := f.Store.Commit(f.ctx(), c)
		return err
	}
	must := func(c store.Change) {
		f.Helper()
		if err := commit(c); err != nil {
			f.Fatal(err)
		}
	}
	must(store.Change{Outputs: secret("one")})
	must(store.Change{Writes: []store.Write{New(f, "tenant", `{"name":"a"}`)}})
	must(store.Change{Writes: []store.Write{New(f, "tenant", `{"name":"b"}`)}, Outputs: secret("one")})
	for i, a := range f.applies(0, 2) {
		if a.Outputs != nil {
			f.Errorf("commit %d left the outputs alone, its history says %v", i, a.Outputs)
		}
	}
	must(store.Change{Outputs: secret("two")})
	if got := f.applies(0, 1)[0]; len(got.Outputs) != 1 || got.Revision != 4 {
		f.Errorf("another secret: %+v", got)
	}
	must(store.Change{Outputs: []schema.Output{}})
	if got := f.snapshot().Outputs; len(got) != 0 {
		f.Errorf("outputs after taking all away: %v", got)
	}
	// Another lineage gets nowhere with outputs alone, unless it adopts the stack.
	stack.Lineage = uuid.NewString()
	var refused *store.StackError
	if err := commit(store.Change{Outputs: secret("three")}); !errors.As(err, &refused) {
		f.Errorf("another lineage: got %v, want a StackError", err)
	}
	must(store.Change{Outputs: []schema.Output{}, AdoptStack: true})
	if got := f.snapshot().Stacks["core"]; got != stack {
		f.Errorf("adopted stack is %+v", got)
	}
}

// endings tells the end of an object's outside from an owner's commit: nobody's stack, and its holder.
func endings(f *fixture) {
	db := New(f, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	f.commit(New(f, "tenant", `{"name":"acme"}`), db)
	stack := store.Stack{Name: "s", Lineage: uuid.NewString()}
	bury := store.Change{Writes: []store.Write{{Op: store.Bury, ID: db.ID, Saw: 1}}, Stack: stack, By: "ann"}
	if _, err := f.Store.Commit(f.ctx(), bury); err != nil {
		f.Fatal(err)
	}
	end := store.Change{
		Writes: []store.Write{{Op: store.Remove, ID: db.ID, Saw: 2}}, By: "process 1 on host", Note: "the outside is gone",
	}
	if _, err := f.Store.Commit(f.ctx(), end); err != nil {
		f.Fatal(err)
	}
	last := f.applies(0, 1)[0]
	if last.Stack != "" || last.By != "process 1 on host" || last.Note != "the outside is gone" || !last.Before[db.ID].Tombstone {
		f.Errorf("the end is recorded as %+v", last)
	}
	if last.Before[db.ID].Stack != "s" {
		f.Errorf("the history no longer says whose it was: %+v", last.Before[db.ID])
	}
}
