package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/schema"
)

const withModules = `qod {
  stack = "s"
}
tenant "acme" {}
user "all" {
  for_each = toset(["ana"])
  tenant   = tenant.acme
}
module "region" {
  for_each = { eu = 1, us = 2 }
  source   = "./region"
  tenant   = tenant.acme
}
module "one" {
  source = "./region"
  tenant = "acme"
  name   = "one"
}
`

const region = `variable "tenant" {}
variable "name" {
  default = "r"
}
role "r" {
  tenant = var.tenant
  name   = "${var.name}-x"
  permission {
    privileges = ["all"]
  }
}
`

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestRangeInModule(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "region/main.qod.hcl", region)
	desired, diags := load(t, strings.Replace(withModules, "us = 2", "", 1), config.Inputs{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	tests := map[string]struct {
		path cty.Path
		want string
	}{
		"object":   {nil, "region/main.qod.hcl:5,1-9"},
		"argument": {cty.GetAttrPath("name"), "region/main.qod.hcl:7,12-27"},
		"block":    {cty.GetAttrPath("permission"), "region/main.qod.hcl:8,3-13"},
	}
	for name, tt := range tests {
		for _, address := range []string{`module.region["eu"].role.r`, "module.one.role.r"} {
			if got := desired.Range(address, tt.path).String(); got != tt.want {
				t.Errorf("%s of %s at %s, want %s", name, address, got, tt.want)
			}
		}
	}
	if _, ok := desired.Files()["region/main.qod.hcl"]; !ok {
		t.Error("the module's file is not among the files")
	}
}

func TestAbsence(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "region/main.qod.hcl", region)
	desired, _ := load(t, withModules, config.Inputs{})
	tests := map[string]schema.Absence{
		"tenant.acme":                "",
		"tenant.other":               schema.NoBlock,
		`tenant.acme["x"]`:           schema.WrongRepetition,
		"user.all":                   schema.WrongRepetition,
		`user.all["ana"]`:            "",
		`user.all["bo"]`:             schema.NoKey,
		"module.none.role.r":         schema.NoModule,
		"module.region.role.r":       schema.NoModule,
		`module.region["x"].role.r`:  schema.NoModule,
		`module.region["eu"].role.r`: "",
		`module.region["eu"].role.s`: schema.NoBlock,
		`module.one.role.r["x"]`:     schema.WrongRepetition,
		`module.one["x"].role.r`:     schema.NoModule,
		"module.one":                 "",
	}
	for text, want := range tests {
		address, err := schema.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := desired.Absence(address); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestModuleOutside refuses sources that leave the directory of the configuration, by links too.
func TestModuleOutside(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "outside", "x.qod.hcl"), "tenant \"x\" {}\n")
	writeFile(t, filepath.Join(dir, "root", "inside", "x.qod.hcl"), "module \"m\" {\n  source = \"../../outside\"\n}\n")
	writeFile(t, filepath.Join(dir, "root", "good", "x.qod.hcl"), "tenant \"y\" {}\n")
	if err := os.Symlink(filepath.Join(dir, "outside"), filepath.Join(dir, "root", "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good", filepath.Join(dir, "root", "alias")); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{".", filepath.Join(dir, "root")} {
		t.Chdir(filepath.Join(dir, "root"))
		for source, good := range map[string]bool{
			"../outside": false, "./link": false, "./inside": false, "./alias": true, "./inside/../good": true,
		} {
			writeFile(t, "main.qod.hcl", "qod {\n  stack = \"s\"\n}\nmodule \"m\" {\n  source = \""+source+"\"\n}\n")
			c, diags := config.Load(at)
			desired, more := c.Evaluate(config.Inputs{})
			diags = append(diags, more...)
			if good && (diags.HasErrors() || len(desired.Objects) != 1) {
				t.Errorf("%s: %v", source, diags)
			}
			if !good && !refused(diags) {
				t.Errorf("%s is not refused: %v", source, diags)
			}
		}
	}
}

func refused(diags hcl.Diagnostics) bool {
	for _, d := range diags {
		if d.Summary == "Module outside of the configuration" {
			return true
		}
	}
	return false
}
