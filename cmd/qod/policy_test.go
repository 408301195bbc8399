package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/plan"
)

// A plan is printed whatever the policy says of it. A mandatory check that fails ends with 1, an advisory one with 0, or
// with what --detailed-exitcode says.
func TestPlanWithPolicy(t *testing.T) {
	rule := func(enforcement, condition string) string {
		return "check \"named\" {\n  for_each    = plan.resource_changes\n  enforcement = \"" + enforcement + "\"\n  assert {\n    condition     = " + condition +
			"\n    error_message = \"${each.value.object} is a bad name.\"\n  }\n}\n"
	}
	const holds, fails, typo = `each.value.object == "acme"`, `each.value.object == "x"`, `each.value.objct == "acme"`
	for name, tt := range map[string]struct {
		policy string
		args   []string
		code   int
		words  []string
	}{
		"passes":           {rule("mandatory", holds), nil, 0, []string{"Plan: 1 to add", "Policy: 1 check: 1 passed."}},
		"passes with 2":    {rule("mandatory", holds), []string{"--detailed-exitcode"}, 2, []string{"Policy: 1 check: 1 passed."}},
		"fails":            {rule("mandatory", fails), nil, 1, []string{"Plan: 1 to add", "acme is a bad name.", "of tenant.acme, which is at main.qod.hcl line 4.", "fails 1 mandatory check"}},
		"fails, not 2":     {rule("mandatory", fails), []string{"--detailed-exitcode"}, 1, []string{"Error: Policy check failed"}},
		"warns":            {rule("advisory", fails), nil, 0, []string{"Warning: Policy check failed", "0 passed, 1 failed and only warned."}},
		"warns in a line":  {rule("advisory", fails), []string{"--compact-warnings"}, 0, []string{"Warning: Policy check failed (policies/a.qodpolicy.hcl line 5)"}},
		"wrong":            {rule("advisory", typo), nil, 1, []string{`Did you mean "object"?`}},
		"destroys nothing": {rule("mandatory", fails), []string{"--destroy"}, 0, []string{"No changes.", "Policy: 1 check: 1 passed."}},
	} {
		t.Run(name, func(t *testing.T) {
			policyIn(t, tt.policy)
			code, out := command(t, "", append([]string{"plan", "--policy", "policies"}, tt.args...)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, w := range tt.words {
				if !strings.Contains(out, w) {
					t.Errorf("it does not say %q", w)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// policyIn makes a directory with a configuration and a policy the working one.
func policyIn(t *testing.T, policy string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
	for name, text := range map[string]string{"main.qod.hcl": small, "policies/a.qodpolicy.hcl": policy} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A program finds what a policy says in the plan.
func TestPlanWithPolicyAsJSON(t *testing.T) {
	policyIn(t, "check \"a\" {\n  assert {\n    condition     = plan.summary.add == 0\n    error_message = \"${plan.stack} grows.\"\n  }\n}\n"+
		"check \"b\" {\n  enforcement = \"advisory\"\n  assert {\n    condition     = plan.mode == \"normal\"\n    error_message = \"No.\"\n  }\n}\n")
	out, said := &bytes.Buffer{}, &bytes.Buffer{}
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: said, env: os.LookupEnv}
	if code := a.run(t.Context(), []string{"plan", "--json", "--policy", "policies"}); code != 1 {
		t.Errorf("exit code %d", code)
	}
	var d plan.Document
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	results, err := json.Marshal(d.PolicyResults)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"check":"a","enforcement":"mandatory","passed":false,"checked":1,"failed":1},` +
		`{"check":"b","enforcement":"advisory","passed":true,"checked":1,"failed":0}]`
	if string(results) != want || !d.Errored || d.Applicable || len(d.ResourceChanges) != 1 {
		t.Errorf("errored %v, applicable %v, results %s", d.Errored, d.Applicable, results)
	}
	if len(d.Diagnostics) != 1 || !strings.HasPrefix(d.Diagnostics[0].Detail, "s grows.") || d.Diagnostics[0].Range.Filename != "policies/a.qodpolicy.hcl" {
		t.Errorf("diagnostics %+v", d.Diagnostics)
	}
}
