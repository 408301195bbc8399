package engine_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// inJSON is a file in the other syntax.
func inJSON(src string) string {
	file, diags := hclsyntax.ParseConfig([]byte(src), "random", hcl.InitialPos)
	if diags.HasErrors() {
		panic(diags)
	}
	raw, err := json.MarshalIndent(translator{src}.body(file.Body.(*hclsyntax.Body)), "", "  ")
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// translator knows the source of what it translates.
type translator struct{ src string }

func (t translator) text(expr hclsyntax.Expression) string {
	return t.src[expr.Range().Start.Byte:expr.Range().End.Byte]
}

func (t translator) body(body *hclsyntax.Body) map[string]any {
	out := map[string]any{}
	for name, attr := range body.Attributes {
		if slices.Contains([]string{"from", "to", "ignore_changes"}, name) {
			out[name] = t.static(attr.Expr)
		} else {
			out[name] = t.expression(attr.Expr)
		}
	}
	for _, b := range body.Blocks {
		inner := t.body(b.Body)
		if len(b.Labels) == 0 {
			list, _ := out[b.Type].([]any)
			out[b.Type] = append(list, inner)
			continue
		}
		if out[b.Type] == nil {
			out[b.Type] = map[string]any{}
		}
		out[b.Type].(map[string]any)[b.Labels[0]] = inner
	}
	return out
}

// static is what names something in the configuration.
func (t translator) static(expr hclsyntax.Expression) any {
	list, ok := expr.(*hclsyntax.TupleConsExpr)
	if !ok {
		return t.text(expr)
	}
	items := []any{}
	for _, item := range list.Exprs {
		items = append(items, t.text(item))
	}
	return items
}

func (t translator) expression(expr hclsyntax.Expression) any {
	switch expr := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		items := []any{}
		for _, item := range expr.Exprs {
			items = append(items, t.expression(item))
		}
		return items
	case *hclsyntax.ObjectConsExpr:
		out := map[string]any{}
		for _, item := range expr.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() {
				panic(diags)
			}
			out[escaped(key.AsString())] = t.expression(item.ValueExpr)
		}
		return out
	}
	v, diags := expr.Value(nil)
	switch {
	case diags.HasErrors():
		return "${" + t.text(expr) + "}"
	case v.IsNull():
		return nil
	case v.Type() == cty.String:
		return escaped(v.AsString())
	}
	return json.RawMessage(t.text(expr))
}

// escaped is a text as a template.
func escaped(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}
