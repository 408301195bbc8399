package schema

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// Problem is what is wrong with a value, and where in it. Each surface places it: in HCL as a source
// range, in REST as a path.
type Problem struct {
	Path    cty.Path
	Message string
}

// Complete returns the value with defaults in place, and everything that is wrong with it. A value
// with problems must not be used. What is not known yet is left as it is and not judged.
func (k *Kind) Complete(v cty.Value) (cty.Value, []Problem) { return k.CompleteMap(v.AsValueMap()) }

// CompleteMap is Complete of an object with the given attributes and blocks, of which none may be missing. It
// leaves the map as it is.
func (k *Kind) CompleteMap(written map[string]cty.Value) (cty.Value, []Problem) {
	attrs, problems := complete(k.Attrs, written, nil)
	for i := range k.Blocks {
		b := &k.Blocks[i]
		bv, more := b.complete(written[b.Name])
		attrs[b.Name] = bv
		problems = append(problems, more...)
	}
	out := k.Shared(cty.ObjectVal(attrs))
	if len(problems) == 0 && k.Check != nil && out.IsWhollyKnown() {
		problems = k.Check(out)
	}
	return out, problems
}

func (b *Block) complete(v cty.Value) (cty.Value, []Problem) {
	if !v.IsKnown() {
		return v, nil
	}
	if v.IsNull() {
		if b.Single {
			return v, nil
		}
		return cty.SetValEmpty(b.object()), nil
	}
	if b.Single {
		return b.completeOne(v, cty.GetAttrPath(b.Name))
	}
	var problems []Problem
	var items []cty.Value
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		item, more := b.completeOne(ev, cty.GetAttrPath(b.Name).Index(ev))
		items = append(items, item)
		problems = append(problems, more...)
	}
	if len(items) == 0 {
		return cty.SetValEmpty(b.object()), problems
	}
	return cty.SetVal(items), problems
}

func (b *Block) completeOne(v cty.Value, path cty.Path) (cty.Value, []Problem) {
	if !v.IsKnown() {
		return v, nil
	}
	attrs, problems := complete(b.Attrs, v.AsValueMap(), path)
	out := cty.ObjectVal(attrs)
	if len(problems) == 0 && b.Check != nil && out.IsWhollyKnown() {
		if err := b.Check(out); err != nil {
			problems = append(problems, Problem{Path: path, Message: err.Error()})
		}
	}
	return out, problems
}

// complete does so for attributes. Its result has room for the blocks beside them.
func complete(attrs []Attr, written map[string]cty.Value, path cty.Path) (map[string]cty.Value, []Problem) {
	out := make(map[string]cty.Value, len(written))
	var problems []Problem
	fail := func(a *Attr, message string) {
		problems = append(problems, Problem{append(path.Copy(), cty.GetAttrStep{Name: a.Name}), message})
	}
	for i := range attrs {
		a := &attrs[i]
		av := written[a.Name]
		switch {
		case av.IsNull() && a.Default != cty.NilVal:
			av = a.Default
		case av.IsNull() && a.Mode == Required:
			fail(a, fmt.Sprintf("%s is required", a.Name))
		case av.IsNull() && a.Set():
			av = cty.SetValEmpty(a.Type.ElementType())
		case av.IsNull(), !av.IsWhollyKnown():
		default:
			if err := a.check(av); err != nil {
				fail(a, err.Error())
			}
		}
		out[a.Name] = av
	}
	return out, problems
}

// Empty returns the value of a kind in which nothing is written.
func (k *Kind) Empty() cty.Value {
	types := k.Type().AttributeTypes()
	attrs := make(map[string]cty.Value, len(types))
	for name, t := range types {
		attrs[name] = cty.NullVal(t)
	}
	return cty.ObjectVal(attrs)
}
