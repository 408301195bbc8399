package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/schema"
)

// diagnostics evaluates a file and returns what is wrong, for programs.
func diagnostics(t *testing.T, source string) []schema.Diagnostic {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	c, diags := config.Load(".")
	desired, more := c.Evaluate(config.Inputs{Env: func(string) (string, bool) { return "", false }})
	return config.Diagnostics(append(diags, more...), desired.Files())
}

const head = "qod {\n  stack = \"s\"\n}\n"

func TestDiagnosticForPrograms(t *testing.T) {
	got := diagnostics(t, head+"locals {\n  size = \"2 spoons\"\n}\npool \"bi\" {\n  tenant    = \"a\"\n  tenant_db = \"d\"\n  memory    = local.size\n}\n")
	if len(got) != 1 {
		t.Fatalf("%d diagnostics: %v", len(got), got)
	}
	if got[0].Detail == "" || got[0].Summary == "" {
		t.Errorf("nothing is said: %+v", got[0])
	}
	got[0].Summary, got[0].Detail = "", ""
	want := schema.Diagnostic{
		Severity: "error",
		Range: &schema.SourceRange{
			Filename: "main.qod.hcl", Start: schema.SourcePosition{Line: 10, Column: 15}, End: schema.SourcePosition{Line: 10, Column: 25},
		},
		Snippet: &schema.Snippet{
			Context: `pool "bi"`, StartLine: 10, Code: "  memory    = local.size",
			Values: []schema.SnippetValue{{Traversal: "local.size", Statement: `is "2 spoons"`}},
		},
	}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("diagnostic (-want +got):\n%s", diff)
	}
}

func TestDiagnosticOfManyObjects(t *testing.T) {
	got := diagnostics(t, head+"pool \"bi\" {\n  for_each  = toset([\"x\", \"y\", \"z\"])\n  tenant    = \"a\"\n  tenant_db = \"d\"\n  memory    = \"2 spoons\"\n}\n")
	if len(got) != 1 || got[0].Repeated != 2 || got[0].Address != `pool.bi["x"]` {
		t.Errorf("diagnostics: %+v", got)
	}
}

// The place of a diagnostic must not tell how long a secret is, neither in it nor behind it.
func TestPlaceTellsNoLength(t *testing.T) {
	block := func(password string) string {
		return head + "tenant \"a\" {}\nuser \"ana\" {\n  tenant = tenant.a\n  password = \"" + password + "\" + var.none\n}\n"
	}
	short, long := diagnostics(t, block("x")), diagnostics(t, block("x-and-twenty-more"))
	if len(short) == 0 || short[0].Range == nil {
		t.Fatalf("no place: %+v", short)
	}
	if diff := cmp.Diff(short, long); diff != "" {
		t.Errorf("the diagnostics tell the secrets apart (-short +long):\n%s", diff)
	}
}
