package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
)

// back plans the way to a revision.
func (p *past) back(rev store.Revision) *plan.Plan {
	p.Helper()
	snap := p.snapshot()
	desired, problems := history.Past{Stack: "s", Revision: rev, Now: snap.Objects, Then: p.at(rev), AllowEmpty: true}.Desired()
	var actual []plan.Actual
	for _, o := range snap.Objects {
		actual = append(actual, plan.Actual{
			ID: o.ID, Kind: o.Kind, Spec: o.Spec, Applied: o.Applied, Address: o.Address, Stack: o.Stack,
			Revision: int64(o.Revision), Tombstone: o.Tombstone, Protected: o.Protected,
		})
	}
	built := plan.Build(plan.Input{
		Stack: "s", Desired: desired, Actual: actual, NewID: uuid.NewString,
		Fingerprint: func(id, attr, _ string) string {
			p.Errorf("secret %s of %s is written", attr, id)
			return ""
		},
	})
	built.Problems = append(problems, built.Problems...)
	return built
}

// carry commits a plan.
func (p *past) carry(built *plan.Plan) {
	p.Helper()
	if built.Failed() {
		p.Fatalf("the plan failed: %+v", built.Problems)
	}
	var writes []store.Write
	for _, c := range built.Changes {
		w := store.Write{
			ID: c.ID, Kind: c.Kind, Saw: store.Revision(c.Saw), Spec: c.Spec, Applied: c.Applied, Address: c.Address, Stack: "s",
			Protected: c.Protected,
		}
		switch c.Action {
		case plan.Delete:
			w.Op = store.Remove
		case plan.Replace:
			writes = append(writes, store.Write{Op: store.Remove, ID: c.ID, Kind: c.Kind, Saw: store.Revision(c.Saw)})
			w.ID, w.Saw = c.NewID, 0
		}
		writes = append(writes, w)
	}
	if len(writes) > 0 {
		p.commit(writes...)
	}
}

// values are the objects of the stack without what a rollback leaves alone.
func (p *past) values(objects []store.Object) []string {
	var out []string
	for _, o := range objects {
		if o.Stack != "s" || o.Tombstone {
			continue
		}
		attrs := o.Spec.AsValueMap()
		for _, a := range o.Kind.Attrs {
			if a.Secret {
				attrs[a.Name] = cty.NullVal(a.Type)
			}
		}
		o.Spec = cty.ObjectVal(attrs)
		out = append(out, o.Kind.Name+encoded(p, o))
	}
	slices.Sort(out)
	return out
}

// Wherever a stack has been, it can be brought back there, and from there on again.
func TestRollbackGoesAnywhere(t *testing.T) {
	refused := 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p, r := newPast(t), rand.New(rand.NewPCG(seed, 1))
			p.commit(storetest.New(t, "tenant", `{"name":"acme"}`), storetest.New(t, "tenant", `{"name":"beta"}`))
			var revs []store.Revision
			for range 25 {
				if p.live(r) {
					revs = append(revs, p.snapshot().Revision)
				}
			}
			for range 6 {
				rev := revs[r.IntN(len(revs))]
				then := p.at(rev)
				built := p.back(rev)
				if built.Failed() {
					refused++
					continue
				}
				p.carry(built)
				if diff := cmp.Diff(p.values(then), p.values(without(p.snapshot().Objects, then))); diff != "" {
					t.Fatalf("back at revision %d (-want +got):\n%s", rev, diff)
				}
				if again := p.back(rev); len(again.Changes) > 0 {
					t.Fatalf("a second rollback to revision %d: %+v", rev, again.Changes)
				}
			}
		})
	}
	t.Logf("%d of 240 refused", refused)
	if refused > 60 {
		t.Errorf("%d of 240 rollbacks were refused", refused)
	}
}

// without leaves out what was of another stack then, or of none: a rollback keeps that as it is.
func without(now, then []store.Object) []store.Object {
	return slices.DeleteFunc(slices.Clone(now), func(n store.Object) bool {
		return slices.ContainsFunc(then, func(o store.Object) bool { return o.ID == n.ID && o.Stack != "s" && !o.Tombstone })
	})
}

// live changes something of the stack, and reports whether that was possible.
func (p *past) live(r *rand.Rand) bool {
	objects := p.snapshot().Objects
	o := objects[r.IntN(len(objects))]
	name := func() string { return fmt.Sprintf("n%d", r.IntN(5)) }
	tenant := objects[r.IntN(2)].Addr().Name()
	var writes []store.Write
	switch r.IntN(7) {
	case 0:
		writes = append(writes, storetest.New(p, "role", `{"tenant":"`+tenant+`","name":"`+name()+`"}`))
	case 1:
		w := storetest.New(p, "user", fmt.Sprintf(`{"tenant":%q,"name":%q,"password":"hmac:%d","roles":[%q]}`, tenant, name(), r.IntN(3), name()))
		writes = append(writes, w)
	case 2:
		writes = append(writes, store.Write{Op: store.Remove, ID: o.ID, Kind: o.Kind, Saw: o.Revision})
		if o.Kind.Name == "tenant" {
			return false
		}
	case 3: // forget
		if o.Kind.Name == "tenant" {
			return false
		}
		writes = append(writes, store.Write{ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: o.Spec})
	case 4: // swap two tenants
		a, b := objects[0], objects[1]
		writes = append(writes, storetest.Next(p, a, `{"name":"`+b.Addr().Name()+`"}`), storetest.Next(p, b, `{"name":"`+a.Addr().Name()+`"}`))
	default:
		if o.Stack != "s" || o.Kind.Name == "tenant" {
			return false
		}
		raw := encoded(p, o)
		at := strings.Index(raw, `"name":"`) + len(`"name":"`)
		w := storetest.Next(p, o, raw[:at]+name()+raw[at+strings.Index(raw[at:], `"`):])
		if r.IntN(2) == 0 {
			w.Address = fmt.Sprintf("%s.x%d", o.Kind.Name, r.IntN(8))
		}
		writes = append(writes, w)
	}
	for i := range writes {
		if w := &writes[i]; strings.Contains(w.Address, "/") {
			w.Address = fmt.Sprintf("%s.x%d", w.Kind.Name, r.IntN(8))
		}
	}
	_, err := p.store.Commit(p.Context(), store.Change{Writes: writes})
	return err == nil
}
