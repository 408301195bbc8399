package provider

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// same reports whether two values of an attribute or block mean the same: with defaults in place, and names without
// regard to case. What is unknown is never the same.
func (r *kindResource) same(name string, a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal || !a.IsWhollyKnown() || !b.IsWhollyKnown() {
		return false
	}
	if attr, ok := r.kind.Attr(name); ok {
		return sameAttr(attr, attr.Ref != "" || r.kind.Identifies(name), a, b)
	}
	a, b = r.completed(name, a), r.completed(name, b)
	return a.RawEquals(b)
}

func sameAttr(attr *schema.Attr, names bool, a, b cty.Value) bool {
	if fallback, has := defaultOf(attr); has {
		a, b = orDefault(a, fallback), orDefault(b, fallback)
	}
	if names {
		a, b = folded(a), folded(b)
	}
	return a.RawEquals(b)
}

func orDefault(v, fallback cty.Value) cty.Value {
	if v.IsNull() {
		return fallback
	}
	return v
}

func folded(v cty.Value) cty.Value {
	switch {
	case v.IsNull():
		return v
	case v.Type() == cty.String:
		return cty.StringVal(schema.Fold(v.AsString()))
	case v.Type().IsSetType() && v.LengthInt() > 0:
		items := v.AsValueSlice()
		for i := range items {
			items[i] = folded(items[i])
		}
		return cty.SetVal(items)
	}
	return v
}

// completed returns a block with the defaults that its kind gives it.
func (r *kindResource) completed(name string, v cty.Value) cty.Value {
	attrs := r.kind.Empty().AsValueMap()
	attrs[name] = v
	whole, _ := r.kind.CompleteMap(attrs)
	return whole.GetAttr(name)
}
