package config

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// consoleFile is what an expression of [Desired.Value] is called in diagnostics.
const consoleFile = "<expression>"

// Value evaluates an expression that sees what the root of the configuration sees: variables, local values,
// objects, modules and functions. [Desired.Files] has its source until the next call. What must not be shown
// is marked, as [FormatValue] knows; the value must be printed by nothing else.
func (d *Desired) Value(expr string) (cty.Value, hcl.Diagnostics) {
	e := d.root
	parsed, diags := hclsyntax.ParseExpression([]byte(expr), consoleFile, hcl.InitialPos)
	d.files[consoleFile] = e.module.config.masked(consoleFile, &hcl.File{Bytes: []byte(expr)}, diags.HasErrors())
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	limitArithmetic(parsed)
	refs, diags := e.module.references(parsed.Variables(), scope{})
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	value, diags := e.value(parsed, e.context(refs))
	if !diags.HasErrors() {
		diags = append(diags, failNumbers(value, parsed.Range())...)
	}
	return value, diags
}

// Incomplete reports whether an expression goes on: a bracket is open.
func Incomplete(expr string) bool {
	tokens, _ := hclsyntax.LexExpression([]byte(expr), consoleFile, hcl.InitialPos)
	depth := 0
	for _, t := range tokens {
		depth += nesting(t.Type)
	}
	return depth > 0
}

// FormatValue prints a value in HCL's syntax, over several lines where it has elements. In place of what
// is sensitive it says so, and of what is not known too.
func FormatValue(v cty.Value) string {
	var out strings.Builder
	formatValue(&out, v, "")
	return out.String()
}

func formatValue(out *strings.Builder, v cty.Value, indent string) {
	sensitive := isSensitive(v)
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case sensitive:
		out.WriteString("(sensitive value)")
	case !v.IsKnown():
		out.WriteString("(not known)")
	case v.IsNull() || t.IsPrimitiveType():
		out.Write(hclwrite.TokensForValue(v).Bytes())
	case t.IsSetType():
		out.WriteString("toset(")
		formatElements(out, v, indent, "[", "]")
		out.WriteString(")")
	case t.IsListType() || t.IsTupleType():
		formatElements(out, v, indent, "[", "]")
	case t.IsMapType() || t.IsObjectType():
		formatElements(out, v, indent, "{", "}")
	default:
		out.WriteString("(" + t.FriendlyName() + ")")
	}
}

func formatElements(out *strings.Builder, v cty.Value, indent, open, end string) {
	if v.LengthInt() == 0 {
		out.WriteString(open + end)
		return
	}
	out.WriteString(open + "\n")
	inner := indent + "  "
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		out.WriteString(inner)
		if open == "{" {
			out.WriteString(formatKey(key) + " = ")
		}
		formatValue(out, item, inner)
		if open == "[" {
			out.WriteString(",")
		}
		out.WriteString("\n")
	}
	out.WriteString(indent + end)
}

func formatKey(key cty.Value) string {
	key, _ = key.Unmark()
	if name := key.AsString(); hclsyntax.ValidIdentifier(name) {
		return name
	}
	return string(hclwrite.TokensForValue(key).Bytes())
}
