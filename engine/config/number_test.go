package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// A number that would be hundreds of megabytes of text is refused wherever it stands.
func TestNumbersOutOfRange(t *testing.T) {
	const base = "qod {\n  stack = \"s\"\n}\nvariable \"n\" {\n  type    = number\n  default = 1\n}\nvariable \"l\" {\n  type    = list(number)\n  default = []\n}\n" +
		"output \"n\" {\n  value = \"x${var.n}${jsonencode(var.l)}\"\n}\n"
	tests := map[string]struct {
		files map[string]string
		given []config.Given
		want  string
	}{
		"template":   {files: map[string]string{"a.qod.hcl": "tenant \"a\" {\n  display_name = \"${1e600000000}\"\n}\n"}, want: "a.qod.hcl line 2"},
		"argument":   {files: map[string]string{"a.qod.hcl": "tenant \"a\" {\n  display_name = 1e-600000000\n}\n"}, want: "a.qod.hcl line 2"},
		"digits":     {files: map[string]string{"a.qod.hcl": "locals {\n  a = 1" + strings.Repeat("0", 1300) + "\n}\n"}, want: "a.qod.hcl line 2"},
		"JSON":       {files: map[string]string{"a.qod.json": "{\"locals\": {\n\"a\": 1e600000000}}"}, want: "a.qod.json line 2"},
		"in JSON":    {files: map[string]string{"a.qod.json": "{\"locals\": {\n\"a\": \"${1e600000000}\"}}"}, want: "a.qod.json line 2"},
		"escaped":    {files: map[string]string{"a.qod.json": "{\"locals\": {\n\"a\": \"${\\u0031e600000000}\"}}"}, want: "a.qod.json line 2"},
		"var file":   {files: map[string]string{"a.auto.qodvars.hcl": "n = 1e600000000\n"}, want: "a.auto.qodvars.hcl line 1"},
		"JSON vars":  {files: map[string]string{"v.json": "{\"n\": 1e600000000}"}, given: []config.Given{{File: "v.json"}}, want: "v.json line 1"},
		"text":       {given: []config.Given{{Name: "n", Value: "1e600000000"}}, want: "too many digits"},
		"expression": {given: []config.Given{{Name: "l", Value: "[1e600000000]"}}, want: "value for var.l"},
		"jsondecode": {files: map[string]string{"a.qod.hcl": "locals {\n  a = jsondecode(\"1e600000000\")\n}\n"}, want: "too many digits"},
		"fine":       {files: map[string]string{"a.qod.hcl": "locals {\n  a = 1e1000\n  b = \"1e600000000\"\n}\n"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := complaints(t, base, tt.files, tt.given)
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) || len(got) > 3000 {
				t.Errorf("got %.3000s", got)
			}
		})
	}
}

// complaints evaluates a configuration of main.qod.hcl and other files and returns what is wrong with it.
func complaints(t *testing.T, main string, files map[string]string, given []config.Given) string {
	t.Helper()
	t.Chdir(t.TempDir())
	for file, text := range files {
		put(t, ".", file, text)
	}
	put(t, ".", "main.qod.hcl", main)
	c, diags := config.Load(".")
	d, more := c.Evaluate(config.Inputs{Given: given})
	return render(t, append(diags, more...), d.Files())
}

// Locals that share their parts would be walked for years.
func TestSharedParts(t *testing.T) {
	for name, double := range map[string]string{"list": "[local.l%d, local.l%d]", "object": "{ a = local.l%d, b = local.l%d }", "text": "\"${local.l%d}${local.l%d}\""} {
		t.Run(name, func(t *testing.T) {
			src := &strings.Builder{}
			src.WriteString("qod {\n  stack = \"s\"\n}\nlocals {\n  l0 = \"a\"\n")
			for i := range 60 {
				fmt.Fprintf(src, "  l%d = "+double+"\n", i+1, i, i)
			}
			src.WriteString("}\noutput \"o\" {\n  value = local.l60\n}\n")
			t.Chdir(t.TempDir())
			put(t, ".", "main.qod.hcl", src.String())
			c, diags := config.Load(".")
			d, more := c.Evaluate(config.Inputs{})
			if got := render(t, append(diags, more...), d.Files()); !strings.HasPrefix(got, "Error: Value too large") || strings.Count(got, "Value too large") != strings.Count(got, "Error:") {
				t.Errorf("got %.3000s", got)
			}
		})
	}
}
