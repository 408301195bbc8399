package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
)

// TestBlocks runs testdata/blocks/*.txtar: what lifecycle, moved, removed, import and check blocks come
// to, and the diagnostics. Files whose names start with json- are read instead of the others, and must come
// to the same but for diagnostics.
func TestBlocks(t *testing.T) {
	archives, err := filepath.Glob("testdata/blocks/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			result, diagnostics := blocks(t, archive, false)
			got := result + diagnostics
			if json, _ := blocks(t, archive, true); json != "" && json != result {
				t.Errorf("JSON (-native +json):\n%s", cmp.Diff(result, json))
			}
			if strings.Contains(got, secret) {
				t.Errorf("a secret is shown:\n%s", got)
			}
			want := ""
			for i, f := range archive.Files {
				if f.Name == "blocks.txt" {
					want = string(f.Data)
					archive.Files = append(archive.Files[:i], archive.Files[i+1:]...)
					break
				}
			}
			if *update {
				if os.Getenv("CI") != "" {
					t.Fatal("-update is for people: what is wanted is reviewed")
				}
				archive.Files = append(archive.Files, txtar.File{Name: "blocks.txt", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("blocks.txt (-want +got):\n%s", diff)
			}
		})
	}
}

// blocks evaluates the archive's files, or those in JSON of the same configuration: "" where it has none.
func blocks(t *testing.T, archive *txtar.Archive, json bool) (result, diagnostics string) {
	t.Helper()
	dir := t.TempDir()
	var in config.Inputs
	found := false
	for _, f := range archive.Files {
		name, isJSON := strings.CutPrefix(f.Name, "json-")
		switch {
		case f.Name == "blocks.txt":
			continue
		case f.Name == "args":
			in = inputs(t, string(f.Data))
			continue
		case isJSON != json && strings.HasPrefix(name, "main."):
			continue
		}
		found = found || isJSON
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if json && !found {
		return "", ""
	}
	t.Chdir(dir)
	c, diags := config.Load(".")
	desired, more := c.Evaluate(in)
	diags = append(diags, more...)
	if diags.HasErrors() && len(desired.Objects)+len(desired.Moves)+len(desired.Imports) > 0 {
		t.Error("objects beside errors")
	}
	if len(diags) > 0 {
		diagnostics = render(t, diags, desired.Files())
	}
	if json && diags.HasErrors() {
		t.Errorf("JSON:\n%s", diagnostics)
	}
	return printBlocks(desired), diagnostics
}

func printBlocks(d *config.Desired) string {
	var b strings.Builder
	for _, o := range d.Objects {
		l := o.Lifecycle
		fmt.Fprintf(&b, "%s", o.Address)
		if len(o.DependsOn) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(o.DependsOn, " "))
		}
		fmt.Fprintln(&b)
		if l.PreventDestroy {
			fmt.Fprintln(&b, "  prevent_destroy")
		}
		if l.IgnoreAll {
			fmt.Fprintln(&b, "  ignore_changes all")
		}
		for _, p := range l.IgnoreChanges {
			fmt.Fprintf(&b, "  ignore_changes %s\n", pathText(p))
		}
		for _, t := range l.ReplaceTriggeredBy {
			fmt.Fprintf(&b, "  replace_triggered_by %s %s\n", t.Address, t.Attr)
		}
	}
	for _, m := range d.Moves {
		fmt.Fprintf(&b, "moved %s -> %s\n", m.From, m.To)
	}
	for _, r := range d.Removals {
		fmt.Fprintf(&b, "removed %s destroy=%v\n", r.From, r.Destroy)
	}
	for _, i := range d.Imports {
		fmt.Fprintf(&b, "import %s = %s\n", i.To, i.ID)
	}
	return b.String()
}

func pathText(p cty.Path) string {
	var names []string
	for _, step := range p {
		names = append(names, step.(cty.GetAttrStep).Name)
	}
	return strings.Join(names, ".")
}

const damagedBlocks = `qod {
  stack = "s"
}
variable "pw" {
  ephemeral = true
  default   = "hunter2-secret"
}
tenant "acme" {
  lifecycle {
    prevent_destroy = var.pw == "x"
    ignore_changes  = [display_name]
  }
}
user "ana" {
  tenant   = tenant.acme
  password = var.pw
  lifecycle {
    replace_triggered_by = [tenant.acme.name]
  }
}
check "c" {
  assert {
    condition     = var.pw == "y"
    error_message = "It is ${var.pw}."
  }
}
import {
  to = user.ana
  id = "acme/${var.pw}"
}
moved {
  from = user.bo
  to   = user.ana
}
`

// TestDamagedBlocksShowNoSecret deletes, doubles and quotes every byte of a configuration with an ephemeral
// variable.
func TestDamagedBlocksShowNoSecret(t *testing.T) {
	t.Chdir(t.TempDir())
	for i := range damagedBlocks {
		before, after := damagedBlocks[:i], damagedBlocks[i:]
		for _, src := range []string{before + after[1:], before + after[:1] + after, before + `"` + after, before} {
			desired, diags := load(t, src, config.Inputs{})
			if text := render(t, diags, desired.Files()); strings.Contains(text, "hunter2") {
				t.Fatalf("the secret of this configuration is shown:\n%s\n%s", src, text)
			}
			for _, i := range desired.Imports {
				if strings.Contains(i.ID.Path, "hunter2") {
					t.Fatalf("the secret of this configuration is in an import:\n%s", src)
				}
			}
		}
	}
}
