package config

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// path is what expressions see as path: directories relative to the one that functions read files of, so
// that they are the same on every machine.
func (m *module) path() cty.Value {
	root, err := filepath.Rel(m.dir, m.config.dir)
	if err != nil {
		root = "." // only for the directory of the root, which Load could not make sense of
	}
	return cty.ObjectVal(map[string]cty.Value{
		"module": cty.StringVal("."), "root": cty.StringVal(filepath.ToSlash(root)),
	})
}

// evaluateCall evaluates the module for each of the call's keys, and leaves the outputs for others to refer to.
func (e *evaluation) evaluateCall(c *call) {
	e.children[c.node] = map[string]*evaluation{}
	e.values[c.node] = cty.DynamicVal
	if c.module == nil {
		return
	}
	ctx := e.context(e.uses[c.node])
	if c.forEach == nil {
		e.values[c.node] = e.evaluateModule(c, schema.Step{Name: c.node.name}, ctx)
		return
	}
	items, diags := e.expand(c.forEach, ctx)
	e.report(diags)
	if items == nil {
		return
	}
	values := map[string]cty.Value{}
	for _, key := range slices.Sorted(maps.Keys(items)) {
		step := schema.Step{Name: c.node.name, Key: key, Keyed: true}
		values[key] = e.evaluateModule(c, step, e.each(ctx, c.node, key, items[key]))
	}
	e.values[c.node] = cty.ObjectVal(values)
}

func (e *evaluation) evaluateModule(c *call, step schema.Step, ctx *hcl.EvalContext) cty.Value {
	child := e.run.evaluation(c.module, e.arguments(c, ctx))
	child.parent, child.call = e, c
	child.path = append(e.path[:len(e.path):len(e.path)], step)
	child.prefix = schema.Address{Modules: child.path}.String() + "."
	e.children[c.node][step.Key] = child
	child.walk()
	return cty.ObjectVal(child.outputs)
}

// arguments returns a value for every variable of the module: an unknown one where there is no good one.
func (e *evaluation) arguments(c *call, ctx *hcl.EvalContext) map[string]cty.Value {
	values := map[string]cty.Value{}
	for _, v := range c.module.variables {
		value := v.def
		if attr, given := c.args[v.name]; given {
			value = e.argumentValue(c, v, attr.Expr, ctx)
		}
		if value == cty.NilVal {
			value = cty.UnknownVal(v.valueType())
		}
		if v.sensitive {
			value = value.Mark(sensitiveMark{})
		}
		if v.ephemeral {
			value = markEphemeral(value, "var."+v.name)
		}
		values[v.name] = value
	}
	return values
}

// argumentValue returns NilVal when the value is not a good one.
func (e *evaluation) argumentValue(c *call, v *variable, expr hcl.Expression, ctx *hcl.EvalContext) cty.Value {
	value, diags := e.value(expr, ctx)
	e.report(v.withhold(diags))
	if diags.HasErrors() {
		return cty.NilVal
	}
	refuse := func(format string, args ...any) cty.Value {
		d := failAt(expr.Range(), "Invalid argument", format, args...)
		if !v.sensitive {
			d.Expression, d.EvalContext = expr, ctx
		}
		e.report(hcl.Diagnostics{d})
		return cty.NilVal
	}
	if ephemeral := failEphemeral(expr, ctx, v.name, value); ephemeral != nil && !v.ephemeral {
		e.report(ephemeral)
		return cty.NilVal
	}
	converted, err := v.convert(value)
	if err != nil {
		reason := v.reason(err)
		if containsSensitive(value) {
			reason = err.Error()
		}
		return refuse("%s of %s is not a %s: %s.", v.name, c.node.String(), typeexpr.TypeString(v.typ), reason)
	}
	if converted.IsNull() && !v.nullable {
		if v.def == cty.NilVal {
			return refuse("%s of %s is null, and the variable has nullable = false and no default.", v.name, c.node.String())
		}
		return v.def
	}
	return converted
}

// inputRange is where the value of a variable was given, as far as that is known: by the module's call, or
// else by whatever the variable's own block leads to.
func (e *evaluation) inputRange(v *variable) hcl.Range {
	if e.call != nil {
		if attr, given := e.call.args[v.name]; given {
			return attr.Expr.Range()
		}
	}
	return header(v.src)
}
