package schema

import "github.com/zclconf/go-cty/cty"

// NameOf returns the innermost part of an object's key as it is written, or "" for a kind that nothing can
// refer to.
func (k *Kind) NameOf(v cty.Value) string {
	last := k.Key[len(k.Key)-1]
	if _, ok := k.Attr(last); !ok || v.GetAttr(last).IsNull() {
		return ""
	}
	return v.GetAttr(last).AsString()
}

// Renames are new names of what an object refers to, by attribute and folded old name: two objects may swap
// theirs.
type Renames map[string]map[string]string

// Add has references of an attribute that say old say now.
func (n Renames) Add(attr, old, now string) {
	if n[attr] == nil {
		n[attr] = map[string]string{}
	}
	n[attr][Fold(old)] = now
}

// Apply returns an object's value with the new names. All its attributes that are renamed hold something.
func (n Renames) Apply(v cty.Value) cty.Value {
	if len(n) == 0 {
		return v
	}
	attrs := v.AsValueMap()
	for attr, by := range n {
		attrs[attr] = renamed(attrs[attr], by)
	}
	return cty.ObjectVal(attrs)
}

func renamed(v cty.Value, by map[string]string) cty.Value {
	if v.Type().IsSetType() {
		items := v.AsValueSlice()
		for i := range items {
			items[i] = renamed(items[i], by)
		}
		return cty.SetVal(items)
	}
	if now, ok := by[Fold(v.AsString())]; ok {
		return cty.StringVal(now)
	}
	return v
}
