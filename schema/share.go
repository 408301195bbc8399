package schema

import "github.com/zclconf/go-cty/cty"

// Shared returns a value of the kind that has its type in common with others. cty makes a type for each object
// value, which takes as much memory as the value; an estate holds many thousands. The elements of a list
// have one type.
func (k *Kind) Shared(v cty.Value) cty.Value {
	if !v.Type().Equals(k.Type()) {
		return v
	}
	it := cty.ListVal([]cty.Value{cty.NullVal(k.Type()), v}).ElementIterator()
	it.Next()
	it.Next()
	_, shared := it.Element()
	return shared
}
