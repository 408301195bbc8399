package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormat(t *testing.T) {
	tests := map[string]struct{ name, src, want string }{
		"aligns":              {"", "a = 1\nlong=2\n", "a    = 1\nlong = 2\n"},
		"indents":             {"", "a \"b\" {\nc=1\n      d {\n}\n}\n", "a \"b\" {\n  c = 1\n  d {\n  }\n}\n"},
		"final newline":       {"", "a {}", "a {}\n"},
		"no blank at ends":    {"", "\n\n\na {}\n\n\n", "a {}\n"},
		"nothing":             {"", "", ""},
		"only blank":          {"", "\n \n\n", ""},
		"collapses":           {"", "a {\n\n\n  b = 1\n\n\n\n  c = 2\n\n}\n", "a {\n  b = 1\n\n  c = 2\n}\n"},
		"separates blocks":    {"", "a {}\nb {}\n", "a {}\n\nb {}\n"},
		"separates by one":    {"", "a {\n}\n\n\n\nb {\n}\n", "a {\n}\n\nb {\n}\n"},
		"comment of a block":  {"", "a {}\n# of b\nb {}\n", "a {}\n\n# of b\nb {}\n"},
		"comment behind":      {"", "a {} # of a\nb {} // of b  \n", "a {} # of a\n\nb {} // of b\n"},
		"long comment":        {"", "/* one  \n   two */\na {}\n", "/* one\n   two */\na {}\n"},
		"space at ends":       {"", "a = 1  \nb {  \n}\t\n", "a = 1\nb {\n}\n"},
		"heredoc":             {"", "a = <<EOT\nx  \n\n\n\ny\nEOT\nb=1\n", "a = <<EOT\nx  \n\n\n\ny\nEOT\nb = 1\n"},
		"lists":               {"", "a = [\n\n1,\n\n\n2,\n\n]\n", "a = [\n  1,\n\n  2,\n]\n"},
		"return and newline":  {"", "a = 1\r\n\r\n\r\nb = 2 # x\r\n", "a = 1\n\nb = 2 # x\n"},
		"strings stay":        {"", "a = \"x  ${ b }  y\"\n", "a = \"x  ${b}  y\"\n"},
		"JSON":                {"x.qod.json", "{\"b\":1.50,\"a\":[ 9007199254740993, \"<\\u0041>\" ],\"c\":{ }}", "{\n  \"b\": 1.50,\n  \"a\": [\n    9007199254740993,\n    \"<\\u0041>\"\n  ],\n  \"c\": {}\n}\n"},
		"JSON with duplicate": {"x.qod.json", "{\"a\":1,\"a\":2}", "{\n  \"a\": 1,\n  \"a\": 2\n}\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := tt.name
			if file == "" {
				file = "x.qod.hcl"
			}
			got, diags := Format(file, []byte(tt.src))
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			again, diags := Format(file, got)
			if diags.HasErrors() || string(again) != string(got) {
				t.Errorf("formatted again:\n%s\n%v", again, diags)
			}
		})
	}
}

func TestFormatLeavesBrokenFiles(t *testing.T) {
	for name, src := range map[string]string{
		"x.qod.hcl": "a = \n", "y.qod.hcl": "a {\n", "z.qod.hcl": "a = \"hunter2\n", "x.qod.json": "{\"a\": hunter2}", "y.qod.json": "{",
		"z.qod.json": "1",
	} {
		out, diags := Format(name, []byte(src))
		if out != nil || !diags.HasErrors() || diags[0].Subject == nil || diags[0].Subject.Filename != name {
			t.Errorf("%s: %q, %v", src, out, diags)
		}
		if strings.Contains(diags.Error(), "hunter2") {
			t.Errorf("%s shows a secret: %v", name, diags)
		}
	}
}

// Our own files are as fmt wants them.
func TestExamplesAreFormatted(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*/*.hcl")
	if err != nil || len(paths) < 5 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out, diags := Format(path, src)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		if diff := cmp.Diff(string(src), string(out)); diff != "" {
			t.Errorf("%s (-is +formatted):\n%s", path, diff)
		}
	}
}

func TestFormats(t *testing.T) {
	for name, want := range map[string]bool{
		"main.qod.hcl": true, "a.qod.json": true, "x.auto.qodvars.hcl": true, "x.qodvars.hcl": true, "main.hcl": false, "a.json": false,
		".qod.lock.hcl": false,
	} {
		if Formats(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

func TestMasked(t *testing.T) {
	tests := map[string]struct{ name, src string }{
		"argument": {"x.qod.hcl", "user \"a\" {\n  password = \"hunter2\"\n}\n"},
		"default":  {"x.qod.hcl", "variable \"a\" {\n  default = \"hunter2\"\n}\n"},
		"call":     {"x.qod.hcl", "locals {\n  a = sensitive(\"hunter2\")\n}\n"},
		"value":    {"x.qodvars.hcl", "a = \"hunter2\"\n"},
		"input":    {"x.qod.hcl", "module \"a\" {\n  source = \"./a\"\n  key = { x = \"hunter2\" }\n}\n"},
		"output":   {"x.qod.hcl", "output \"a\" {\n  value = \"hunter2\"\n}\n"},
		"JSON in":  {"x.qod.json", "{\"module\": {\"a\": {\"key\": [\"hunter2\"]}}}"},
		"JSON out": {"x.qod.json", "{\"output\": {\"a\": {\"value\": \"hunter2\"}}}"},
		"JSON":     {"x.qod.json", "{\"user\": {\"a\": {\"password\": \"hunter2\"}}}"},
	}
	for name, tt := range tests {
		got := string(Masked(tt.name, []byte(tt.src)))
		if strings.Contains(got, "hunter2") || !strings.Contains(got, maskText) || !strings.Contains(got, "a") {
			t.Errorf("%s: %s", name, got)
		}
	}
	plain := "tenant \"a\" {\n  display_name = \"Acme\"\n}\n"
	if got := string(Masked("x.qod.hcl", []byte(plain))); got != plain {
		t.Errorf("masked %s", got)
	}
}
