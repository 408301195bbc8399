package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/qod-io/qod/schema"
)

// ephemeralMark is on values that may be kept nowhere: neither in a plan nor in the store. What carries
// it has the sensitive mark too.
type ephemeralMark struct {
	name string // of where it comes from: var.token
}

// ephemeralNames lists where the ephemeral parts of a value come from.
func ephemeralNames(v cty.Value) []string {
	return markNames(cty.ValueMarksOfTypeDeep[ephemeralMark](v))
}

// ephemeralSelf is ephemeralNames for the value itself, and not for what is inside.
func ephemeralSelf(v cty.Value) []string { return markNames(cty.ValueMarksOfType[ephemeralMark](v)) }

func markNames(marks func(func(ephemeralMark) bool)) []string {
	found := map[string]bool{}
	for m := range marks {
		found[m.name] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// markEphemeral marks a value as coming from name, whatever it came from before.
func markEphemeral(v cty.Value, name string) cty.Value {
	v, paths := v.UnmarkDeepWithPaths()
	for _, p := range paths {
		maps.DeleteFunc(p.Marks, func(m any, _ struct{}) bool { _, is := m.(ephemeralMark); return is })
	}
	return v.MarkWithPaths(paths).Mark(ephemeralMark{name}).Mark(sensitiveMark{})
}

// ephemeralDetail says why what cannot be ephemeral. kind may be nil.
func ephemeralDetail(what string, names []string, kind *schema.Kind) string {
	secrets := "secret arguments"
	if kind != nil {
		var own []string
		for _, a := range kind.Attrs {
			if a.Secret {
				own = append(own, a.Name)
			}
		}
		if len(own) > 0 {
			secrets += " (" + strings.Join(own, ", ") + ")"
		}
	}
	return fmt.Sprintf("%s is computed from what is ephemeral, %s. Ephemeral values are kept nowhere, so they may only be "+
		"used in %s, locals, and ephemeral variables and outputs of modules.", what, strings.Join(names, " and "), secrets)
}

// ephemeralMarks returns the marks of a value that say where its ephemeral parts come from.
func ephemeralMarks(v cty.Value) cty.ValueMarks { return asMarks(ephemeralNames(v)) }

// selfMarks is ephemeralMarks for the value itself, and not for what is inside.
func selfMarks(v cty.Value) cty.ValueMarks { return asMarks(ephemeralSelf(v)) }

func asMarks(names []string) cty.ValueMarks {
	marks := cty.ValueMarks{}
	for _, name := range names {
		marks[ephemeralMark{name}] = struct{}{}
	}
	return marks
}

// refuseEphemeral reports an argument or nested block that has ephemeral marks, and cannot have any.
func (inst *instance) refuseEphemeral(name string, marks cty.ValueMarks) {
	if len(marks) == 0 {
		return
	}
	detail := ephemeralDetail(name, ephemeralSelf(cty.True.WithMarks(marks)), inst.block.kind)
	if _, isBlock := inst.block.kind.Block(name); isBlock {
		inst.fail(inst.rangeOf(cty.NilVal, cty.GetAttrPath(name)), "Ephemeral value not allowed", "%s", detail)
		return
	}
	inst.failAttr(name, "Ephemeral value not allowed", "%s", detail)
}

// ephemeralAsNull is the function ephemeralasnull: it returns its argument with null in place of what is
// ephemeral.
func ephemeralAsNull() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType,
			AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
		}},
		Type: func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil },
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.Transform(args[0], func(_ cty.Path, v cty.Value) (cty.Value, error) {
				if len(ephemeralSelf(v)) == 0 {
					return v, nil
				}
				plain, marks := v.Unmark()
				maps.DeleteFunc(marks, func(m any, _ struct{}) bool { _, is := m.(ephemeralMark); return is || m == sensitiveMark{} })
				return cty.NullVal(plain.Type()).WithMarks(marks), nil
			})
		},
	})
}

// failEphemeral is refuse for expressions outside of objects.
func failEphemeral(expr hcl.Expression, ctx *hcl.EvalContext, what string, v cty.Value) hcl.Diagnostics {
	if len(ephemeralNames(v)) == 0 {
		return nil
	}
	d := failAt(expr.Range(), "Ephemeral value not allowed", "%s", ephemeralDetail(what, ephemeralNames(v), nil))
	d.Expression, d.EvalContext = expr, ctx
	return hcl.Diagnostics{d}
}
