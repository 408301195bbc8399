package config

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// resolver turns the references of one object into names.
type resolver struct {
	inst       *instance
	evaluation *evaluation
	implied    []implied
}

// implied is an outer key part, such as the tenant, that a reference given as an object has.
type implied struct {
	part    string // the attribute of both objects
	value   cty.Value
	attr    string
	address string
	rng     hcl.Range
}

// resolve returns the name or names that the value of a reference stands for.
func (r *resolver) resolve(a *schema.Attr, v cty.Value) cty.Value {
	expr := hcl.Expression(nil)
	if attr, ok := r.inst.block.attrs[a.Name]; ok {
		expr = attr.Expr
	}
	top, marks := v.Unmark()
	switch {
	case top.IsNull():
		return cty.NullVal(a.Type)
	case !v.IsKnown():
		return cty.UnknownVal(a.Type)
	case !a.Set():
		return r.one(a, v, nil, expr, r.inst.attrRange(a.Name))
	}
	t := top.Type()
	if !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		r.inst.failAttr(a.Name, "Invalid reference", "%s takes a list of %ss, as in [%s.LABEL].%s",
			a.Name, a.Ref, a.Ref, r.hint(v))
		return cty.UnknownVal(a.Type)
	}
	var names []cty.Value
	var candidates []objectMark
	if t.IsSetType() { // whose elements have lost theirs
		candidates = marksOf(v)
	}
	whole, elements := r.inst.attrRange(a.Name), elementsOf(expr)
	i := 0
	for it := top.ElementIterator(); it.Next(); i++ {
		_, item := it.Element()
		if _, secret := marks[sensitiveMark{}]; secret {
			item = item.Mark(sensitiveMark{}).WithMarks(selfMarks(v))
		}
		rng, element := whole, hcl.Expression(nil)
		if i < len(elements) {
			rng, element = elements[i].Range(), elements[i]
		}
		names = append(names, r.one(a, item, candidates, element, rng))
	}
	if len(names) == 0 {
		return cty.SetValEmpty(cty.String)
	}
	return cty.SetVal(names)
}

// elementsOf returns the elements of an expression that is a plain list.
func elementsOf(expr hcl.Expression) []hcl.Expression {
	if expr == nil {
		return nil
	}
	elements, diags := hcl.ExprList(expr)
	if diags.HasErrors() {
		return nil
	}
	return elements
}

// one returns the name that one reference stands for. candidates are the objects it may be, when the
// value's own marks were lost in a set; expr may be nil.
func (r *resolver) one(
	a *schema.Attr, v cty.Value, candidates []objectMark, expr hcl.Expression, rng hcl.Range,
) cty.Value {
	if isSensitive(v) {
		r.inst.secret[a.Name] = true
		r.inst.refuseEphemeral(a.Name, selfMarks(v))
	}
	if target := r.whole(v, expr); target != nil {
		return r.target(a, target, rng)
	}
	candidates = append(marksOf(v), candidates...)
	plain, _ := v.UnmarkDeep()
	switch {
	case plain.IsNull():
		r.inst.fail(rng, "Invalid reference", "A null is not allowed here.")
	case !plain.IsWhollyKnown():
		return cty.UnknownVal(cty.String)
	case plain.Type() == cty.String:
		return plain
	case plain.Type().IsObjectType():
		return r.object(a, plain, candidates, rng)
	default:
		r.inst.fail(rng, "Invalid reference", "%s takes a %s or its name, and this is a %s.",
			a.Name, a.Ref, plain.Type().FriendlyName())
	}
	return cty.UnknownVal(cty.String)
}

func (r *resolver) object(a *schema.Attr, plain cty.Value, candidates []objectMark, rng hcl.Range) cty.Value {
	target := r.find(plain, candidates)
	if target == nil {
		r.inst.fail(rng, "Invalid reference", "%s takes a %s or its name, and this is an object that no block "+
			"declares.%s", a.Name, a.Ref, severalHint(candidates, a))
		return cty.UnknownVal(cty.String)
	}
	return r.target(a, target, rng)
}

// target returns the name of an object that is referred to, and remembers what that implies.
func (r *resolver) target(a *schema.Attr, target *instance, rng hcl.Range) cty.Value {
	if target.block.kind.Name != a.Ref {
		r.inst.fail(rng, "Reference to another kind", "%s takes a %s, and %s is a %s.",
			a.Name, a.Ref, target.object.Address, target.block.kind.Name)
		return cty.UnknownVal(cty.String)
	}
	key := target.block.kind.Key
	for _, part := range key[:len(key)-1] {
		if _, ok := r.inst.block.kind.Attr(part); ok {
			r.implied = append(r.implied, implied{part, target.plain.GetAttr(part), a.Name, target.object.Address, rng})
		}
	}
	return target.plain.GetAttr(key[len(key)-1])
}

// whole returns the instance whose value this is as others see it, or nil. Values need not be compared where
// the expression is nothing but the object.
func (r *resolver) whole(v cty.Value, expr hcl.Expression) *instance {
	top, marks := v.Unmark()
	var candidates, named []*instance
	block := r.blockOf(expr)
	for m := range marks {
		object, ok := m.(objectMark)
		if !ok {
			continue
		}
		inst := r.evaluation.instances[object.address]
		candidates = append(candidates, inst)
		if inst.block == block && inst.evaluation == r.evaluation && inst.plain != cty.NilVal {
			named = append(named, inst)
		}
	}
	if len(named) == 1 { // of several, some only gave the key
		return named[0]
	}
	for _, inst := range candidates {
		if inst.shown != cty.NilVal && inst.shown.RawEquals(top) {
			return inst
		}
	}
	return nil
}

// blockOf returns the block of which the expression is one whole object, or nil.
func (r *resolver) blockOf(expr hcl.Expression) *block {
	steps := 0
	if index, ok := expr.(*hclsyntax.IndexExpr); ok {
		expr, steps = index.Collection, 1
	}
	traversal, ok := expr.(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return nil
	}
	steps += len(traversal.Traversal)
	name, _ := stepName(traversal.Traversal, 1)
	b := r.evaluation.module.blockOf[node{traversal.Traversal.RootName(), name}]
	if b == nil || b.forEach == nil && steps != 2 || b.forEach != nil && steps != 3 {
		return nil
	}
	return b
}

// find returns the instance whose whole value this is: an object changed on the way, by merge() for
// one, still has the mark but is no longer that object.
func (r *resolver) find(plain cty.Value, candidates []objectMark) *instance {
	for _, m := range candidates {
		inst := r.evaluation.instances[m.address]
		if inst.plain != cty.NilVal && inst.plain.RawEquals(plain) {
			return inst
		}
	}
	return nil
}

// hint says how to make a list of what is not one.
func (r *resolver) hint(v cty.Value) string {
	marks := marksOf(v)
	plain, _ := v.UnmarkDeep()
	switch {
	case len(marks) == 0 || !plain.Type().IsObjectType():
		return ""
	case r.find(plain, marks) != nil:
		return fmt.Sprintf(" For the one object, write [%s].", marks[0].address)
	}
	return fmt.Sprintf(" For all objects of the block, write values(%s).", marks[0].block)
}

// severalHint explains the objects of a block with for_each, of which one is wanted.
func severalHint(candidates []objectMark, a *schema.Attr) string {
	for _, m := range candidates {
		if m.kind == a.Ref && m.address != m.block {
			return fmt.Sprintf(" %s has for_each: choose one of its objects, as in %s.", m.block, m.address)
		}
	}
	return ""
}

// imply fills in the outer key parts that are not written, and refuses references that disagree.
func (r *resolver) imply(attrs map[string]cty.Value) {
	inst := r.inst
	for _, im := range r.implied {
		have := attrs[im.part]
		switch {
		case !have.IsKnown():
		case im.value.IsNull():
			inst.fail(im.rng, "References disagree", "%s belongs to no %s, so nothing of a %s can refer to it.",
				im.address, im.part, im.part)
		case have.IsNull():
			attrs[im.part] = im.value
		case schema.Fold(have.AsString()) != schema.Fold(im.value.AsString()):
			inst.fail(im.rng, "References disagree", "%s is of %s %s, but %s. An object refers only to objects of its own %s.",
				im.address, im.part, valueString(im.value), r.source(im.part, have), im.part)
		}
	}
}

// source says where a key part that is in place comes from.
func (r *resolver) source(part string, have cty.Value) string {
	if _, written := r.inst.block.attrs[part]; !written {
		for _, im := range r.implied {
			if im.part == part {
				return fmt.Sprintf("%s is of %s %s (at %s)", im.address, part, valueString(im.value), im.rng)
			}
		}
	}
	return fmt.Sprintf("%s says %s (at %s)", part, valueString(have), r.inst.attrRange(part))
}
