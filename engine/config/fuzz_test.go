package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/schema"
)

// What the targets look for in output: it is in every secret value.
const fuzzSecret = "hunter2"

// FuzzFunctions calls a function twice with arguments that differ in their sensitive parts only. The
// results must not differ where they are not sensitive.
func FuzzFunctions(f *testing.F) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(functions(".", time.Time{}))), refused)
	for i := range names {
		for first := range byte(8) {
			f.Add([]byte{byte(i), 0, first, first, first, 1, 2, 3, 4, 5, 6, 7, 8, 9})
			f.Add([]byte{byte(i), 1, 4 + first, 20, first, 3, 30, 4 + first, 7, 8, first, 1, 2, 3, 40, 5})
		}
	}
	ctx := functionContext(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var results [2]cty.Value
		for i := range results {
			g := &generator{data: data, variant: i}
			name := names[int(g.next())%len(names)]
			args := g.arguments(t, name)
			v, diags := callFunction(t, ctx, name, args)
			checkCall(t, ctx, name, args, diags)
			if diags.HasErrors() || slices.Contains([]string{"nonsensitive", "can"}, name) {
				return
			}
			results[i] = v
		}
		if path := difference(results[0], results[1]); path != "" {
			t.Errorf("%x: a sensitive argument shows at %q: %#v and %#v", data, path, results[0], results[1])
		}
	})
}

// checkCall calls again as the evaluator does, and looks at what is said.
func checkCall(t *testing.T, ctx *hcl.EvalContext, name string, args []cty.Value, diags hcl.Diagnostics) {
	t.Helper()
	if !diags.HasErrors() {
		return
	}
	var names []string
	ctx = ctx.NewChild()
	ctx.Variables = map[string]cty.Value{}
	for i, arg := range args {
		names = append(names, fmt.Sprintf("a%d", i))
		ctx.Variables[names[i]] = arg
	}
	src := name + "(" + strings.Join(names, ", ") + ")"
	expr, _ := hclsyntax.ParseExpression([]byte(src), "test", hcl.InitialPos)
	out := &strings.Builder{}
	if err := WriteDiagnostics(out, guard(addHints(diags), nil, ctx, expr), nil, false); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToLower(out.String()), fuzzSecret) {
		t.Errorf("%s of %#v shows a secret:\n%s", src, args, out)
	}
}

// difference returns where two values differ in what is not sensitive, or "".
func difference(a, b cty.Value) string {
	switch {
	case isSensitive(a) && isSensitive(b):
		return ""
	case isSensitive(a) != isSensitive(b):
		return "mark"
	}
	a, _ = a.Unmark()
	b, _ = b.Unmark()
	at, bt := a.Type(), b.Type()
	parts := at.IsObjectType() && bt.IsObjectType() || at.IsTupleType() && bt.IsTupleType() || at.Equals(bt)
	switch {
	case !parts || a.IsKnown() != b.IsKnown() || a.IsNull() != b.IsNull():
		return "type"
	case a.IsNull() || !a.IsKnown():
		return ""
	case !a.CanIterateElements():
		if a.RawEquals(b) {
			return ""
		}
		return "value"
	case a.LengthInt() != b.LengthInt():
		return "length"
	}
	ai, bi := a.ElementIterator(), b.ElementIterator()
	for ai.Next() && bi.Next() {
		ak, av := ai.Element()
		bk, bv := bi.Element()
		if !at.IsSetType() && !ak.RawEquals(bk) {
			return "key"
		}
		if path := difference(av, bv); path != "" {
			return fmt.Sprintf("%#v %s", ak, path)
		}
	}
	return ""
}

// FuzzParse loads any bytes in either syntax.
func FuzzParse(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(false, []byte(text))
	}
	f.Add(true, []byte(`{"qod": {"stack": "a"}, "tenant": {"a": [{"display_name": "${var.x}"}]}, "//": 1}`))
	f.Add(true, []byte(`[{"variable": {"x": {"type": "string", "default": "a"}}}, {"locals": {"a": [1e9, null]}}]`))
	f.Fuzz(func(t *testing.T, inJSON bool, src []byte) {
		name := "main" + hclSuffix
		if inJSON {
			name = "main" + jsonSuffix
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), src, 0o600); err != nil {
			t.Fatal(err)
		}
		c, diags := Load(dir)
		if err := WriteDiagnostics(io.Discard, diags, c.Files(), true); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzEvaluate evaluates mutated text and a generated program that use a sensitive variable.
func FuzzEvaluate(f *testing.F) {
	for i, text := range corpus(f) {
		f.Add(text, []byte{byte(i), 3, byte(3 * i), 9, 4, byte(7 * i), 2, 8, 1, byte(5 * i), 12, 6, 10, 30, 40, 50})
	}
	for _, text := range []string{
		"output \"a\" {\n  value = [{ b = 1/0 }, -\"inf\", \"${5 % 0}\"]\n}\n", "locals {\n  a = { b = [1/0] }\n}\ntenant \"c\" {\n  display_name = \"${local.a.b[0]}\"\n}\n",
		"variable \"a\" {\n  type    = list(number)\n  default = [\"inf\"]\n}\noutput \"b\" {\n  value = var.a\n}\n",
	} {
		f.Add(text, []byte{0})
	}
	f.Fuzz(func(t *testing.T, text string, program []byte) {
		if strings.Contains(strings.ToLower(text), fuzzSecret) {
			t.Skip("the text itself has what is looked for")
		}
		dir := t.TempDir()
		g := &generator{data: program}
		files := map[string]string{
			"base": "qod {\n  stack = \"s\"\n}\nvariable \"secret\" {\n  sensitive = true\n}\nvariable \"open\" {\n  default = [\"a\", 1]\n}\n",
			"text": text, "made": g.config(),
		}
		for name, src := range files {
			if err := os.WriteFile(filepath.Join(dir, name+hclSuffix), []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, diags := Load(dir)
		desired, more := c.Evaluate(Inputs{Given: []Given{{Name: "secret", Value: fuzzSecret + " and more"}}})
		out := &bytes.Buffer{}
		if err := WriteDiagnostics(out, append(diags, more...), desired.Files(), false); err != nil {
			t.Fatal(err)
		}
		revealed := strings.Contains(text, "nonsensitive")
		if !revealed && bytes.Contains(bytes.ToLower(out.Bytes()), []byte(fuzzSecret)) {
			t.Errorf("a secret is shown:\n%s\nfor\n%s\n%s", out, text, files["made"])
		}
		if strings.Contains(out.String(), "panic in function") {
			t.Errorf("a function panics:\n%s", out)
		}
		checkFinite(t, desired.Desired, text+files["made"])
	})
}

// checkFinite wants no number that is infinite, nor the text of one, in what was evaluated of a source.
func checkFinite(t *testing.T, d schema.Desired, src string) {
	t.Helper()
	values := []cty.Value{}
	for _, o := range d.Objects {
		values = append(values, o.Value)
	}
	for _, o := range d.Outputs {
		values = append(values, o.Value)
	}
	written := strings.Contains(src, "Inf")
	for _, v := range values {
		if s := v.GoString(); strings.Contains(s, "Infinity") || strings.Contains(s, "+Inf") && !written {
			t.Errorf("%s is infinite for\n%s", s, src)
		}
	}
}

// FuzzFormat formats any bytes: what comes out stays as it is, and has the tokens that went in.
func FuzzFormat(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(false, []byte(text))
	}
	f.Add(false, []byte("a = [ # x\n\n1, /* y */\n// z  \n2,\n]\nb {\n\n\nc = <<-EOT\n  x ${ y }\n  EOT\n}\nd \"e\" {}"))
	f.Add(true, []byte(`{"a":[1.50,{"b":"\u0041"}],"//":"c"}`))
	f.Fuzz(func(t *testing.T, inJSON bool, src []byte) {
		name := "x" + hclSuffix
		if inJSON {
			name = "x" + jsonSuffix
		}
		out, diags := Format(name, src)
		if diags.HasErrors() {
			if diags[0].Summary == "File not formatted" {
				t.Errorf("no stable form of %q", src)
			}
			return
		}
		again, diags := Format(name, out)
		if diags.HasErrors() || !bytes.Equal(again, out) {
			t.Errorf("%q is formatted as %q and that as %q: %v", src, out, again, diags)
		}
		if inJSON {
			return
		}
		if before, after := significant(name, src), significant(name, out); !slices.Equal(before, after) {
			t.Errorf("%q becomes %q", before, after)
		}
		if _, diags := hclsyntax.ParseConfig(out, name, hcl.InitialPos); diags.HasErrors() {
			t.Errorf("%q is formatted as %q, which does not parse: %v", src, out, diags)
		}
	})
}

// corpus has the configurations of testdata.
func corpus(f *testing.F) []string {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("testdata: %v, %v", paths, err)
	}
	var out []string
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, hclSuffix) && file.Name != "qod"+hclSuffix {
				out = append(out, strings.ReplaceAll(string(file.Data), fuzzSecret, "swordfish"))
			}
		}
	}
	return out
}
