package config_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/schema"
)

// load writes main.qod.hcl into the working directory of the test and evaluates it.
func load(t *testing.T, src string, in config.Inputs) (*config.Desired, hcl.Diagnostics) {
	t.Helper()
	if err := os.WriteFile("main.qod.hcl", []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	c, diags := config.Load(".")
	desired, more := c.Evaluate(in)
	return desired, append(diags, more...)
}

const ranged = `qod {
  stack = "s"
}
tenant "acme" {}
role "r" {
  tenant = tenant.acme
  permission {
    catalog    = "a"
    privileges = ["all"]
  }
  permission {
    catalog    = "b"
    privileges = ["all"]
  }
}
pool "p" {
  for_each  = toset(["x"])
  tenant    = "acme"
  tenant_db = "d"
  nodes {
    dual = 2
  }
}
`

func TestRange(t *testing.T) {
	t.Chdir(t.TempDir())
	desired, diags := load(t, ranged, config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := desired.StackRange.String(); got != "main.qod.hcl:2,11-14" || desired.Stack != "s" {
		t.Errorf("stack %q at %s", desired.Stack, got)
	}
	var permissions []cty.Value
	for _, o := range desired.Objects {
		if o.Address == "role.r" {
			permissions = o.Value.GetAttr("permission").AsValueSlice()
		}
	}
	if len(permissions) != 2 {
		t.Fatalf("%d permissions", len(permissions))
	}
	second := permissions[1]
	tests := map[string]struct {
		address string
		path    cty.Path
		want    string
	}{
		"object":               {"role.r", nil, "main.qod.hcl:5,1-9"},
		"argument":             {"role.r", cty.GetAttrPath("tenant"), "main.qod.hcl:6,12-23"},
		"not written":          {"role.r", cty.GetAttrPath("description"), "main.qod.hcl:5,1-9"},
		"no such attribute":    {"role.r", cty.GetAttrPath("x"), "main.qod.hcl:5,1-9"},
		"no attribute":         {"role.r", cty.IndexStringPath("x"), "main.qod.hcl:5,1-9"},
		"blocks":               {"role.r", cty.GetAttrPath("permission"), "main.qod.hcl:7,3-13"},
		"one of the blocks":    {"role.r", cty.GetAttrPath("permission").Index(second), "main.qod.hcl:11,3-13"},
		"argument in one":      {"role.r", cty.GetAttrPath("permission").Index(second).GetAttr("catalog"), "main.qod.hcl:12,18-21"},
		"not written in one":   {"role.r", cty.GetAttrPath("permission").Index(second).GetAttr("table"), "main.qod.hcl:11,3-13"},
		"argument of a block":  {"pool.p[\"x\"]", cty.GetAttrPath("nodes").GetAttr("dual"), "main.qod.hcl:21,12-13"},
		"object of several":    {"pool.p[\"x\"]", nil, "main.qod.hcl:16,1-9"},
		"no such object":       {"pool.q", nil, ":0,0-0"},
		"block of another one": {"pool.p[\"x\"]", cty.GetAttrPath("nodes").GetAttr("read"), "main.qod.hcl:20,3-8"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := desired.Range(tt.address, tt.path).String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

func TestLoadOfNoDirectory(t *testing.T) {
	c, diags := config.Load(filepath.Join(t.TempDir(), "absent"))
	if !diags.HasErrors() || !strings.Contains(diags[0].Detail, "absent") {
		t.Errorf("diagnostics %v, want one that names the directory", diags)
	}
	if desired, _ := c.Evaluate(config.Inputs{}); len(desired.Objects) > 0 {
		t.Error("objects of no directory")
	}
}

func TestLoadIsNotRecursive(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{"sub", "dir.qod.hcl"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "x.qod.hcl"), []byte("broken"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(".hidden.qod.hcl", []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, diags := load(t, ranged, config.Inputs{}); diags.HasErrors() {
		t.Error(diags)
	}
}

func TestEvaluateTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	src := "qod {\n  stack = \"s\"\n}\nvariable \"v\" {}\ntenant \"t\" {\n  display_name = var.v\n}\n"
	if err := os.WriteFile("main.qod.hcl", []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	c, diags := config.Load(".")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, want := range []string{"a", "b"} {
		desired, diags := c.Evaluate(config.Inputs{Given: []config.Given{{Name: "v", Value: want}}})
		if diags.HasErrors() || len(desired.Objects) != 1 {
			t.Fatal(diags)
		}
		if got := desired.Objects[0].Value.GetAttr("display_name").AsString(); got != want {
			t.Errorf("display_name %q, want %q", got, want)
		}
	}
	if _, diags := c.Evaluate(config.Inputs{}); !diags.HasErrors() {
		t.Error("a value of an earlier evaluation is left over")
	}
}

// TestManyObjects holds the cost of evaluation to what a person waits for.
func TestManyObjects(t *testing.T) {
	t.Chdir(t.TempDir())
	src := &bytes.Buffer{}
	src.WriteString("qod {\n  stack = \"s\"\n}\ntenant \"t\" {}\n")
	for i := range 1000 {
		fmt.Fprintf(src, "role \"r%d\" {\n  tenant = tenant.t\n}\n", i)
		fmt.Fprintf(src, "user \"u%d\" {\n  roles = [role.r%d]\n}\n", i, i)
	}
	src.WriteString("user \"all\" {\n  for_each = toset([for i in range(1000) : \"v${i}\"])\n  roles = [role.r1]\n}\n")
	desired, diags := load(t, src.String(), config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if len(desired.Objects) != 3001 {
		t.Errorf("%d objects, want 3001", len(desired.Objects))
	}
}

func TestObjectsAreWhole(t *testing.T) {
	t.Chdir(t.TempDir())
	desired, diags := load(t, ranged, config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, o := range desired.Objects {
		if o.Value.ContainsMarked() || !o.Value.IsWhollyKnown() {
			t.Errorf("%s has marks or unknown values", o.Address)
		}
		if !o.Value.Type().Equals(o.Kind.Type()) {
			t.Errorf("%s is a %s", o.Address, o.Value.Type().GoString())
		}
		if _, err := schema.ParseAddr(o.Addr().String()); err != nil {
			t.Error(err)
		}
	}
}
