package config

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

func ephemeral(v cty.Value) cty.Value { return markEphemeral(v, "var.x") }

func TestFunctionsKeepEphemerality(t *testing.T) {
	ctx := functionContext(t)
	// What these say of a value is not the value.
	exempt := []string{"can", "issensitive", "ephemeralasnull"}
	for name, text := range examples() {
		if slices.Contains(exempt, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			args := exampleArgs(t, text)
			for i := range args {
				with := slices.Clone(args)
				with[i] = ephemeral(args[i])
				v, diags := callFunction(t, ctx, name, with)
				if name == "lookup" && i == 2 || name == "convert" && i == 1 { // the default, which is not used; a type
					continue
				}
				if diags.HasErrors() || len(ephemeralNames(v)) == 0 || !containsSensitive(v) {
					t.Errorf("argument %d is ephemeral and the result is %#v, %v", i, v, diags)
				}
			}
		})
	}
}

func TestEphemeralAsNull(t *testing.T) {
	ctx := functionContext(t)
	plain, secret := cty.StringVal("a"), cty.StringVal("b").Mark(sensitiveMark{})
	tests := map[string]struct{ arg, want cty.Value }{
		"ephemeral": {ephemeral(plain), cty.NullVal(cty.String)},
		"unknown":   {ephemeral(cty.UnknownVal(cty.Number)), cty.NullVal(cty.Number)},
		"plain":     {plain, plain},
		"sensitive": {secret, secret},
		"whole object": {
			ephemeral(cty.ObjectVal(map[string]cty.Value{"a": plain})), cty.NullVal(cty.Object(map[string]cty.Type{"a": cty.String})),
		},
		"inside": {
			cty.ObjectVal(map[string]cty.Value{"a": plain, "b": ephemeral(plain), "c": secret}),
			cty.ObjectVal(map[string]cty.Value{"a": plain, "b": cty.NullVal(cty.String), "c": secret}),
		},
		"list": {
			cty.ListVal([]cty.Value{plain, ephemeral(plain)}), cty.ListVal([]cty.Value{plain, cty.NullVal(cty.String)}),
		},
		"of an object": {
			cty.ObjectVal(map[string]cty.Value{"p": ephemeral(plain)}).Mark(objectMark{address: "user.a"}),
			cty.ObjectVal(map[string]cty.Value{"p": cty.NullVal(cty.String)}).Mark(objectMark{address: "user.a"}),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, diags := callFunction(t, ctx, "ephemeralasnull", []cty.Value{tt.arg})
			if diags.HasErrors() || !got.RawEquals(tt.want) {
				t.Errorf("%#v, want %#v (%v)", got, tt.want, diags)
			}
		})
	}
	if got, _ := callFunction(t, ctx, "nonsensitive", []cty.Value{ephemeral(plain)}); !isSensitive(got) {
		t.Errorf("nonsensitive shows an ephemeral value: %#v", got)
	}
}

// TestEphemeralNowhere puts an ephemeral value into every argument of every kind: only secrets take it.
func TestEphemeralNowhere(t *testing.T) {
	for _, k := range schema.Kinds() {
		write := func(name, text string, secret bool) {
			t.Run(k.Name+" "+name, func(t *testing.T) {
				t.Chdir(t.TempDir())
				src := "variable \"x\" {\n  default   = \"hunter2-secret\"\n  ephemeral = true\n}\n" +
					k.Name + " \"o\" {\n" + text + "\n}\n"
				if err := os.WriteFile("main.qod.hcl", []byte(src), 0o644); err != nil {
					t.Fatal(err)
				}
				c, _ := Load(".")
				d, diags := c.Evaluate(Inputs{})
				refused := false
				for _, diag := range diags {
					refused = refused || strings.Contains(diag.Detail, "ephemeral, var.x")
				}
				if refused == secret {
					t.Errorf("secret %v, refused %v", secret, refused)
				}
				var out bytes.Buffer
				if err := WriteDiagnostics(&out, diags, d.Files(), false); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(out.String(), "hunter2") {
					t.Errorf("the value is shown:\n%s", out.String())
				}
			})
		}
		for _, a := range k.Attrs {
			write(a.Name, "  "+a.Name+" = "+ofType(a.Type), a.Secret)
		}
		for _, b := range k.Blocks {
			for _, a := range b.Attrs {
				write(b.Name+"."+a.Name, "  "+b.Name+" {\n    "+a.Name+" = "+ofType(a.Type)+"\n  }", a.Secret)
			}
		}
		for _, text := range []string{"for_each = toset([var.x])", "for_each = { a = 1 }\nname = \"${each.key}${var.x}\"",
			"lifecycle {\n prevent_destroy = var.x == \"\"\n}"} {
			if _, named := k.Attr("name"); named || !strings.Contains(text, "name") {
				write(text, text, false)
			}
		}
	}
}

// ofType is an expression of a type that comes from var.x.
func ofType(t cty.Type) string {
	switch {
	case t.IsSetType():
		return "[var.x]"
	case t == cty.Bool:
		return "var.x == \"a\""
	case t == cty.Number:
		return "length(var.x)"
	}
	return "var.x"
}
