package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/zclconf/go-cty/cty"
)

// dynamicType is the type of a nested block that stands for any number of blocks of another type.
const dynamicType = "dynamic"

const sensitiveForEach = "Sensitive for_each"

func withDynamic(s *hcl.BodySchema) *hcl.BodySchema {
	out := *s
	out.Blocks = append(s.Blocks[:len(s.Blocks):len(s.Blocks)],
		hcl.BlockHeaderSchema{Type: dynamicType, LabelNames: []string{"type"}})
	return &out
}

// variables lists what the body of a block refers to, without the iterators of its dynamic blocks.
func (b *block) variables() []hcl.Traversal {
	switch {
	case b.sound:
		var out []hcl.Traversal
		for _, attr := range b.attrs {
			out = append(out, attr.Expr.Variables()...)
		}
		for _, nested := range b.nested {
			content, _, _ := nested.Body.PartialContent(b.form.nested[nested.Type])
			for _, attr := range content.Attributes {
				out = append(out, attr.Expr.Variables()...)
			}
		}
		return out
	case !b.dynamic:
		return hcldec.Variables(b.body, b.spec)
	}
	return dynblock.VariablesHCLDec(b.body, b.spec)
}

// expandDynamic replaces the instance's dynamic blocks with the blocks that they stand for.
func (inst *instance) expandDynamic() {
	b := inst.block
	inst.body, inst.blocks = b.body, b.nested
	if !b.dynamic {
		return
	}
	inst.body = dynblock.Expand(b.body, inst.ctx, dynblock.OptCheckForEach(checkDynamic))
	written, _, _ := inst.body.PartialContent(hcldec.ImpliedSchema(b.spec)) // decoding reports what is wrong
	inst.blocks = written.Blocks
}

// checkDynamic keeps secrets out of the number of blocks, which is shown, and out of iterators, whose
// values HCL takes the marks from.
func checkDynamic(v cty.Value, expr hcl.Expression, _ *hcl.EvalContext) hcl.Diagnostics {
	if ephemeral := ephemeralSelf(v); len(ephemeral) > 0 {
		return hcl.Diagnostics{failAt(expr.Range(), sensitiveForEach, "%s", ephemeralDetail("It", ephemeral, nil))}
	}
	if !isSensitive(v) {
		return nil
	}
	return hcl.Diagnostics{failAt(expr.Range(), sensitiveForEach, "How many blocks there are is shown, and this is "+
		"computed from a sensitive value. If only parts of the blocks are secret, mark those.")}
}

// dynamicExpressions lists the for_each of the block's dynamic blocks.
func (b *block) dynamicExpressions() []hcl.Expression {
	var out []hcl.Expression
	for _, nested := range b.nested {
		if nested.Type != dynamicType {
			continue
		}
		content, _, _ := nested.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "for_each"}}})
		if attr, ok := content.Attributes["for_each"]; ok {
			out = append(out, attr.Expr)
		}
	}
	return out
}
