package config_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// TestBothSyntaxes evaluates every valid fixture of testdata in JSON too.
func TestBothSyntaxes(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	converted := 0
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if wanted(archive, "objects.json") == "" {
			continue
		}
		converted++
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			for i := range archive.Files {
				f := &archive.Files[i]
				base, ok := strings.CutSuffix(f.Name, ".hcl")
				if ok && strings.Contains(f.Name, ".qod") {
					f.Name, f.Data = base+".json", inJSON(t, f.Data, !strings.HasSuffix(base, ".qod"))
				}
			}
			name, got := run(t, archive)
			if diff := cmp.Diff(wanted(archive, name), got); diff != "" {
				t.Errorf("%s in JSON (-want +got):\n%s\n%s", name, diff, txtar.Format(archive))
			}
		})
	}
	if converted < 20 {
		t.Errorf("%d fixtures were converted", converted)
	}
}

// inJSON converts a file. A var file has values, and no templates.
func inJSON(t *testing.T, src []byte, values bool) []byte {
	t.Helper()
	file, diags := hclsyntax.ParseConfig(src, "", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := converter{t, src, values}
	var tree any = c.body(file.Body.(*hclsyntax.Body))
	if values {
		tree = c.inner(file.Body.(*hclsyntax.Body))
	}
	out, err := json.MarshalIndent(tree, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

type converter struct {
	t      *testing.T
	src    []byte
	values bool
}

// body gives a list of objects with one property each, which keeps the order and allows repetition.
func (c converter) body(body *hclsyntax.Body) []map[string]any {
	out := []map[string]any{{"//": "a comment"}}
	for name, attr := range body.Attributes {
		out = append(out, map[string]any{name: c.argument(name, attr.Expr)})
	}
	for _, b := range body.Blocks {
		var content any = []any{c.inner(b.Body)}
		for i := len(b.Labels) - 1; i >= 0; i-- {
			content = map[string]any{b.Labels[i]: content}
		}
		out = append(out, map[string]any{b.Type: content})
	}
	return out
}

func (c converter) inner(body *hclsyntax.Body) map[string]any {
	out := map[string]any{}
	blocks := map[string][]any{}
	for name, attr := range body.Attributes {
		out[name] = c.argument(name, attr.Expr)
	}
	for _, b := range body.Blocks {
		var content any = c.inner(b.Body)
		for _, label := range b.Labels {
			content = map[string]any{label: content}
		}
		blocks[b.Type] = append(blocks[b.Type], content)
	}
	for name, list := range blocks {
		out[name] = list
	}
	return out
}

// argument converts an expression; what is never evaluated is a string of what HCL would have there.
func (c converter) argument(name string, expr hclsyntax.Expression) any {
	switch name {
	case "type", "iterator":
		return c.text(expr)
	case "depends_on":
		list, _ := hcl.ExprList(expr)
		texts := []string{}
		for _, item := range list {
			texts = append(texts, c.text(item))
		}
		return texts
	}
	return c.expression(expr)
}

func (c converter) text(expr hcl.Expression) string { return string(expr.Range().SliceBytes(c.src)) }

func (c converter) expression(expr hclsyntax.Expression) any {
	switch e := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		list := []any{}
		for _, item := range e.Exprs {
			list = append(list, c.expression(item))
		}
		return list
	case *hclsyntax.ObjectConsExpr:
		object := map[string]any{}
		for _, item := range e.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() || key.Type() != cty.String {
				return "${" + c.text(expr) + "}"
			}
			object[c.literal(key.AsString())] = c.expression(item.ValueExpr)
		}
		return object
	}
	value, diags := expr.Value(nil)
	if diags.HasErrors() {
		return "${" + c.text(expr) + "}"
	}
	if value.Type() == cty.String && !value.IsNull() {
		return c.literal(value.AsString())
	}
	data, err := ctyjson.Marshal(value, value.Type())
	if err != nil {
		c.t.Fatal(err)
	}
	return json.RawMessage(data)
}

func (c converter) literal(s string) string {
	if c.values {
		return s
	}
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(s)
}
