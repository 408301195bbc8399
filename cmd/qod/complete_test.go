package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// Shells are offered addresses, choices and files where the command takes those. Codes: 0 offers files,
// 4 does not.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
	file := small + "user \"all\" {\n  for_each = toset([\"ana\"])\n  tenant = tenant.acme\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	addresses := "tenant.acme\nuser.all[\"ana\"]\n:4\n"
	for words, want := range map[string]string{
		"plan --target ": addresses, "apply --replace ": addresses, "destroy --exclude ": addresses, "render ": addresses,
		"plan --var-file ": ":0\n", "plan --out ": ":0\n", "plan ": ":4\n", "apply ": ":0\n", "apply x ": ":4\n", "fmt a b ": ":0\n",
		"wait --for ": "converged\ngone\n:4\n", "sql --format ": "table\ncsv\njson\n:4\n", "graph --type ": "config\nplan\n:4\n",
		"state s": "show\tShow one object as it is stored\n:4\n", "--chdir ": ":16\n",
	} {
		args := append([]string{"-C", dir, "__complete"}, strings.Split(words, " ")...)
		if args[3] == "--chdir" {
			args = append([]string{"__complete"}, args[3:]...)
		}
		_, out := command(t, "", args...)
		if got, _, _ := strings.Cut(out, "Completion ended"); got != want {
			t.Errorf("qod %soffers %q, want %q", words, got, want)
		}
	}
}

// Where nothing is configured, init writes a file that is valid and in canonical style; beside any other
// file it writes none.
func TestFirstConfiguration(t *testing.T) {
	a := &app{stdout: &strings.Builder{}, paths: &paths{Dir: t.TempDir()}}
	main := filepath.Join(a.paths.Dir, "main.qod.hcl")
	if err := a.firstConfiguration("first"); err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	if formatted, diags := config.Format(main, src); diags.HasErrors() || string(formatted) != string(src) {
		t.Errorf("init writes a file that fmt changes:\n%s", formatted)
	}
	loaded, diags := config.Load(a.paths.Dir)
	desired, more := loaded.Evaluate(config.Inputs{Given: []config.Given{{Name: "ana_password", Value: "correct horse battery"}}})
	if diags = append(diags, more...); len(diags) > 0 || desired.Stack != "first" {
		t.Errorf("stack %q: %v", desired.Stack, diags)
	}
	for _, name := range []string{"a.qod.hcl", "a.qod.json"} {
		a.paths.Dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(a.paths.Dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.firstConfiguration("first"); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(a.paths.Dir); err != nil || len(entries) != 1 {
			t.Errorf("init writes a file beside %s: %v, %v", name, entries, err)
		}
	}
}
