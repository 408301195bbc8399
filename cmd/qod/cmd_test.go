package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qod-io/qod/schema"
)

const (
	small    = "qod {\n  stack = \"s\"\n}\ntenant \"acme\" {}\n"
	bad      = "qod {\n  stack = \"s\"\n}\ntennant \"acme\" {}\n"
	variable = "qod {\n  stack = \"s\"\n}\nvariable \"n\" {}\ntenant \"acme\" {\n  display_name = var.n\n}\n"
)

// Commands that need no state say clearly what is wrong, never wait for a person who is not there, and
// make no state.
func TestCommandLine(t *testing.T) {
	for name, tt := range commandLines() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(tt.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Chdir(dir)
			t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
			code, out := command(t, "", tt.args...)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit code %d, want %d, with %q:\n%s", code, tt.code, tt.want, out)
			}
			if _, err := os.Stat(filepath.Join(dir, "state")); err == nil {
				t.Error("state was made")
			}
		})
	}
}

type commandLine struct {
	file string // main.qod.hcl; "" for none
	args []string
	code int
	want string
}

func commandLines() map[string]commandLine {
	return map[string]commandLine{
		"version":       {"", []string{"version"}, 0, "DuckDB v1.5.5"},
		"unknown":       {"", []string{"aply"}, 1, "unknown command"},
		"no files":      {"", []string{"validate"}, 1, "qod init"},
		"valid":         {small, []string{"validate"}, 0, `stack "s" is valid: 1 object.`},
		"system stack":  {"qod {\n  stack = \"system\"\n}\n", []string{"validate"}, 1, "qod's own"},
		"valid JSON":    {small, []string{"validate", "--json"}, 0, `"valid": true`},
		"bad JSON":      {"qod {\n  stack = \"s\"\n}\ntennant \"acme\" {}\n", []string{"validate", "-json"}, 1, `"error_count": 1`},
		"no files JSON": {"", []string{"validate", "--json"}, 1, `"summary": "No configuration files"`},
		"show nothing":  {small, []string{"show"}, 1, `nothing is stored of stack "s"`},
		"show no stack": {"", []string{"show"}, 1, "say which with --stack"},
		"show no plan":  {small, []string{"show", "next.qodplan"}, 1, "no such file"},
		"show no state": {small, []string{"show", "main.qod.hcl"}, 1, "there is no state here"},
		"bad block":     {bad, []string{"validate"}, 1, `Did you mean "tenant"?`},
		"plan afresh":   {small, []string{"plan", "--detailed-exitcode"}, 2, "Plan: 1 to add"},
		"one dash":      {variable, []string{"plan", "-detailed-exitcode", "-var", "n=-x"}, 2, `display_name = "-x"`},
		"plan saved":    {small, []string{"plan", "--out", "x"}, 1, "run qod init first"},
		"plan bad":      {bad, []string{"plan", "--json"}, 1, `"errored": true`},
		"plan bad var":  {variable, []string{"plan", "--json", "--destroy", "--var", "m=1"}, 1, `"mode": "destroy"`},
		"plan warns":    {small + "check \"c\" {\n  assert {\n    condition     = tenant.acme.name == \"x\"\n    error_message = \"It is not x.\"\n  }\n}\n", []string{"plan", "--json"}, 0, `"severity": "warning"`},
		"no policy":     {small, []string{"plan", "--policy", "policies"}, 1, "Policy directory not readable"},
		"empty policy":  {small, []string{"plan", "--policy", "."}, 1, "No policy files"},
		"unset policy":  {small, []string{"apply", "--policy="}, 1, "want a directory with checks"},
		"policy JSON":   {small, []string{"plan", "--policy", ".", "--json"}, 1, `"summary": "No policy files"`},
		"show policy":   {small, []string{"show", "--policy", "."}, 1, "--policy is for a saved plan"},
		"drift bad":     {bad, []string{"drift", "--json"}, 1, `Did you mean \"tenant\"?`},
		"apply bad":     {bad, []string{"apply", "--json", "--auto-approve"}, 1, `"type":"done","level":"error","message":"the configuration has errors"`},
		"bad target":    {small, []string{"plan", "--target", "tennant.acme"}, 1, `--target: parse address "tennant.acme"`},
		"two modes":     {small, []string{"plan", "--destroy", "--refresh-only"}, 1, "--destroy and --refresh-only exclude each other"},
		"no steps":      {small, []string{"apply", "--parallelism", "0"}, 1, "--parallelism=0: want 1 or more"},
		"no waiting":    {small, []string{"destroy", "--lock-timeout", "-1s"}, 1, "--lock-timeout=-1s: want 0s or more"},
		"saved and var": {variable, []string{"apply", "-var", "n=x", "-target", "tenant.acme", "-parallelism=3", "x.qodplan"}, 1, "leave out --target, --var,"},
		"drift afresh":  {"qod {\n  stack = \"s\"\n}\n", []string{"drift"}, 0, "There is no state yet"},
		"destroy empty": {"qod {\n  stack = \"s\"\n}\n", []string{"destroy"}, 0, "No changes"},
		"bad setting":   {"", []string{"--drain-timeout-sec", "x", "config"}, 1, "--drain-timeout-sec=x"},
		"HA":            {"", []string{"--ha-enabled", "true", "serve"}, 1, "QOD_HA_ENABLED"},
		"no password":   {"", []string{"sql", "--user", "a@b/c", "SELECT 1"}, 1, "no password"},
		"bad format":    {"", []string{"sql", "--format", "xml", "SELECT 1"}, 1, "want table, csv or json"},
		"node by hand":  {"", []string{"node", "--id", "x"}, 1, "nodes are started by serve and apply"},
		"status":        {"", []string{"status"}, 0, "There is no state yet"},
		"status JSON":   {"", []string{"status", "--json"}, 0, `"pools": []`},
		"history":       {small, []string{"history"}, 0, "There is no state yet"},
		"history JSON":  {small, []string{"history", "--json"}, 0, `"commits": []`},
		"history of":    {small, []string{"history", "1"}, 1, "there is no state yet"},
		"diff":          {small, []string{"diff", "1"}, 1, "there is no state yet"},
		"rollback":      {small, []string{"rollback", "1"}, 1, "there is no state yet"},
		"rollback JSON": {small, []string{"rollback", "1", "--json", "--auto-approve"}, 1, `"message":"there is no state yet`},
		"rollback asks": {small, []string{"rollback", "1", "--json"}, 1, "--json asks nobody"},
		"no stack":      {"", []string{"rollback", "1"}, 1, "say which with --stack"},
		"output":        {small, []string{"output"}, 1, "there is no state yet"},
		"output raw":    {small, []string{"output", "--raw"}, 1, "give its name"},
		"access":        {small, []string{"access", "ana"}, 1, "there is no state yet"},
		"access test":   {small, []string{"access", "test", "main.qod.hcl"}, 1, `Blocks of type "qod" are not expected here`},
		"state list":    {small, []string{"state", "list"}, 0, "There is no state yet"},
		"state show":    {small, []string{"state", "show", "tenant.acme"}, 1, "there is no state yet"},
		"state mv":      {small, []string{"state", "mv", "tenant.a", "tenant.b"}, 1, "there is no state yet"},
		"state rm":      {small, []string{"state", "rm", "tenant.a"}, 1, "there is no state yet"},
		"complete":      {small, []string{"__complete", "state", "mv", ""}, 0, ":4"},
		"down":          {"", []string{"down"}, 0, "Nothing runs here"},
		"scale factor":  {"", []string{"load", "tpch", "--sf", "0", "a/b"}, 1, "want a scale factor above 0"},
	}
}

// command runs a command line in this process, and returns its exit code and all that it said.
func command(t *testing.T, stdin string, args ...string) (code int, out string) {
	t.Helper()
	said := &bytes.Buffer{}
	a := &app{stdin: strings.NewReader(stdin), stdout: said, stderr: said, env: os.LookupEnv}
	code = a.run(t.Context(), args)
	return code, said.String()
}

// Files that a command line names lie where -C says, and diagnostics name them as people find them.
func TestFilesOfAnotherDirectory(t *testing.T) {
	root := t.TempDir()
	for name, src := range map[string]string{
		"main.qod.hcl": variable, "good.qodvars.hcl": "n = \"x\"\n", "bad.qodvars.hcl": "m = 1\n", "a.sql": "", "pw": "x",
	} {
		if err := os.MkdirAll(filepath.Join(root, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "in", name), []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
	t.Setenv("QOD_STATE_DIR", filepath.Join(root, "state"))
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"validate", "--var-file", "good.qodvars.hcl"}, 0, "is valid"},
		{[]string{"validate", "--var-file", "bad.qodvars.hcl"}, 1, "in/bad.qodvars.hcl line 1"},
		{[]string{"validate", "--var-file", filepath.Join(root, "in", "good.qodvars.hcl")}, 0, "is valid"},
		{[]string{"show", "main.qod.hcl"}, 1, "there is no state here"},
		{[]string{"apply", "main.qod.hcl"}, 1, "there is no state that the plan"},
		{[]string{"fmt", "--check", "main.qod.hcl"}, 3, "main.qod.hcl"},
		{[]string{"sql", "--user", "a@b/c", "--password-file", "pw", "-f", "a.sql"}, 1, "no serve runs"},
		{[]string{"sql", "--address", "x:1", "--user", "a@b/c", "--password-file", "pw", "--ca-file", "pw", "SELECT 1"}, 1, "holds none"},
	} {
		code, out := command(t, "", append([]string{"-C", "in"}, tt.args...)...)
		if code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("qod %v: exit code %d:\n%s", tt.args, code, out)
		}
	}
}

// A lock file that a merge left half-done says what it is and where to get a good one.
func TestDamagedLockFile(t *testing.T) {
	for _, text := range []string{"<<<<<<< HEAD\n", "stack \"s\" {\n  lineage = 1\n}\n", "stack \"s\" {\n  lineage = null\n}\n", "stack {}\n"} {
		dir := t.TempDir()
		for name, src := range map[string]string{"main.qod.hcl": small, lockFile: text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		t.Chdir(dir)
		t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
		code, out := command(t, "", "plan")
		if code != 1 || !strings.Contains(out, ".qod.lock.hcl is damaged") || !strings.Contains(out, "version control") || strings.Contains(out, filepath.Join(dir, lockFile)) {
			t.Errorf("%q: exit code %d:\n%s", text, code, out)
		}
	}
}

// A program that asks for JSON gets nothing else, also where the configuration is not valid.
func TestBadConfigurationAsJSON(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
	for _, args := range [][]string{
		{"plan", "--json"}, {"plan", "--json", "--detailed-exitcode"}, {"drift", "--json"},
		{"apply", "--json", "--auto-approve"}, {"destroy", "--json", "--auto-approve"},
	} {
		out, said := &bytes.Buffer{}, &bytes.Buffer{}
		a := &app{stdin: strings.NewReader(""), stdout: out, stderr: said, env: os.LookupEnv}
		if code := a.run(t.Context(), append([]string{"-C", dir}, args...)); code != 1 || said.Len() > 0 {
			t.Errorf("qod %v: exit code %d, standard error: %s", args, code, said)
		}
		dec, summaries := json.NewDecoder(bytes.NewReader(out.Bytes())), 0
		for {
			var v struct {
				Diagnostics []schema.Diagnostic `json:"diagnostics"`
				Diagnostic  *schema.Diagnostic  `json:"diagnostic"`
			}
			if err := dec.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("qod %v: %v in %s", args, err, out)
			}
			if v.Diagnostic != nil {
				v.Diagnostics = append(v.Diagnostics, *v.Diagnostic)
			}
			for _, d := range v.Diagnostics {
				if d.Severity == "error" && d.Range != nil && d.Range.Start.Line == 4 && d.Snippet != nil {
					summaries++
				}
			}
		}
		if summaries != 1 {
			t.Errorf("qod %v: %d diagnostics of line 4 in %s", args, summaries, out)
		}
	}
}
