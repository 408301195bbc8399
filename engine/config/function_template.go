package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// templateFile renders a file as a template that sees the given variables and all functions but those of
// templates.
func templateFile(dir string, all map[string]function.Function) function.Function {
	inside := maps.Clone(all)
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			name := args[0].AsString()
			text, err := readText(dir, name)
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return renderTemplate(name, text, args[1], inside)
		},
	})
}

// templateString renders a string as templateFile does a file.
func templateString(all map[string]function.Function) function.Function {
	inside := maps.Clone(all)
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "template", Type: cty.String}, {Name: "vars", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return renderTemplate("template", args[0].AsString(), args[1], inside)
		},
	})
}

func renderTemplate(name, text string, vars cty.Value, inside map[string]function.Function) (cty.Value, error) {
	if t := vars.Type(); !t.IsObjectType() && !t.IsMapType() {
		return cty.NilVal, function.NewArgErrorf(1, "want an object of variables, and this is a %s", t.FriendlyName())
	}
	ctx := &hcl.EvalContext{Variables: vars.AsValueMap(), Functions: inside}
	expr, diags := hclsyntax.ParseTemplate([]byte(text), name, hcl.InitialPos)
	if diags.HasErrors() {
		return cty.NilVal, function.NewArgError(0, diags)
	}
	limitArithmetic(expr)
	for _, t := range expr.Variables() {
		if _, given := ctx.Variables[t.RootName()]; !given {
			return cty.NilVal, function.NewArgErrorf(1, "the template uses %q (at %s), and vars has %v",
				t.RootName(), t.SourceRange(), slices.Sorted(maps.Keys(ctx.Variables)))
		}
	}
	value, diags := expr.Value(ctx)
	if diags.HasErrors() {
		return cty.NilVal, function.NewArgError(0, guard(diags, nil, ctx, expr))
	}
	value, err := convert.Convert(value, cty.String)
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "the template %s does not make a string: %s", name, err)
	}
	if value.IsNull() {
		return cty.NilVal, function.NewArgErrorf(0, "the template %s makes a null", name)
	}
	return value, nil
}
