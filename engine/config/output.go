package config

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// output is an output block.
type output struct {
	node        node
	src         *hcl.Block
	header      hcl.Range
	value       hcl.Expression // nil when it is missing
	description string
	sensitive   bool
	ephemeral   bool // only of modules
	dependsOn   []hcl.Traversal
}

func (m *module) addOutput(src *hcl.Block) hcl.Diagnostics {
	o := &output{node: node{"output", norm.NFC.String(src.Labels[0])}, src: src, header: header(src)}
	if !hclsyntax.ValidIdentifier(o.node.name) {
		return hcl.Diagnostics{failAt(src.LabelRanges[0], "Invalid output name",
			"An output's name has a letter first, then letters, digits, _ and -.")}
	}
	if first, taken := m.outputOf[o.node.name]; taken {
		return hcl.Diagnostics{failAt(o.header, "Duplicate output",
			"%s is declared already at %s.", o.node.String(), first.header.String())}
	}
	diags := o.decode()
	if o.ephemeral && m == m.config.root {
		diags = append(diags, failAt(o.header, "Ephemeral output", "The outputs of a configuration are kept, and ephemeral values "+
			"are kept nowhere: only outputs of modules are ephemeral."))
	}
	m.outputOf[o.node.name] = o
	m.outputs = append(m.outputs, o)
	return diags
}

func (o *output) decode() hcl.Diagnostics {
	content, diags := o.src.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "value", Required: true}, {Name: "description"}, {Name: "sensitive"}, {Name: "ephemeral"},
		{Name: "depends_on"},
	}})
	if attr, ok := content.Attributes["value"]; ok {
		o.value = attr.Expr
	}
	if attr, ok := content.Attributes["description"]; ok {
		v, more := literal(attr, cty.String)
		diags = append(diags, more...)
		if !more.HasErrors() && !v.IsNull() {
			o.description = v.AsString()
		}
	}
	if attr, ok := content.Attributes["sensitive"]; ok {
		v, more := literal(attr, cty.Bool)
		diags = append(diags, more...)
		o.sensitive = more.HasErrors() || !v.IsNull() && v.True()
	}
	if attr, ok := content.Attributes["ephemeral"]; ok {
		v, more := literal(attr, cty.Bool)
		diags = append(diags, more...)
		o.ephemeral = more.HasErrors() || !v.IsNull() && v.True()
	}
	dependsOn, more := traversals(content.Attributes["depends_on"])
	o.dependsOn = dependsOn
	return append(diags, more...)
}

func (m *module) outputNames() []string {
	var names []string
	for _, o := range m.outputs {
		names = append(names, o.node.name)
	}
	return names
}

// evaluateOutputs sets the module's outputs, once everything in it is evaluated.
func (e *evaluation) evaluateOutputs() {
	e.outputs = map[string]cty.Value{}
	for _, o := range e.module.outputs {
		e.outputs[o.node.name] = e.evaluateOutput(o)
	}
}

func (e *evaluation) evaluateOutput(o *output) cty.Value {
	if o.value == nil {
		return cty.DynamicVal
	}
	ctx := e.context(e.uses[o.node])
	value, diags := e.value(o.value, ctx)
	if !diags.HasErrors() {
		diags = append(diags, failNumbers(value, o.value.Range())...)
	}
	e.report(diags)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	if names := ephemeralNames(value); len(names) > 0 && !o.ephemeral {
		e.report(failEphemeral(o.value, ctx, o.node.String(), value))
		return cty.DynamicVal
	}
	if o.ephemeral {
		return markEphemeral(value, e.prefix+o.node.name)
	}
	if o.sensitive {
		return value.Mark(sensitiveMark{})
	}
	if e.parent == nil && containsSensitive(value) {
		e.report(hcl.Diagnostics{failAt(o.value.Range(), "Sensitive output", "%s shows its value to whoever runs qod, and "+
			"the value comes from %s, which is sensitive. Write sensitive = true in the output, or nonsensitive(...) if "+
			"it is no secret.", o.node.String(), sensitiveSource(o.value, ctx))})
	}
	return value
}

// sensitiveSource names what makes the value of an expression sensitive.
func sensitiveSource(expr hcl.Expression, ctx *hcl.EvalContext) string {
	var names []string
	for _, t := range expr.Variables() {
		v, diags := t.TraverseAbs(ctx)
		if name := traversalString(t); !diags.HasErrors() && containsSensitive(v) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "sensitive(...)"
	}
	return strings.Join(names, " and ")
}

// results lists the outputs of the root by name.
func (e *evaluation) results() []schema.Output {
	var out []schema.Output
	for _, o := range e.module.outputs {
		value := e.outputs[o.node.name]
		if !value.IsWhollyKnown() {
			if !e.diags.HasErrors() && !e.config.failed {
				e.report(hcl.Diagnostics{failAt(o.value.Range(), "Value not known",
					"The value of %s cannot be computed from this configuration.", o.node.String())})
			}
			continue
		}
		plain, _ := value.UnmarkDeep()
		out = append(out, schema.Output{
			Name: o.node.name, Value: plain, Sensitive: containsSensitive(value), Description: o.description,
		})
	}
	slices.SortFunc(out, func(a, b schema.Output) int { return strings.Compare(a.Name, b.Name) })
	return out
}
