package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// simulated is what a store would have: references are kept by id, and follow when their target is renamed.
type simulated struct {
	objects []plan.Actual
	made    int
}

func (w *simulated) plan(objects []schema.Object, s plan.Selection, mode plan.Mode) *plan.Plan {
	return plan.Build(plan.Input{
		Stack: "s", Mode: mode, Selection: s, Desired: schema.Desired{Objects: objects}, Actual: w.objects,
		NewID:       func() string { w.made++; return fmt.Sprint("id-", w.made) },
		Fingerprint: func(id, _, secret string) string { return id + secret },
	})
}

// run plans and applies, and reports whether the plan had no error.
func (w *simulated) run(t *testing.T, seed uint64, objects []schema.Object, s plan.Selection, mode plan.Mode) bool {
	t.Helper()
	p := w.plan(objects, s, mode)
	if p.Failed() {
		return false
	}
	before := slices.Clone(w.objects)
	w.apply(t, p)
	if t.Failed() {
		t.Fatalf("seed %d, selection %v:\nbefore: %v\n%s", seed, s, before, render(t, p))
	}
	return true
}

func (w *simulated) apply(t *testing.T, p *plan.Plan) {
	t.Helper()
	ids, written, gone := w.ids(), map[string]bool{}, map[string]bool{}
	links := map[string][]string{} // id → ids it refers to
	for _, o := range w.objects {
		for _, ref := range o.Kind.Refs(o.Spec) {
			links[o.ID] = append(links[o.ID], ids[ref.To])
		}
	}
	checkDoing(t, p, links)
	old := w.objects
	var after []plan.Actual
	for _, c := range p.Changes {
		written[c.ID] = true
		if c.Action == plan.Delete || c.Action == plan.Replace {
			gone[c.ID] = true
		}
		if c.Action == plan.Delete {
			continue
		}
		o := plan.Actual{ID: c.ID, Kind: c.Kind, Spec: c.Spec, Applied: c.Applied, Address: c.Address, Stack: "s", Protected: c.Protected}
		if c.NewID != "" {
			o.ID = c.NewID
		}
		after = append(after, o)
	}
	renamed := map[schema.Addr]cty.Value{}
	for _, o := range after {
		if i := slices.IndexFunc(old, func(a plan.Actual) bool { return a.ID == o.ID }); i >= 0 && o.Kind.Name != "pool_grant" {
			renamed[old[i].Addr()] = o.Spec.GetAttr("name")
		}
	}
	for _, o := range old {
		if written[o.ID] {
			continue
		}
		for _, id := range links[o.ID] {
			if gone[id] {
				t.Errorf("%s is left with a reference to what is gone", o.Addr())
			}
		}
		o.Spec, o.Applied = followed(o.Kind, o.Spec, renamed), followed(o.Kind, o.Applied, renamed)
		after = append(after, o)
	}
	w.objects = after
	w.check(t)
}

func (w *simulated) ids() map[schema.Addr]string {
	ids := map[schema.Addr]string{}
	for _, o := range w.objects {
		ids[o.Addr()] = o.ID
	}
	return ids
}

// check looks for two objects of one name or block, and for references to nothing.
func (w *simulated) check(t *testing.T) {
	t.Helper()
	ids, blocks := w.ids(), map[string]bool{}
	if len(ids) != len(w.objects) {
		t.Errorf("%d objects have %d names", len(w.objects), len(ids))
	}
	for _, o := range w.objects {
		if blocks[o.Address] {
			t.Errorf("%s is there twice", o.Address)
		}
		blocks[o.Address] = true
		for _, ref := range o.Kind.Refs(o.Spec) {
			if ids[ref.To] == "" {
				t.Errorf("%s refers to %s, which is not there", o.Addr(), ref.To)
			}
		}
	}
}

// checkDoing checks the order: what is made before what refers to it, what goes after what referred to it.
func checkDoing(t *testing.T, p *plan.Plan, links map[string][]string) {
	t.Helper()
	at, made := map[string]int{}, map[schema.Addr]int{}
	for i, c := range p.Changes {
		at[c.ID] = i
		if c.Action == plan.Create || c.Action == plan.Replace {
			made[c.Addr] = i
		}
	}
	for i, c := range p.Changes {
		refers := map[string]bool{}
		if c.Spec != cty.NilVal {
			for _, ref := range c.Kind.Refs(c.Spec) {
				if made, ok := made[ref.To]; ok && made > i {
					t.Errorf("%s is written before %s, to which it refers", c.Addr, ref.To)
				}
				refers[ref.To.String()] = true
			}
		}
		for _, id := range links[c.ID] {
			j, changes := at[id]
			if changes && p.Changes[j].Action == plan.Delete && j < i {
				t.Errorf("%s goes before %s lets go of it", p.Changes[j].Addr, c.Addr)
			}
		}
	}
}

func followed(k *schema.Kind, v cty.Value, renamed map[schema.Addr]cty.Value) cty.Value {
	attrs := v.AsValueMap()
	sets := map[string][]cty.Value{}
	for _, ref := range k.Refs(v) {
		name := cty.StringVal(ref.To.Name())
		if now, ok := renamed[ref.To]; ok {
			name = now
		}
		if a, _ := k.Attr(ref.Attr); a.Set() {
			sets[ref.Attr] = append(sets[ref.Attr], name)
			continue
		}
		attrs[ref.Attr] = name
	}
	for attr, names := range sets {
		attrs[attr] = cty.SetVal(names)
	}
	return cty.ObjectVal(attrs)
}
