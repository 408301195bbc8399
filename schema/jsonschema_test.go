package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

func TestJSONSchemaIsCurrent(t *testing.T) {
	path := filepath.Join("..", "docs", "reference", "qod.schema.json")
	if *update {
		if err := os.WriteFile(path, schema.JSONSchema(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), string(schema.JSONSchema())); diff != "" {
		t.Errorf("%s differs (-file +kinds); run: go test ./schema -update\n%s", path, diff)
	}
}

// compiled is the schema as another program reads it.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("qod.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("qod.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// The examples, written as JSON, are valid.
func TestExamplesFitJSONSchema(t *testing.T) {
	s := compiled(t)
	var paths []string
	for _, pattern := range []string{"kinds/*.hcl", "*/*.qod.hcl"} {
		found, err := filepath.Glob(filepath.Join("..", "examples", pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	if len(paths) < len(schema.Kinds()) {
		t.Fatalf("examples: %v", paths)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := asJSON(t, path)
			if err := validate(t, s, text); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

func TestJSONSchemaRefuses(t *testing.T) {
	s := compiled(t)
	tests := map[string]struct {
		text string
		good bool
	}{
		"nothing":                {`{}`, true},
		"comment":                {`{"//": "x", "tenant": {"//": "y", "acme": {"//": ["z"]}}}`, true},
		"list of files":          {`[{"tenant": {"a": {}}}, {"tenant": {"b": {}}}]`, true},
		"list of blocks":         {`{"tenant": [{"a": {}}, {"b": {"display_name": null}}]}`, true},
		"template for a number":  {`{"pool": {"bi": {"threads": "${var.n}", "nodes": {"dual": 2}}}}`, true},
		"text for a number":      {`{"pool": {"bi": {"threads": "many"}}}`, false},
		"template for one of":    {`{"tenant_db": {"d": {"kind": "${var.kind}"}}}`, true},
		"not one of":             {`{"tenant_db": {"d": {"kind": "sqlite"}}}`, false},
		"element not one of":     {`{"role": {"r": {"permission": {"privileges": ["al"]}}}}`, false},
		"repeated block":         {`{"role": {"r": {"permission": [{"privileges": ["all"]}, {"privileges": "${var.p}"}]}}}`, true},
		"required in a block":    {`{"role": {"r": {"permission": {"table": "*"}}}}`, false},
		"unknown block":          {`{"tennant": {"a": {}}}`, false},
		"unknown argument":       {`{"tenant": {"a": {"displayname": "x"}}}`, false},
		"no label":               {`{"tenant": {"display_name": "x"}}`, false},
		"lifecycle":              {`{"pool": {"bi": {"for_each": ["a"], "depends_on": ["tenant.a"], "lifecycle": {"prevent_destroy": true, "ignore_changes": "all"}}}}`, true},
		"unknown in lifecycle":   {`{"pool": {"bi": {"lifecycle": {"protect": true}}}}`, false},
		"variable":               {`{"variable": {"n": {"type": "number", "default": 1, "validation": [{"condition": "${var.n > 0}", "error_message": "x"}]}}}`, true},
		"validation without":     {`{"variable": {"n": {"validation": {"condition": true}}}}`, false},
		"module":                 {`{"module": {"m": {"source": "./m", "anything": {"a": 1}}}}`, true},
		"module without source":  {`{"module": {"m": {}}}`, false},
		"moved":                  {`{"moved": [{"from": "pool.a", "to": "pool.b"}], "removed": {"from": "pool.c", "lifecycle": {"destroy": false}}}`, true},
		"moved to nowhere":       {`{"moved": {"from": "pool.a"}}`, false},
		"import, check, output":  {`{"import": {"to": "pool.a", "id": "x/a"}, "check": {"c": {"assert": {"condition": true, "error_message": "x"}}}, "output": {"o": {"value": [1]}}, "locals": {"a": 1}}`, true},
		"two stacks":             {`{"qod": [{"stack": "a"}, {"stack": "b"}]}`, false},
		"sensitive is a boolean": {`{"output": {"o": {"value": 1, "sensitive": "yes"}}}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, s, tt.text); (err == nil) != tt.good {
				t.Errorf("%s: valid %t: %v", tt.text, err == nil, err)
			}
		})
	}
}

// Every argument of every kind is in the schema, with its words.
func TestJSONSchemaIsComplete(t *testing.T) {
	text := string(schema.JSONSchema())
	for _, name := range schema.LanguageBlocks() {
		if _, isKind := schema.Lookup(name); isKind || !strings.Contains(text, `"`+name+`"`) {
			t.Errorf("%s is a kind, or not in the schema", name)
		}
	}
	for _, k := range schema.Kinds() {
		for _, a := range k.Attrs {
			words, err := json.Marshal(a.Doc)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, `"`+a.Name+`": {`) || !strings.Contains(text, strings.Trim(string(words), `"`)) {
				t.Errorf("%s.%s or its words are missing", k.Name, a.Name)
			}
		}
	}
}

// asJSON writes a file of HCL in HCL's JSON syntax.
func asJSON(t *testing.T, path string) string {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, diags := hclsyntax.ParseConfig(src, path, hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	raw, err := json.Marshal(bodyJSON(t, src, file.Body.(*hclsyntax.Body)))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func bodyJSON(t *testing.T, src []byte, body *hclsyntax.Body) map[string]any {
	out := map[string]any{}
	for name, attr := range body.Attributes {
		if slices.Contains([]string{"type", "depends_on"}, name) { // which are read as they are written
			out[name] = string(attr.Expr.Range().SliceBytes(src))
			continue
		}
		out[name] = exprJSON(t, src, attr.Expr)
	}
	for _, b := range body.Blocks {
		labels := b.Labels
		if _, isKind := schema.Lookup(b.Type); isKind && len(labels) == 0 {
			labels = []string{"x"}
		}
		var inner any = bodyJSON(t, src, b.Body)
		for _, label := range labels {
			inner = map[string]any{label: inner}
		}
		list, _ := out[b.Type].([]any)
		out[b.Type] = append(list, inner)
		if b.Type == "qod" || isSingle(b.Type) { // of which there is one
			out[b.Type] = inner
		}
	}
	return out
}

func isSingle(block string) bool {
	return slices.ContainsFunc(schema.Kinds(), func(k *schema.Kind) bool {
		b, ok := k.Block(block)
		return ok && b.Single
	})
}

func exprJSON(t *testing.T, src []byte, expr hclsyntax.Expression) any {
	if v, diags := expr.Value(nil); !diags.HasErrors() && v.Type() != cty.DynamicPseudoType {
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(raw)
	}
	switch e := expr.(type) {
	case *hclsyntax.TupleConsExpr:
		out := []any{}
		for _, item := range e.Exprs {
			out = append(out, exprJSON(t, src, item))
		}
		return out
	case *hclsyntax.TemplateExpr:
		return strings.Trim(string(e.Range().SliceBytes(src)), `"`)
	}
	return "${" + string(expr.Range().SliceBytes(src)) + "}"
}
