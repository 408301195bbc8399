package config_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

const damaged = `qod {
  stack = "s"
}
variable "pw" {
  sensitive = true
  default   = "hunter2-secret"
}
tenant "acme" {
  display_name = "Acme"
}
user "ana" {
  tenant   = tenant.acme
  password = "hunter2-secret"
  email    = "a@b.c"
}
user "bo" {
  tenant = tenant.acme
  password = <<-EOT
    hunter2-secret
  EOT
  email  = var.pw
}
`

// TestDamageShowsNoSecret deletes, doubles and quotes every byte of a configuration.
func TestDamageShowsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	const word = "hunter2"
	damages := map[string]func(i int) string{
		"without": func(i int) string { return damaged[:i] + damaged[i+1:] },
		"twice":   func(i int) string { return damaged[:i+1] + damaged[i:] },
		"quote":   func(i int) string { return damaged[:i] + `"` + damaged[i:] },
		"cut":     func(i int) string { return damaged[:i] },
	}
	for name, damage := range damages {
		for i := range damaged {
			src := damage(i)
			desired, diags := load(t, src, config.Inputs{})
			var out bytes.Buffer
			if err := config.WriteDiagnostics(&out, diags, desired.Files(), false); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), word) {
				t.Fatalf("%s byte %d (%q) shows the secret:\n%s", name, i, damaged[max(0, i-10):min(len(damaged), i+10)], out.String())
			}
		}
	}
}

// TestDamagedVarFileShowsNoSecret does the same to a var file.
func TestDamagedVarFileShowsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	const word = "hunter2"
	const good = "region = \"eu\"\npw = \"hunter2-secret\"\nkeys = {\n  a = \"hunter2-secret\"\n}\n"
	const src = `qod {
  stack = "s"
}
variable "region" {}
variable "pw" {
  type      = string
  sensitive = true
}
variable "keys" {
  type      = map(number)
  sensitive = true
}
`
	for i := range good {
		for _, vars := range []string{good[:i] + good[i+1:], good[:i] + `"` + good[i:], good[:i+1] + good[i:], good[:i]} {
			if err := os.WriteFile("v.hcl", []byte(vars), 0o644); err != nil {
				t.Fatal(err)
			}
			desired, diags := load(t, src, config.Inputs{Given: []config.Given{{File: "v.hcl"}}})
			var out bytes.Buffer
			if err := config.WriteDiagnostics(&out, diags, desired.Files(), false); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), word) {
				t.Fatalf("the secret of this file is shown:\n%s\n%s", vars, out.String())
			}
		}
	}
}

const damagedJSON = `{
  "qod": {"stack": "s"},
  "variable": {
    "pw": {"sensitive": true, "default": "hunter2-secret"}
  },
  "locals": {"x": "${upper(\"a\")}"},
  "user": {
    "ana": {
      "tenant": "acme",
      "password": "hunter2-secret",
      "email": "a@b.c"
    },
    "bo": {"tenant": "acme", "password": "${lower(\"hunter2-secret\")}", "email": "${var.pw}"}
  }
}
`

// TestDamagedJSONShowsNoSecret does the same to both kinds of file in JSON.
func TestDamagedJSONShowsNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	const vars = "{\n  \"region\": \"eu\", \"pw\": \"hunter2-secret\",\n  \"keys\": {\n    \"a\": \"hunter2-secret\"\n  }\n}\n"
	const src = "qod {\n  stack = \"s\"\n}\nvariable \"region\" {}\nvariable \"pw\" {\n  sensitive = true\n}\n" +
		"variable \"keys\" {\n  type = map(number)\n  sensitive = true\n}\n"
	const word = "hunter2"
	check := func(what, file string, in config.Inputs) {
		if err := os.WriteFile(file, []byte(what), 0o644); err != nil {
			t.Fatal(err)
		}
		c, diags := config.Load(".")
		desired, more := c.Evaluate(in)
		var out bytes.Buffer
		if err := config.WriteDiagnostics(&out, append(diags, more...), desired.Files(), false); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), word) {
			t.Fatalf("the secret of this file is shown:\n%s\n%s", what, out.String())
		}
	}
	damages := func(good string, i int) []string {
		return []string{good[:i] + good[i+1:], good[:i+1] + good[i:], good[:i] + `"` + good[i:], good[:i], good[:i] + "}" + good[i:]}
	}
	for i := range damagedJSON {
		for _, what := range damages(damagedJSON, i) {
			check(what, "main.qod.json", config.Inputs{})
		}
	}
	if err := os.Remove("main.qod.json"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("main.qod.hcl", []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range vars {
		for _, what := range damages(vars, i) {
			check(what, "v.json", config.Inputs{Given: []config.Given{{File: "v.json"}}})
		}
	}
}
