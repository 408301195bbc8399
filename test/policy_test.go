package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// docs/policy.md and docs/ci.md are followed to the letter with examples/policy, whose policy is kept by what people
// approve, by saved plans, by a destroy and by a rollback.
func TestPolicyExample(t *testing.T) {
	if _, err := exec.LookPath("jq"); err != nil {
		t.Fatal("docs/ci.md needs jq: install it")
	}
	i := install(t, "policy")
	if err := os.Symlink(i.bin, filepath.Join(i.root, "qod")); err != nil {
		t.Fatal(err)
	}
	i.env = append(i.env, "PATH="+i.root+":"+os.Getenv("PATH"))
	i.expect(t, 0, nil, "fmt", "--check", "--recursive")
	for _, page := range []string{"policy", "ci"} {
		text, err := os.ReadFile("../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		steps := 0
		for _, step := range tutorialSteps(string(text)) {
			i.follow(t, step.text)
			steps++
		}
		if steps == 0 {
			t.Errorf("docs/%s.md has no commands", page)
		}
	}
	plan := filepath.Join(i.dir, "next.qodplan")
	if _, err := os.Stat(plan); err == nil {
		t.Error("a plan that the policy refuses was saved")
	}
	revision := i.must(t, "history", "--json")
	refused := []string{"the plan fails 1 mandatory check of the policy: nothing was changed or saved"}
	for _, args := range [][]string{
		{"apply", "--auto-approve", "--var", "nodes=9"}, {"destroy", "--auto-approve"},
		{"plan", "--var", "nodes=9", "--detailed-exitcode"},
	} {
		i.expect(t, 1, refused, append(args, "--policy", "policies")...)
	}
	i.expect(t, 1, []string{`"type":"policy_result","level":"error","message":"check \"no data goes\" failed"`, `"type":"done","level":"error","message":"the plan fails 1`},
		"destroy", "--auto-approve", "--json", "--policy", "policies")
	out := i.expect(t, 1, []string{`"errored": true`, `"applicable": false`, `"passed": false`, `"address": "pool.bi"`}, "plan", "--json", "--var", "nodes=9", "--policy", "policies")
	if strings.Contains(out, "ana@acme.example") {
		t.Error("the plan shows what is sensitive")
	}

	// A plan that was saved without a policy meets one when it is shown or applied.
	i.expect(t, 0, []string{"Saved to next.qodplan"}, "plan", "--var", "nodes=9", "--out", "next.qodplan")
	for _, args := range [][]string{{"show", "next.qodplan"}, {"show", "--json", "next.qodplan"}, {"apply", "next.qodplan"}, {"apply", "--json", "next.qodplan"}} {
		i.expect(t, 1, append(refused, "large pools are protected"), append(args, "--policy", "policies")...)
	}
	i.expect(t, 1, []string{"name its file"}, "show", "--policy", "policies")
	i.expect(t, 1, []string{`Did you mean "policies"?`}, "apply", "next.qodplan", "--policy", "policys")
	if again := i.must(t, "history", "--json"); again != revision {
		t.Errorf("what the policy refuses was done:\n%s", again)
	}

	// Away from data, the way back is kept too.
	i.expect(t, 0, []string{"Policy: 5 checks: 5 passed.", "Apply complete: 0 added, 1 changed,"}, "apply", "--auto-approve", "--policy", "policies", "--var", "ana=ana@acme.test")
	i.writeFile(t, "frozen/freeze.qodpolicy.hcl", "check \"nothing changes this week\" {\n  assert {\n    condition     = plan.summary.destroy == 0\n"+
		"    error_message = \"It is a quiet week.\"\n  }\n}\n")
	i.expect(t, 1, append(refused, "It is a quiet week."), "rollback", "1", "--auto-approve", "--policy", "frozen")
	i.expect(t, 0, []string{"Destroy complete"}, "destroy", "--auto-approve")
}
