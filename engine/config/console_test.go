package config_test

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// Expressions see what the configuration sees, and what is printed of them has no secret.
func TestValue(t *testing.T) {
	t.Chdir(t.TempDir())
	desired, diags := load(t, `
qod {
  stack = "s"
}
variable "secret" {
  default   = "hunter22"
  sensitive = true
}
locals {
  words = toset(["b", "a"])
}
tenant "acme" {}
user "all" {
  for_each = { "a.b@c.de" = null }
  tenant   = tenant.acme
  email    = each.value
}
`, config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for expr, want := range map[string]string{
		"tenant.acme.name":                         `"acme"`,
		`user.all["a.b@c.de"].email`:               "null",
		"local.words":                              "toset([\n  \"a\",\n  \"b\",\n])",
		"var.secret":                               "(sensitive value)",
		`"x ${var.secret}"`:                        "(sensitive value)",
		"{ \"a b\" = [var.secret], c = {} }":       "{\n  \"a b\" = [\n    (sensitive value),\n  ]\n  c = {}\n}",
		"9007199254740993":                         "9007199254740993",
		`{ for k, u in user.all : k => u.tenant }`: "{\n  \"a.b@c.de\" = \"acme\"\n}",
		"user.nobody":                              "error",
		"1 +":                                      "error",
		"tonumber(var.secret)":                     "error",
		"each.key":                                 "error",
	} {
		v, diags := desired.Value(expr)
		got := "error"
		if !diags.HasErrors() {
			got = config.FormatValue(v)
		}
		if got != want {
			t.Errorf("%s is %s, want %s (%v)", expr, got, want, diags)
		}
	}
}

// What is typed as a secret is not repeated in what is wrong with it.
func TestValueShowsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	desired, _ := load(t, "qod {\n  stack = \"s\"\n}\n", config.Inputs{})
	for _, expr := range []string{`sensitive("hunter2") + 1`, `sensitive("hunter2`, `{ password = "hunter2" } + 1`} {
		_, diags := desired.Value(expr)
		var out strings.Builder
		if err := config.WriteDiagnostics(&out, diags, desired.Files(), false); err != nil {
			t.Fatal(err)
		}
		if !diags.HasErrors() || strings.Contains(out.String(), "hunter2") || !strings.Contains(out.String(), "(sensitive)") {
			t.Errorf("%s: %s", expr, out.String())
		}
	}
}

func TestIncomplete(t *testing.T) {
	for expr, want := range map[string]bool{"[": true, "{ a = (": true, "f(1": true, "[1]": false, "1 +": false, "\"${x\"": true, "]": false, "": false} {
		if got := config.Incomplete(expr); got != want {
			t.Errorf("%q: %t", expr, got)
		}
	}
}
