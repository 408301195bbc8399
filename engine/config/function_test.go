package config

import (
	"fmt"
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
	"github.com/zclconf/go-cty/cty/function"
)

// examples has a good call of every function.
func examples() map[string]string {
	return map[string]string{
		"abs": "-1", "ceil": "1.5", "floor": "1.5", "log": "8, 2", "max": "1, 2", "min": "1, 2",
		"parseint": `"ff", 16`, "pow": "2, 3", "signum": "-2", "sum": "[1, 2]",

		"base64decode": `"YQ=="`, "base64encode": `"a"`, "base64sha256": `"a"`, "chomp": `"a\n"`,
		"endswith": `"ab", "b"`, "format": `"%s-%d", "a", 1`, "formatlist": `"%s", ["a", "b"]`,
		"indent": `2, "a\nb"`, "join": `",", ["a", "b"]`, "lower": `"A"`, "md5": `"a"`,
		"regex": `"(a)(b)", "ab"`, "regexall": `"a", "aa"`, "replace": `"ab", "a", "b"`, "sha256": `"a"`,
		"split": `",", "a,b"`, "startswith": `"ab", "a"`, "strcontains": `"ab", "a"`, "strlen": `"ab"`,
		"strrev": `"ab"`, "substr": `"abc", 0, 1`, "title": `"ab"`, "trim": `"aba", "a"`,
		"trimprefix": `"ab", "a"`, "trimspace": `" a"`, "trimsuffix": `"ab", "b"`, "upper": `"a"`,
		"urldecode": `"a+b"`, "urlencode": `"a b"`,

		"alltrue": "[true]", "anytrue": "[false]", "chunklist": `["a", "b"], 1`, "coalesce": `"", "a"`,
		"coalescelist": `[], ["a"]`, "compact": `["", "a"]`, "concat": `["a"], ["b"]`, "contains": `["a"], "a"`,
		"distinct": `["a", "a"]`, "element": `["a", "b"], 1`, "flatten": `[["a"], ["b"]]`, "hasindex": `["a"], 0`,
		"index": `["a", "b"], "b"`, "keys": `{ a = 1 }`, "length": `["a"]`, "lookup": `{ a = "x" }, "a", "b"`,
		"merge": `{ a = 1 }, { b = 2 }`, "one": `["a"]`, "range": "3", "reverse": `["a", "b"]`,
		"setintersection": `["a"], ["a"]`, "setproduct": `["a"], ["b"]`, "setsubtract": `["a"], ["b"]`,
		"setunion": `["a"], ["b"]`, "slice": `["a", "b"], 0, 1`, "sort": `["b", "a"]`, "values": `{ a = "x" }`,
		"zipmap": `["a"], ["x"]`,

		"csvdecode": `"a\n1\n"`, "jsondecode": `"[1]"`, "jsonencode": `{ a = 1 }`, "yamldecode": `"a: 1"`,
		"yamlencode": `{ a = 1 }`, "formatdate": `"YYYY", "2020-01-02T00:00:00Z"`,
		"timeadd": `"2020-01-02T00:00:00Z", "1h"`,

		"can": `"a"`, "try": `"a"`, "tobool": `"true"`, "tolist": `["a"]`, "tomap": `{ a = 1 }`, "tonumber": `"1"`,
		"toset": `["a"]`, "tostring": "1", "issensitive": `"a"`, "ephemeralasnull": `"a"`,
		"nonsensitive": `"a"`, "sensitive": `"a"`,

		"convert": `"1", number`, "type": `["a"]`, "matchkeys": `["a"], ["x"], ["x"]`, "transpose": `{ a = ["x"] }`,
		"base64gzip": `"a"`, "base64sha512": `"a"`, "sha1": `"a"`, "sha512": `"a"`, "uuidv5": `"dns", "a"`,
		"cidrhost": `"10.0.0.0/8", 1`, "cidrnetmask": `"10.0.0.0/8"`, "cidrsubnet": `"10.0.0.0/8", 8, 1`,
		"cidrsubnets": `"10.0.0.0/8", 8`, "timecmp": `"2020-01-02T00:00:00Z", "2020-01-02T00:00:00Z"`,
		"plantimestamp": "", "templatestring": "\"$${x}\", { x = \"a\" }",
		"basename": `"d/a"`, "dirname": `"d/a"`, "filebase64": `"a.txt"`, "filebase64sha256": `"a.txt"`,
		"filebase64sha512": `"a.txt"`, "filemd5": `"a.txt"`, "filesha1": `"a.txt"`, "filesha256": `"a.txt"`,
		"filesha512": `"a.txt"`,

		"file": `"a.txt"`, "fileexists": `"a.txt"`, "fileset": `".", "*.txt"`, "templatefile": `"a.tpl", { x = "a" }`,
	}
}

// call evaluates name(a0, a1, ...).
func callFunction(t *testing.T, all *hcl.EvalContext, name string, args []cty.Value) (v cty.Value, diags hcl.Diagnostics) {
	t.Helper()
	ctx := all.NewChild()
	ctx.Variables = map[string]cty.Value{}
	var names []string
	for i, arg := range args {
		names = append(names, fmt.Sprintf("a%d", i))
		ctx.Variables[names[i]] = arg
	}
	if name == "convert" && len(names) > 1 {
		names[1] = "string" // a type is written, and is no value
	}
	expr, diags := hclsyntax.ParseExpression([]byte(name+"("+strings.Join(names, ", ")+")"), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("%s(%#v) panics: %v", name, args, r)
		}
	}()
	v, diags = expr.Value(ctx)
	if diags.HasErrors() && strings.Contains(diags.Error(), "panic in function") { // as cty says it
		t.Errorf("%s(%#v) panics: %v", name, args, diags)
	}
	return v, diags
}

func exampleArgs(t *testing.T, text string) []cty.Value {
	t.Helper()
	expr, diags := hclsyntax.ParseExpression([]byte("["+text+"]"), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := expr.Value(&hcl.EvalContext{Variables: map[string]cty.Value{"number": cty.StringVal("a type")}})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return v.AsValueSlice()
}

func functionContext(t testing.TB) *hcl.EvalContext {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "a", "a.tpl": "${x}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &hcl.EvalContext{Functions: functions(dir, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
}

// strange lists arguments that no function may panic on.
func strange(v cty.Value) []cty.Value {
	return []cty.Value{
		cty.NullVal(v.Type()), cty.UnknownVal(v.Type()), cty.NullVal(cty.DynamicPseudoType), cty.DynamicVal,
		cty.NullVal(v.Type()).Mark(sensitiveMark{}), cty.UnknownVal(v.Type()).Mark(sensitiveMark{}),
		cty.DynamicVal.Mark(sensitiveMark{}), cty.EmptyTupleVal, cty.EmptyObjectVal, cty.StringVal(""),
		cty.StringVal("../../etc/passwd"), cty.Zero, cty.NumberIntVal(-1), cty.MustParseNumberVal("1e30"), cty.True,
		cty.TupleVal([]cty.Value{cty.NullVal(cty.DynamicPseudoType), cty.DynamicVal}),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{cty.EmptyTupleVal, cty.NullVal(cty.String)}), cty.DynamicVal}),
		cty.TupleVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"a": cty.EmptyTupleVal}), cty.DynamicVal.Mark(sensitiveMark{})}),
		cty.TupleVal([]cty.Value{cty.TupleVal([]cty.Value{cty.EmptyTupleVal, cty.StringVal("a")}), cty.NullVal(cty.DynamicPseudoType)}),
		cty.ListVal([]cty.Value{cty.NullVal(cty.String), cty.UnknownVal(cty.String)}),
		cty.SetVal([]cty.Value{cty.StringVal("a").Mark(sensitiveMark{}), cty.UnknownVal(cty.String)}),
		cty.MapVal(map[string]cty.Value{"a": cty.NullVal(cty.String), "b": cty.StringVal("x").Mark(sensitiveMark{})}),
		cty.ObjectVal(map[string]cty.Value{"a": cty.DynamicVal.Mark(objectMark{}), "b": cty.NullVal(cty.Number)}),
		cty.PositiveInfinity,
	}
}

func TestEveryFunctionHasAnExample(t *testing.T) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(functionContext(t).Functions)), refused)
	if want := slices.Sorted(maps.Keys(examples())); !slices.Equal(names, want) {
		t.Errorf("functions %v\nexamples %v", names, want)
	}
}

func refused(name string) bool { return refusedFunctions()[name] != (function.Function{}) }

func TestFunctionsTakeStrangeArguments(t *testing.T) {
	ctx := functionContext(t)
	for name, text := range examples() {
		t.Run(name, func(t *testing.T) {
			args := exampleArgs(t, text)
			if v, diags := callFunction(t, ctx, name, args); diags.HasErrors() || !v.IsWhollyKnown() {
				t.Fatalf("the example %s(%s) fails: %v", name, text, diags)
			}
			for i := range args {
				for _, odd := range strange(args[i]) {
					with := slices.Clone(args)
					with[i] = odd
					callFunction(t, ctx, name, with)
				}
			}
			for _, odd := range strange(cty.StringVal("")) {
				all := make([]cty.Value, len(args))
				for i := range all {
					all[i] = odd
				}
				callFunction(t, ctx, name, all)
			}
			callFunction(t, ctx, name, nil)
			callFunction(t, ctx, name, append(slices.Clone(args), args...))
		})
	}
}

func TestFunctionsKeepSensitivity(t *testing.T) {
	ctx := functionContext(t)
	// What these say of a value is not the value.
	exempt := []string{"can", "issensitive", "nonsensitive"}
	// Arguments that the result does not come from: a default not used, the values beside the keys.
	unused := []string{"lookup 2", "keys 0 nested", "convert 1"}
	for name, text := range examples() {
		if slices.Contains(exempt, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := exampleArgs(t, text)
			for i := range args {
				with := slices.Clone(args)
				with[i] = args[i].Mark(sensitiveMark{})
				v, diags := callFunction(t, ctx, name, with)
				at := fmt.Sprintf("%s %d", name, i)
				if slices.Contains(unused, at) {
					continue
				}
				if diags.HasErrors() || !containsSensitive(v) {
					t.Errorf("argument %d is sensitive and the result is %#v, %v", i, v, diags)
				}
				with = nested(args, i)
				v, _ = callFunction(t, ctx, name, with)
				if slices.Contains(unused, at+" nested") || !containsSensitive(with[i]) {
					continue
				}
				if v != cty.NilVal && v.IsWhollyKnown() && mentions(v) && !containsSensitive(v) {
					t.Errorf("an element of argument %d is sensitive and the result is %#v", i, v)
				}
			}
		})
	}
}

// nested marks what is inside of argument i.
func nested(args []cty.Value, i int) []cty.Value {
	with := slices.Clone(args)
	with[i], _ = cty.Transform(args[i], func(_ cty.Path, v cty.Value) (cty.Value, error) {
		if v.Type().IsPrimitiveType() {
			return v.Mark(sensitiveMark{}), nil
		}
		return v, nil
	})
	return with
}

// mentions reports whether a value has anything of its own, as an empty list or a length does not.
func mentions(v cty.Value) bool {
	found := false
	v, _ = v.UnmarkDeep()
	_ = cty.Walk(v, func(_ cty.Path, v cty.Value) (bool, error) {
		found = found || v.Type() == cty.String && !v.IsNull()
		return true, nil
	})
	return found
}

func TestSensitivityFunctions(t *testing.T) {
	ctx := functionContext(t)
	plain := cty.StringVal("a")
	secret := plain.Mark(sensitiveMark{})
	object := plain.Mark(objectMark{address: "tenant.a"})
	tests := map[string]struct {
		name string
		arg  cty.Value
		want cty.Value
	}{
		"is":                       {"issensitive", secret, cty.True},
		"is not":                   {"issensitive", plain, cty.False},
		"marks":                    {"sensitive", plain, secret},
		"unmarks":                  {"nonsensitive", secret, plain},
		"unmarks what is not":      {"nonsensitive", plain, plain},
		"keeps what it belongs to": {"nonsensitive", object.Mark(sensitiveMark{}), object},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, diags := callFunction(t, ctx, tt.name, []cty.Value{tt.arg})
			if diags.HasErrors() || !got.RawEquals(tt.want) {
				t.Errorf("%#v, want %#v (%v)", got, tt.want, diags)
			}
		})
	}
}

func TestFilesStayInside(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.txt"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "x.txt"), filepath.Join(dir, "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "dir")); err != nil {
		t.Fatal(err)
	}
	ctx := &hcl.EvalContext{Functions: functions(dir, time.Time{})}
	for _, path := range []string{"link.txt", "dir/x.txt", "../x", filepath.Join(outside, "x.txt"), "a/../../x"} {
		for _, name := range []string{"file", "fileexists"} {
			v, diags := callFunction(t, ctx, name, []cty.Value{cty.StringVal(path)})
			if !diags.HasErrors() && !v.RawEquals(cty.False) {
				t.Errorf("%s(%q) gives %#v", name, path, v)
			}
		}
	}
	v, diags := callFunction(t, ctx, "fileset", []cty.Value{cty.StringVal("."), cty.StringVal("**")})
	if diags.HasErrors() || v.LengthInt() != 0 {
		t.Errorf("fileset gives %#v, %v", v, diags)
	}
}

func TestFileSetPatterns(t *testing.T) {
	tests := map[string]struct {
		pattern, path string
		want          bool
	}{
		"star":                  {"*.sql", "a.sql", true},
		"star is one part":      {"*.sql", "d/a.sql", false},
		"any depth":             {"**/*.sql", "d/e/a.sql", true},
		"no depth":              {"**/*.sql", "a.sql", true},
		"inside":                {"d/**/a.sql", "d/x/y/a.sql", true},
		"elsewhere":             {"d/**/a.sql", "e/x/a.sql", false},
		"everything":            {"**", "a/b/c", true},
		"longer than the path":  {"a/b", "a", false},
		"shorter than the path": {"a", "a/b", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := matches(strings.Split(tt.pattern, "/"), strings.Split(tt.path, "/")); got != tt.want {
				t.Errorf("%q matches %q: %v", tt.pattern, tt.path, got)
			}
		})
	}
}
