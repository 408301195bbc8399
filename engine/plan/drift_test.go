package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// sample returns one of two values of a type.
func sample(t cty.Type, second bool) cty.Value {
	switch {
	case t == cty.String && second:
		return cty.StringVal("two")
	case t == cty.String:
		return cty.StringVal("one")
	case t == cty.Number && second:
		return cty.NumberIntVal(2)
	case t == cty.Number:
		return cty.NumberIntVal(1)
	case t == cty.Bool:
		return cty.BoolVal(second)
	case t.IsSetType():
		return cty.SetVal([]cty.Value{sample(t.ElementType(), second)})
	}
	attrs := map[string]cty.Value{}
	for name, at := range t.AttributeTypes() {
		attrs[name] = sample(at, second)
	}
	return cty.ObjectVal(attrs)
}

// Whatever attribute or block of whatever kind somebody changes, adds or takes out: it is drift, in a plan of
// any kind, and a refresh-only plan takes exactly it as applied.
func TestEveryAttributeDrifts(t *testing.T) {
	for _, k := range schema.Kinds() {
		base := k.Empty().AsValueMap()
		for _, part := range []string{"tenant", "name", "pool", "user"} {
			if _, ok := k.Attr(part); ok {
				base[part] = cty.StringVal("one")
			}
		}
		for name, at := range k.Type().AttributeTypes() {
			for what, values := range map[string][2]cty.Value{
				"changed": {sample(at, false), sample(at, true)},
				"removed": {sample(at, true), cty.NullVal(at)},
			} {
				t.Run(k.Name+"/"+name+"/"+what, func(t *testing.T) {
					testDrift(t, k, name, cty.ObjectVal(base), values[0], values[1])
				})
			}
		}
	}
}

func testDrift(t *testing.T, k *schema.Kind, name string, base, last, stored cty.Value) {
	with := func(v cty.Value) cty.Value {
		attrs := base.AsValueMap()
		attrs[name] = v
		return cty.ObjectVal(attrs)
	}
	in := plan.Input{
		Stack:       "s",
		Desired:     schema.Desired{Objects: []schema.Object{{Kind: k, Address: k.Name + ".x", Value: with(last)}}},
		Actual:      []plan.Actual{{ID: "1", Kind: k, Address: k.Name + ".x", Stack: "s", Spec: with(stored), Applied: with(last)}},
		NewID:       func() string { return "new" },
		Fingerprint: func(_, _, secret string) string { return secret },
	}
	for _, mode := range []plan.Mode{plan.Normal, plan.RefreshOnly} {
		in.Mode = mode
		p := plan.Build(in)
		if len(p.Drift) != 1 || p.Drift[0].Attr.Name != name || !p.Drift[0].Attr.Before.RawEquals(last) || !p.Drift[0].Attr.After.RawEquals(stored) {
			t.Fatalf("mode %q: drift is %v", mode, p.Drift)
		}
		if mode != plan.RefreshOnly {
			continue
		}
		if len(p.Changes) != 1 || !p.Changes[0].Spec.RawEquals(with(stored)) || !p.Changes[0].Applied.RawEquals(with(stored)) {
			t.Errorf("refresh-only does %v", p.Changes)
		}
	}
}

// A plan settles the losses that it tells, and those of which nothing is to be told unless it leaves something
// out; what it does not tell although it is so stays to be told.
func TestSettledLosses(t *testing.T) {
	for story, want := range map[string][]string{
		"lost":           {"id-pool.bi", "id-role.owner", "id-group.old"},
		"lost-refresh":   {"id-pool.bi", "id-role.owner"},
		"lost-undesired": {"id-pool.bi"},
		"lost-moved":     {"id-pool.bi"},
		"lost-target":    {"id-role.owner"},
		"lost-replaced":  {"id-old"},
		"lost-destroy":   {"id-pool.bi"},
	} {
		archive, err := txtar.ParseFile("testdata/" + story + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, plan.Build(input(t, archive)).Settled); diff != "" {
			t.Errorf("%s (-want +got):\n%s", story, diff)
		}
	}
}
