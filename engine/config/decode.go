package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

// decode returns what is written, in the types of the kind's spec.
func (inst *instance) decode() (map[string]cty.Value, hcl.Diagnostics) {
	if written, ok := inst.decodeSound(); ok {
		return written, nil
	}
	decoded, diags := hcldec.Decode(inst.body, inst.block.spec, inst.ctx)
	return decoded.AsValueMap(), diags
}

// decodeSound does what hcldec does for a body with nothing wrong in it, and declines others: most of an estate
// is decoded here.
func (inst *instance) decodeSound() (map[string]cty.Value, bool) {
	b := inst.block
	if !b.sound {
		return nil, false
	}
	written, ok := inst.decodeArguments(b.attrs, b.form.spec)
	if !ok {
		return nil, false
	}
	for i := range b.kind.Blocks {
		nested := &b.kind.Blocks[i]
		value, ok := inst.decodeNested(nested)
		if !ok {
			return nil, false
		}
		if value != cty.NilVal {
			written[nested.Name] = value
		}
	}
	return written, true
}

func (inst *instance) decodeArguments(attrs hcl.Attributes, spec hcldec.ObjectSpec) (map[string]cty.Value, bool) {
	written := make(map[string]cty.Value, len(attrs))
	for name, attr := range attrs {
		value, diags := attr.Expr.Value(inst.ctx)
		if len(diags) > 0 {
			return nil, false
		}
		if want := spec[name].(*hcldec.AttrSpec).Type; want != cty.DynamicPseudoType {
			var err error
			if value, err = convert.Convert(value, want); err != nil {
				return nil, false
			}
		}
		written[name] = value
	}
	return written, true
}

// decodeNested returns the nested block of a type, or the set of them; NilVal where there is none.
func (inst *instance) decodeNested(of *schema.Block) (cty.Value, bool) {
	b := inst.block
	var items []cty.Value
	for _, nested := range b.nested {
		if nested.Type != of.Name {
			continue
		}
		content, diags := nested.Body.Content(b.form.nested[of.Name])
		if len(diags) > 0 {
			return cty.NilVal, false
		}
		written, ok := inst.decodeArguments(content.Attributes, b.form.nestedSpec(of.Name))
		if !ok {
			return cty.NilVal, false
		}
		for j := range of.Attrs {
			if _, is := written[of.Attrs[j].Name]; !is {
				written[of.Attrs[j].Name] = cty.NullVal(of.Attrs[j].Type)
			}
		}
		items = append(items, cty.ObjectVal(written))
	}
	switch {
	case len(items) == 0:
		return cty.NilVal, true
	case of.Single:
		return items[0], len(items) == 1
	case !cty.CanSetVal(items):
		return cty.NilVal, false
	}
	return cty.SetVal(items), true
}
