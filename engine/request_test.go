package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// asked is a put of an object.
func asked(t *testing.T, kind, json string) engine.Asked {
	t.Helper()
	o := object(t, kind, "", json)
	return engine.Asked{Kind: o.Kind, Value: o.Value}
}

// at names the object that a change is about.
func at(c engine.Asked, path string) engine.Asked {
	c.Key = schema.Addr{Kind: c.Kind.Name, Path: path}
	return c
}

func gone(t *testing.T, kind, path string) engine.Asked {
	t.Helper()
	k, _ := schema.Lookup(kind)
	return at(engine.Asked{Kind: k, Delete: true}, path)
}

func seen(c engine.Asked, r store.Revision) engine.Asked {
	c.IfMatch = &r
	return c
}

func (b *bed) request(t *testing.T, stack string, changes ...engine.Asked) (*engine.Plan, error) {
	t.Helper()
	p, err := b.Request(t.Context(), engine.Request{Stack: store.Stack{Name: stack}, Changes: changes})
	if err != nil {
		return nil, err
	}
	return p, b.Commit(t.Context(), p, engine.Who{By: "me"}, false)
}

// do makes a request that must succeed.
func (b *bed) do(t *testing.T, changes ...engine.Asked) *engine.Plan {
	t.Helper()
	p, err := b.request(t, "s", changes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bed) live(t *testing.T) map[string]store.Object {
	t.Helper()
	all := map[string]store.Object{}
	for _, o := range snapshot(t, b).Objects {
		if !o.Tombstone {
			all[o.Addr().String()] = o
		}
	}
	return all
}

func TestRequestMeetsTheChecksOfAPlan(t *testing.T) {
	one := store.Revision(1)
	for _, test := range []struct {
		name    string
		stack   string
		changes []engine.Asked
		want    []string // index code path: summary
	}{
		{"a value that will not do", "s", []engine.Asked{asked(t, "pool", `{"tenant":"acme","name":"q","tenant_db":"a","threads":0,"memory":"1"}`)},
			[]string{`0 invalid memory: "1" is not a size: write it as 512MiB or 2GiB`, `0 invalid threads: 0 is out of range: want a whole number from 1 to 256`}},
		{"a reference to nothing", "s", []engine.Asked{asked(t, "pool", `{"tenant":"acme","name":"q","tenant_db":"c"}`)},
			[]string{"0 invalid tenant_db: tenant_db.acme/c does not exist"}},
		{"still in use", "s", []engine.Asked{gone(t, "tenant_db", "acme/b"), gone(t, "tenant_db", "acme/a")},
			[]string{"1 conflict : tenant_db.acme/a is still in use"}},
		{"another's", "other", []engine.Asked{asked(t, "pool", `{"tenant":"acme","name":"p","tenant_db":"a"}`), gone(t, "user", "acme/ana")},
			[]string{`1 conflict : user.acme/ana belongs to stack "s"`}},
		{"another's, put", "other", []engine.Asked{asked(t, "pool", `{"tenant":"acme","name":"p","tenant_db":"a"}`)},
			[]string{`0 conflict : pool.acme/p belongs to stack "s"`}},
		{"not there", "s", []engine.Asked{gone(t, "pool", "acme/q"), at(asked(t, "pool", `{"tenant":"acme","name":"q","tenant_db":"a"}`), "acme/r")},
			[]string{"0 not_found : pool.acme/q does not exist", "1 not_found : pool.acme/r does not exist"}},
		{"a name that is taken", "s", []engine.Asked{at(asked(t, "tenant_db", `{"tenant":"acme","name":"b","kind":"ducklake"}`), "acme/a")},
			[]string{"0 conflict : tenant_db.acme/b exists already"}},
		{"twice", "s", []engine.Asked{gone(t, "pool", "acme/p"), asked(t, "pool", `{"tenant":"acme","name":"p","tenant_db":"a"}`)},
			[]string{"1 invalid : pool.acme/p is named twice"}},
		{"two of one name", "s", []engine.Asked{asked(t, "tenant", `{"name":"x"}`), asked(t, "tenant", `{"name":"x"}`)},
			[]string{"1 invalid : tenant.x is named twice"}},
		{"moved on", "s", []engine.Asked{seen(gone(t, "pool", "acme/p"), 7), seen(asked(t, "tenant", `{"name":"acme"}`), 0), {
			Kind: asked(t, "tenant", `{"name":"x"}`).Kind, Value: asked(t, "tenant", `{"name":"x"}`).Value, IfMatch: &one}},
			[]string{"0 revision : pool.acme/p is at revision 1", "1 revision : tenant.acme exists already", "2 revision : tenant.x does not exist"}},
		{"no stack", "system", []engine.Asked{asked(t, "tenant", `{"name":"x"}`)}, []string{`-1 invalid : "system" cannot be the name of a stack`}},
		{"no name of a stack", "A b", []engine.Asked{asked(t, "tenant", `{"name":"x"}`)}, []string{`-1 invalid : "A b" cannot be the name of a stack`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t)
			b.commit(t, estate(t))
			_, err := b.request(t, test.stack, test.changes...)
			var bad *engine.RequestError
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a RequestError", err)
			}
			var got []string
			for _, f := range bad.Faults {
				path := ""
				if len(f.Path) > 0 {
					path = f.Path[0].(cty.GetAttrStep).Name
				}
				got = append(got, fmt.Sprintf("%d %s %s: %s", f.Index, f.Code, path, f.Summary))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if rev := snapshot(t, b).Revision; rev != 1 {
				t.Errorf("the store moved on to %d", rev)
			}
		})
	}
}

func TestRequestChangesWhatItNames(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	before := b.live(t)
	p := b.do(t, asked(t, "pool", `{"tenant":"acme","name":"q","tenant_db":"b"}`), gone(t, "user", "acme/ana"),
		seen(at(asked(t, "pool", `{"tenant":"acme","name":"p2","tenant_db":"b"}`), "acme/p"), 1))
	after := b.live(t)
	for addr, o := range before {
		if addr != "user.acme/ana" && addr != "pool.acme/p" && after[addr].Revision != o.Revision {
			t.Errorf("%s was touched", addr)
		}
	}
	renamed := after["pool.acme/p2"]
	if renamed.ID != before["pool.acme/p"].ID || renamed.Address != "pool.acme/p2" || renamed.Stack != "s" {
		t.Errorf("renamed: %+v", renamed)
	}
	if _, there := after["user.acme/ana"]; there {
		t.Error("the user is there")
	}
	ids := []string{after["pool.acme/q"].ID, before["user.acme/ana"].ID, renamed.ID}
	if diff := cmp.Diff(ids, p.Asked()); diff != "" {
		t.Error(diff)
	}
	rev := snapshot(t, b).Revision
	again := b.do(t, asked(t, "pool", `{"tenant":"acme","name":"p2","tenant_db":"b"}`))
	if now := snapshot(t, b).Revision; now != rev || again.Asked()[0] != renamed.ID {
		t.Errorf("the same again moved the store from %d to %d", rev, now)
	}
}

func TestRequestAndConfigurationTakeTurns(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	id := b.live(t)["pool.acme/p"].ID
	b.do(t, asked(t, "pool", `{"tenant":"acme","name":"p","tenant_db":"a","threads":3}`))
	if o := b.live(t)["pool.acme/p"]; o.Address != "pool.acme/p" || o.ID != id {
		t.Errorf("after the request it is %s at %s", o.ID, o.Address)
	}
	b.commit(t, estate(t))
	if o := b.live(t)["pool.acme/p"]; o.Address != "pool.p" || o.ID != id || !o.Spec.GetAttr("threads").IsNull() {
		t.Errorf("after the apply it is %s at %s: %#v", o.ID, o.Address, o.Spec)
	}
}

func TestRequestKeepsWhatItIsToldTo(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	user := b.live(t)["user.acme/ana"]
	key := store.SecretKey{Object: user.ID, Attr: "password_verifier"}
	secret := snapshot(t, b).Secrets[key]
	c := asked(t, "user", `{"tenant":"acme","name":"ana","email":"ana@acme.io"}`)
	c.Keep = []cty.Path{cty.GetAttrPath("password"), cty.GetAttrPath("admin")}
	b.do(t, c)
	now := b.live(t)["user.acme/ana"]
	if got := snapshot(t, b).Secrets[key]; string(got) != string(secret) || now.Spec.GetAttr("password").IsNull() {
		t.Error("the password was not kept")
	}
	c.Keep = nil
	b.do(t, c)
	if _, kept := snapshot(t, b).Secrets[key]; kept {
		t.Error("a password that is left out goes on working")
	}
	issuer := cty.GetAttrPath("auth").GetAttr("issuer")
	b.do(t, asked(t, "tenant", `{"name":"acme","auth":{"issuer":"https://login.acme.io","audience":["a"]}}`))
	part := asked(t, "tenant", `{"name":"acme","auth":{"audience":["b"]}}`)
	part.Keep = []cty.Path{issuer}
	b.do(t, part)
	auth := b.live(t)["tenant.acme"].Spec.GetAttr("auth")
	if auth.GetAttr("issuer").AsString() != "https://login.acme.io" || !auth.GetAttr("audience").HasElement(cty.StringVal("b")).True() {
		t.Errorf("got %#v", auth)
	}
}

func TestRequestTakesOver(t *testing.T) {
	b := newBed(t)
	b.commit(t, estate(t))
	c := asked(t, "pool", `{"tenant":"acme","name":"p","tenant_db":"a","threads":3}`)
	c.TakeOver = true
	id := b.live(t)["pool.acme/p"].ID
	for range 2 { // once it is its own, there is nothing to take
		if _, err := b.request(t, "mine", c); err != nil {
			t.Fatal(err)
		}
	}
	if o := b.live(t)["pool.acme/p"]; o.ID != id || o.Stack != "mine" || o.Address != "pool.acme/p" {
		t.Errorf("got %+v", o)
	}
}

func TestRequestAndTheLineageOfItsStack(t *testing.T) {
	b := newBed(t)
	if _, err := b.request(t, "fresh", asked(t, "tenant", `{"name":"x"}`)); err != nil {
		t.Fatal(err)
	}
	lineage := snapshot(t, b).Stacks["fresh"].Lineage
	if len(lineage) != 36 {
		t.Errorf("the new stack has the lineage %q", lineage)
	}
	if _, err := b.request(t, "fresh", asked(t, "tenant", `{"name":"y"}`)); err != nil {
		t.Error(err)
	}
	_, err := b.Request(t.Context(), engine.Request{Stack: store.Stack{Name: "fresh", Lineage: "another"}})
	var bad *store.StackError
	if !errors.As(err, &bad) {
		t.Errorf("got %v, want a StackError", err)
	}
	if got := snapshot(t, b).Stacks["fresh"].Lineage; got != lineage {
		t.Error("the lineage changed")
	}
}

func TestRequestErrorCountsTheRest(t *testing.T) {
	err := &engine.RequestError{Faults: []engine.Fault{{Summary: "a is wrong"}, {Summary: "b"}}}
	if !strings.HasSuffix(err.Error(), "a is wrong (and 1 more)") {
		t.Error(err)
	}
}
