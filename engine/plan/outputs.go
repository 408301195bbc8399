package plan

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// outputs compares the outputs with those of the last apply. A plan that leaves something out leaves
// them alone, and a request does: they are results of the whole.
func (b *builder) outputs() {
	if b.plan.Partial || b.in.Mode == RefreshOnly || b.asked() {
		return
	}
	b.plan.Result = []schema.Output{}
	before, after := map[string]schema.Output{}, map[string]schema.Output{}
	var names []string
	for _, o := range b.in.Outputs {
		before[o.Name] = o
		names = append(names, o.Name)
	}
	if b.in.Mode != Destroy {
		b.plan.Result = append(b.plan.Result, b.in.Desired.Outputs...)
		for _, o := range b.in.Desired.Outputs {
			after[o.Name] = o
			names = append(names, o.Name)
		}
	}
	slices.SortFunc(b.plan.Result, func(x, y schema.Output) int { return cmp.Compare(x.Name, y.Name) })
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		b.output(name, before, after)
	}
}

func (b *builder) output(name string, before, after map[string]schema.Output) {
	was, had := before[name]
	now, has := after[name]
	c := OutputChange{Name: name, Before: cty.NilVal, After: cty.NilVal, Sensitive: was.Sensitive || now.Sensitive}
	if had {
		c.Before = was.Value
	}
	if has {
		c.After = now.Value
	}
	if has && now.Sensitive {
		c.After = cty.StringVal(b.in.FingerprintOutput(name, now.Value))
	}
	if had && has && was.Sensitive == now.Sensitive && sameOutput(c.Before, c.After) {
		return
	}
	// What was sensitive or becomes it is not shown on either side.
	if had && !was.Sensitive && c.Sensitive {
		c.Before = cty.StringVal(b.in.FingerprintOutput(name, was.Value))
	}
	if has && !now.Sensitive && c.Sensitive {
		c.After = cty.StringVal(b.in.FingerprintOutput(name, now.Value))
	}
	b.plan.Outputs = append(b.plan.Outputs, c)
}

// sameOutput reports whether whoever reads an output sees the same: a set and a list of the same elements
// are.
func sameOutput(a, b cty.Value) bool {
	if a.RawEquals(b) {
		return true
	}
	if !a.IsWhollyKnown() || !b.IsWhollyKnown() {
		return false
	}
	before, err := json.Marshal(ctyjson.SimpleJSONValue{Value: a})
	if err != nil {
		return false
	}
	after, err := json.Marshal(ctyjson.SimpleJSONValue{Value: b})
	return err == nil && bytes.Equal(before, after)
}
