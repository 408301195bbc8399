package plan_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// present is JSON without what stands for nothing, so that what is left out and what is null are the same.
func present(t *testing.T, raw []byte) any {
	t.Helper()
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	return dense(tree)
}

func dense(tree any) any {
	switch v := tree.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, item := range v {
			if item != nil && item != false {
				out[name] = dense(item)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = dense(v[i])
		}
		return out
	}
	return tree
}

// Expressions see what programs read: the value of a document has its JSON, and is unknown where that withholds.
func TestDocumentValueIsItsJSON(t *testing.T) {
	d, err := plan.NewDocument(fullPlan(t), "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Value()
	if err != nil {
		t.Fatal(err)
	}
	unknown := 0
	shown, err := cty.Transform(v, func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if !v.IsKnown() {
			unknown++
			return cty.NullVal(cty.DynamicPseudoType), nil
		}
		return v, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(ctyjson.SimpleJSONValue{Value: shown})
	if err != nil {
		t.Fatal(err)
	}
	want, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(present(t, want), present(t, got)); diff != "" {
		t.Errorf("the value is not the document (-document +value):\n%s", diff)
	}
	if unknown == 0 {
		t.Error("the plan withholds nothing, so that this test has nothing to see")
	}
}

// A change has every attribute of its kind, null where it is not written, and its defaults in place beside it.
func TestDocumentValueOfChange(t *testing.T) {
	pool := kind(t, "pool")
	spec := decode(t, pool, []byte(`{"tenant":"acme","name":"bi","tenant_db":"sales","memory":"2GiB","nodes":{"dual":9}}`))
	d, err := plan.NewDocument(&plan.Plan{Stack: "s", Changes: []plan.Change{{
		Action: plan.Create, ID: "p", Kind: pool, Address: "pool.bi", Addr: pool.Addr(spec), Spec: spec, Applied: spec,
		Sensitive: []string{"memory"},
	}}}, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := d.Value()
	if err != nil {
		t.Fatal(err)
	}
	change := v.GetAttr("resource_changes").AsValueSlice()[0].GetAttr("change")
	after, effective := change.GetAttr("after"), change.GetAttr("effective")
	for what, ok := range map[string]bool{
		"before is null":               change.GetAttr("before").IsNull() && change.GetAttr("before").Type().HasAttribute("threads"),
		"threads are not written":      after.GetAttr("threads").IsNull(),
		"threads have a default":       effective.GetAttr("threads").RawEquals(cty.NumberIntVal(2)),
		"nodes have theirs":            effective.GetAttr("nodes").GetAttr("read").RawEquals(cty.Zero),
		"memory is withheld":           !after.GetAttr("memory").IsKnown() && !effective.GetAttr("memory").IsKnown(),
		"that memory is written shows": after.GetAttr("memory").NotEqual(cty.NullVal(cty.String)).RawEquals(cty.True),
	} {
		if !ok {
			t.Errorf("%s: not so in %s", what, change.GoString())
		}
	}
}

// The example has a change of each kind, so that whatever a rule says of one can be tried.
func TestExampleHasEveryKind(t *testing.T) {
	v, err := plan.Example()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, c := range v.GetAttr("resource_changes").AsValueSlice() {
		seen[c.GetAttr("kind").AsString()]++
		if after := c.GetAttr("change").GetAttr("after"); !after.IsNull() && !after.Type().HasAttribute("tenant") && c.GetAttr("kind").AsString() != "tenant" {
			t.Error("an object has no attributes")
		}
	}
	for _, k := range schema.Kinds() {
		if seen[k.Name] < 4 {
			t.Errorf("%s has %d changes", k.Name, seen[k.Name])
		}
	}
}
