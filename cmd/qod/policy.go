package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// policyDir names a directory of checks. An empty name, as of a variable that is not set, is no way past them.
type policyDir string

func (d *policyDir) String() string { return string(*d) }
func (d *policyDir) Type() string   { return "DIRECTORY" }

func (d *policyDir) Set(text string) error {
	if text == "" {
		return errors.New("want a directory with checks")
	}
	*d = policyDir(text)
	return nil
}

// policyFlag adds the flag that names a directory of checks for the plan. It is "" where it is not given.
func policyFlag(cmd *cobra.Command) *policyDir {
	const name = "policy"
	dir := new(policyDir)
	cmd.Flags().Var(dir, name, "refuse the plan where a mandatory check in this directory fails: docs/policy.md")
	must(cmd.MarkFlagDirname(name))
	return dir
}

// policy reads a directory of checks; there are none without a name. The policy is nil then.
func (a *app) policy(dir policyDir) (*config.Policy, hcl.Diagnostics, error) {
	if dir == "" {
		return nil, nil, nil
	}
	example, err := plan.Example()
	if err != nil {
		return nil, nil, err
	}
	rules, diags := config.LoadPolicy(a.paths.shown(string(dir)), time.Now(), example)
	return rules, diags, nil
}

// goodPolicy is policy where nothing but the policy is read: what is wrong with it has been told when it returns an
// error.
func (a *app) goodPolicy(dir policyDir, tell teller) (*config.Policy, error) {
	rules, diags, err := a.policy(dir)
	if err != nil || len(diags) == 0 {
		return rules, err
	}
	if err := tell.evaluated(nil, diags, rules.Files()); err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, errConfiguration
	}
	return rules, nil
}

// verdict is what a policy says of a plan. It is nil where no policy was asked.
type verdict struct {
	results []schema.PolicyResult
	diags   hcl.Diagnostics
	files   map[string]*hcl.File
}

// judgePlan holds a plan against a policy, if there is one and the plan is good for anything. The configuration is nil for a
// saved plan.
func judgePlan(rules *config.Policy, p *plan.Plan, c *configuration) (*verdict, error) {
	if rules == nil || p.Failed() {
		return nil, nil
	}
	d, err := plan.NewDocument(p, version, nil)
	if err != nil {
		return nil, err
	}
	value, err := d.Value()
	if err != nil {
		return nil, err
	}
	v := &verdict{files: rules.Files()}
	v.results, v.diags = rules.Evaluate(value, func(address string) hcl.Range {
		if c == nil {
			return hcl.Range{}
		}
		return c.Range(address, nil)
	})
	return v, nil
}

// err refuses the plan where the policy does. All that is wrong has been told.
func (v *verdict) err() error {
	if v == nil || !v.diags.HasErrors() {
		return nil
	}
	n := 0
	for _, r := range v.results {
		if r.Refuses() {
			n++
		}
	}
	if n == 0 {
		return errors.New("a check of the policy is wrong: nothing was changed or saved")
	}
	return fmt.Errorf("the plan fails %s of the policy: nothing was changed or saved", plural(n, "mandatory check"))
}

// diagnostics returns what is wrong for programs: with the plan, and by the policy.
func (v *verdict) diagnostics(p *plan.Plan, c *configuration) []schema.Diagnostic {
	out := []schema.Diagnostic{}
	if c != nil {
		out = c.diagnostics(p.Problems)
	} else {
		for _, problem := range p.Problems {
			out = append(out, problem.Diagnostic())
		}
	}
	if v != nil {
		out = append(out, config.Diagnostics(v.diags, v.files)...)
	}
	return out
}

func (v *verdict) outcomes() []schema.PolicyResult {
	if v == nil {
		return nil
	}
	return v.results
}

// tellVerdict says what a policy finds, after the plan.
func (t *text) tellVerdict(v *verdict) {
	if v == nil {
		return
	}
	space := "\n"
	if len(v.diags) > 0 {
		fmt.Fprintln(t.stderr)
		t.diagnose(v.diags, v.files)
		space = "" // there is some after each diagnostic
	}
	failed, warned := 0, 0
	for _, r := range v.results {
		switch {
		case r.Passed:
		case r.Refuses():
			failed++
		default:
			warned++
		}
	}
	words := fmt.Sprintf("%s: %d passed", plural(len(v.results), "check"), len(v.results)-failed-warned)
	if warned > 0 {
		words += fmt.Sprintf(", %d failed and only warned", warned)
	}
	if failed > 0 {
		words += fmt.Sprintf(", %d failed", failed)
	}
	t.aside("%sPolicy: %s.\n", space, words)
}
