package config

import (
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

// Desired is what a configuration asks for.
type Desired struct {
	// Stack owns the objects; StackRange is where its name is written.
	Stack      string
	StackRange hcl.Range
	schema.Desired

	files     map[string]*hcl.File
	instances map[string]*instance
	root      *evaluation // for Value
}

// Files returns the sources of all ranges by file name, for [WriteDiagnostics]: configuration, var
// files, and a file `<value for var.x>` for each value that was given as text.
func (d *Desired) Files() map[string]*hcl.File { return maps.Clone(d.files) }

// Range returns where the object at an address says what is at path: the argument's expression or the
// nested block. It is the header of the object's block when the path is empty or not written, and the
// zero range when there is no such object.
func (d *Desired) Range(address string, path cty.Path) hcl.Range {
	inst, ok := d.instances[address]
	if !ok {
		return hcl.Range{}
	}
	return inst.rangeOf(inst.object.Value, path)
}

func (inst *instance) header() hcl.Range { return inst.block.header }

// keyRange is where the object gets its name from.
func (inst *instance) keyRange() hcl.Range {
	if attr, ok := inst.block.attrs["name"]; ok {
		return attr.Expr.Range()
	}
	if inst.block.forEach != nil {
		return inst.block.forEach.Range()
	}
	return inst.header()
}

// attrRange is the range of an argument's expression, or of the block's header when it is not written.
func (inst *instance) attrRange(name string) hcl.Range {
	if attr, ok := inst.block.attrs[name]; ok {
		return attr.Expr.Range()
	}
	return inst.header()
}

func (inst *instance) rangeOf(value cty.Value, path cty.Path) hcl.Range {
	if len(path) == 0 {
		return inst.header()
	}
	first, ok := path[0].(cty.GetAttrStep)
	if !ok {
		return inst.header()
	}
	spec, isBlock := inst.block.kind.Block(first.Name)
	if !isBlock {
		return inst.attrRange(first.Name)
	}
	nested, rest := inst.nestedBlock(spec, path[1:])
	if nested == nil {
		return inst.header()
	}
	if len(rest) > 0 {
		if step, ok := rest[0].(cty.GetAttrStep); ok {
			if attr, written := inst.arguments(nested)[step.Name]; written {
				return attr.Expr.Range()
			}
		}
	}
	return header(nested)
}

// arguments returns what is written in a nested block.
func (inst *instance) arguments(nested *hcl.Block) hcl.Attributes {
	s, known := inst.block.form.nested[nested.Type]
	if !known {
		return nil
	}
	content, _, _ := nested.Body.PartialContent(s)
	return content.Attributes
}

// nestedBlock returns the nested block that path leads to, and the rest of the path inside it. An
// index step is an element of the set, which has no other identity than its value.
func (inst *instance) nestedBlock(spec *schema.Block, path cty.Path) (*hcl.Block, cty.Path) {
	var element cty.Value
	if !spec.Single && len(path) > 0 {
		if step, ok := path[0].(cty.IndexStep); ok {
			element, path = step.Key, path[1:]
		}
	}
	var first *hcl.Block
	for _, b := range inst.blocks {
		if b.Type != spec.Name {
			continue
		}
		if first == nil {
			first = b
		}
		if element != cty.NilVal && inst.decodesTo(b, element) {
			return b, path
		}
	}
	return first, path
}

func (inst *instance) decodesTo(b *hcl.Block, element cty.Value) bool {
	v, diags := hcldec.Decode(b.Body, inst.block.form.nestedSpec(b.Type), inst.ctx)
	if diags.HasErrors() {
		return false
	}
	v, _ = v.UnmarkDeep()
	v, err := convert.Convert(v, element.Type())
	return err == nil && v.RawEquals(element)
}
