package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
)

// planned is a plan that makes two pools and a user with an address that must not be shown, and destroys a database.
func planned(t *testing.T) cty.Value {
	t.Helper()
	raw := func(text string) json.RawMessage {
		if text == "" {
			text = "null"
		}
		return json.RawMessage(text)
	}
	change := func(address, kind, action, before, after, effective string) plan.ResourceChange {
		return plan.ResourceChange{
			Address: address, Kind: kind, Object: "acme/" + address[strings.Index(address, ".")+1:],
			Change: plan.ValueChange{Actions: []string{action}, Before: raw(before), After: raw(after), Effective: raw(effective)},
		}
	}
	user := change("user.ana", "user", "create", "", `{"tenant":"acme","name":"ana","email":null}`, `{"tenant":"acme","name":"ana","email":null,"roles":[]}`)
	user.Change.AfterSensitive = map[string]bool{"email": true}
	d := plan.Document{Stack: "s", Mode: "normal", ResourceChanges: []plan.ResourceChange{
		change("pool.big", "pool", "create", "", `{"name":"big","nodes":{"dual":9}}`, `{"name":"big","nodes":{"dual":9,"read":0,"write":0},"threads":2}`),
		change("pool.bi", "pool", "update", `{"name":"bi","threads":4}`, `{"name":"bi"}`, `{"name":"bi","threads":2}`),
		user,
		change("tenant_db.old", "tenant_db", "delete", `{"name":"old","kind":"ducklake"}`, "", ""),
	}, Outputs: map[string]plan.OutputValues{"token": {Actions: []string{"create"}, Before: raw(""), After: raw(""), Sensitive: true}},
		Summary: plan.Summary{Add: 2, Destroy: 1}}
	v, err := d.Value()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func check(name, forEach, condition, message string) string {
	if forEach != "" {
		forEach = "  for_each = " + forEach + "\n"
	}
	return fmt.Sprintf("check %q {\n%s  assert {\n    condition     = %s\n    error_message = \"%s\"\n  }\n}\n", name, forEach, condition, message)
}

const (
	pools = `[for c in plan.resource_changes : c if c.kind == "pool"]`
	lakes = `[for c in plan.resource_changes : c if c.kind == "tenant_db"]`
)

// loadPolicy returns what is wrong with a policy, and what it says of the plan above.
func loadPolicy(t *testing.T, files map[string]string) (outcome, said string) {
	t.Helper()
	dir := t.TempDir()
	for name, source := range files {
		put(t, dir, name, source)
	}
	example, err := plan.Example()
	if err != nil {
		t.Fatal(err)
	}
	p, diags := config.LoadPolicy(dir, time.Time{}, example)
	if !diags.HasErrors() {
		results, more := p.Evaluate(planned(t), func(address string) hcl.Range {
			if address != "pool.big" {
				return hcl.Range{}
			}
			return hcl.Range{Filename: "main.qod.hcl", Start: hcl.Pos{Line: 12}}
		})
		diags = append(diags, more...)
		for _, r := range results {
			outcome += fmt.Sprintf("%s: %v %d/%d\n", r.Check, r.Passed, r.Failed, r.Checked)
		}
	}
	if diags.HasErrors() {
		outcome += "refused"
	}
	out := &bytes.Buffer{}
	if err := config.WriteDiagnostics(out, diags, p.Files(), false); err != nil {
		t.Fatal(err)
	}
	return outcome, strings.ReplaceAll(out.String(), dir, "policies")
}

type policyCase struct {
	policy  string
	outcome string
	words   []string
}

func policyCases() map[string]policyCase {
	few := "sum(values(each.value.change.effective.nodes)) <= 8"
	advise := func(source string) string {
		return strings.Replace(source, "  assert", "  enforcement = \"advisory\"\n  assert", 1)
	}
	return map[string]policyCase{
		"passes": {check("c", pools, "each.value.change.effective.threads <= 2", "No."), "c: true 0/2\n", nil},
		"fails": {check("few nodes", pools, "try("+few+", true)", "${each.value.address} has too many."), "few nodes: false 1/2\nrefused",
			[]string{"Error: Policy check failed", "with pool.big,", `a.qodpolicy.hcl line 4, in check "few nodes"`, "pool.big has too many.",
				`the mandatory check "few nodes" says of pool.big, which is at main.qod.hcl line 12.`}},
		"warns": {advise(check("few nodes", pools, "try("+few+", true)", "Too many.")), "few nodes: false 1/2\n",
			[]string{"Warning: Policy check failed", `the advisory check "few nodes"`}},
		"whole plan":       {check("c", "", "plan.summary.destroy == 0", "${plan.summary.destroy} goes."), "c: false 1/1\nrefused", []string{"1 goes.", `check "c" says.`}},
		"nothing to check": {check("c", "plan.drift", "false", "No."), "c: true 0/0\n", nil},
		"by key":           {check("c", `{ for c in plan.resource_changes : c.address => c.protected }`, `each.value || each.key == "pool.bi"`, "${each.key}"), "c: false 3/4\nrefused", []string{"tenant_db.old"}},
		"locals": {"locals {\n  most = 2 + local.one\n  one = 1\n}\n" + check("c", pools, "each.value.change.effective.threads < local.most", "No."),
			"c: true 0/2\n", nil},
		"before": {check("c", `[for c in plan.resource_changes : c if c.kind == "tenant_db" && contains(c.change.actions, "delete")]`,
			`each.value.change.before.kind != "ducklake"`, "A lake goes."), "c: false 1/1\nrefused", []string{"A lake goes.", `!= "ducklake"`, "says of tenant_db.old."}},

		"withheld": {check("c", `[for c in plan.resource_changes : c if c.kind == "user"]`, `endswith(each.value.change.after.email, "@acme")`, "No."),
			"c: false 1/1\nrefused", []string{"Error: Policy check not decided", "depends on a value that is not shown", "with user.ana"}},
		"withheld output": {check("c", "", `plan.outputs.token.after == ""`, "No."), "c: false 1/1\nrefused", []string{"not decided"}},
		"withheld elements": {check("c", `[for c in plan.resource_changes : c if c.kind == "user" && c.change.after.email == "x"]`, "true", "No."),
			"c: false 0/0\nrefused", []string{"Invalid for_each", "not shown", "counts as failed"}},
		"withheld is set": {check("c", `[for c in plan.resource_changes : c if c.kind == "user"]`,
			`each.value.change.after.email != null && lookup(each.value.change.after_sensitive, "email", false)`, "No."), "c: true 0/1\n", nil},
		"withheld message": {check("c", `[for c in plan.resource_changes : c if c.kind == "user"]`, "false", "${each.value.object} has ${each.value.change.after.email}."),
			"c: false 1/1\nrefused", []string{"acme/ana has (sensitive value)."}},
		"secret of its own": {check("c", "", "false", `It is ${sensitive("hunter2-secret")}.`), "c: false 1/1\nrefused", []string{"It is (sensitive value)."}},

		"unknown attribute": {check("c", pools, "each.value.change.after.thread == 2", "No."), "refused",
			[]string{"Unsupported attribute", `Did you mean "threads"?`}},
		"unknown of a kind that is not planned": {check("c", `[for c in plan.resource_changes : c if c.kind == "role"]`, "each.value.change.after.permision == null", "No."),
			"refused", []string{`Did you mean "permission"?`}},
		"unknown behind an or": {check("c", pools, `each.value.change.after.memory == "1GiB" || each.value.change.after.thread == 2`, "No."), "refused",
			[]string{`Did you mean "threads"?`}},
		"guarded":               {check("c", "plan.resource_changes", `each.value.kind != "pool" || each.value.change.effective.threads < 3`, "No."), "c: true 0/4\n", nil},
		"unknown of the plan":   {check("c", "plan.resource_chnages", "true", "No."), "refused", []string{`Did you mean "resource_changes"?`}},
		"unknown in a local":    {"locals {\n  x = plan.summry\n}\n" + check("c", "", "local.x == 1", "No."), "refused", []string{`Did you mean "summary"?`}},
		"unknown in a message":  {check("c", pools, "true", "${each.value.adress}"), "refused", []string{`Did you mean "address"?`}},
		"undeclared local":      {check("c", "", "local.x == 1", "No."), "refused", []string{`There is no local value "x"`}},
		"reference to a kind":   {check("c", "", `pool.bi.memory == "1GiB"`, "No."), "refused", []string{`"pool" is not something that a policy refers to`, "plan.resource_changes"}},
		"variable":              {check("c", "", "var.x == 1", "No."), "refused", []string{`"var" is not something that a policy refers to`}},
		"each without for_each": {check("c", "", "each.value == 1", "No."), "refused", []string{"Reference to each without for_each"}},
		"unknown function":      {check("c", "", "lenght(plan.drift) == 0", "No."), "refused", []string{"lenght"}},
		"null":                  {check("c", lakes, `each.value.change.after.name != ""`, "No."), "c: false 1/1\nrefused", []string{"null", `So the check "c" could not be evaluated, and counts as failed.`}},
		"null that warns":       {advise(check("c", lakes, `each.value.change.after.name != ""`, "No.")), "c: false 1/1\n", []string{"Warning: ", `So check "c" could not be evaluated.`}},
		"local that fails":      {"locals {\n  x = plan.resource_changes[9].kind\n}\n" + check("c", "", "local.x == 1", "No."), "c: false 0/0\nrefused", []string{"Invalid index"}},
		"no truth":              {check("c", "", `"x"`, "No."), "c: false 1/1\nrefused", []string{"neither true nor false"}},
		"no list":               {check("c", `"x"`, "true", "No."), "c: false 0/0\nrefused", []string{"takes a list, a set, a map or an object"}},
		"enforcement":           {strings.Replace(check("c", "", "true", "No."), "  assert", "  enforcement = \"advisry\"\n  assert", 1), "refused", []string{`Did you mean "advisory"?`}},
		"twice":                 {check("c", "", "true", "No.") + check("c", "", "true", "No."), "refused", []string{"Duplicate check"}},
		"no name":               {check(" ", "", "true", "No."), "refused", []string{"Invalid check name"}},
		"empty":                 {"check \"c\" {}\n", "refused", []string{"Empty check"}},
		"object":                {"tenant \"acme\" {}\n", "refused", []string{`Blocks of type "tenant" are not expected here`}},
		"no checks":             {"locals {}\n", "refused", []string{"No policy checks", "so it would allow everything"}},
		"does not parse":        {"check \"c\" {\n", "refused", []string{"a.qodpolicy.hcl"}},
	}
}

func TestPolicies(t *testing.T) {
	for name, tt := range policyCases() {
		t.Run(name, func(t *testing.T) {
			outcome, said := loadPolicy(t, map[string]string{"a.qodpolicy.hcl": tt.policy})
			if outcome != tt.outcome {
				t.Errorf("outcome %q, want %q", outcome, tt.outcome)
			}
			for _, w := range tt.words {
				if !strings.Contains(said, w) {
					t.Errorf("it does not say %q", w)
				}
			}
			if len(tt.words) == 0 && said != "" || strings.Contains(strings.ReplaceAll(said, `sensitive("`+secret, ""), secret) {
				t.Error("it says too much")
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

// What is not a policy allows nothing, and says what to do.
func TestPolicyDirectories(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		words []string
	}{
		"empty":   {nil, []string{"No policy files", "so it would allow everything"}},
		"named":   {map[string]string{"large.policy.hcl": ""}, []string{"If large.policy.hcl is meant, call it large.qodpolicy.hcl."}},
		"nothing": {map[string]string{"main.qod.hcl": ""}, []string{"No policy files"}},
	} {
		t.Run(name, func(t *testing.T) {
			outcome, said := loadPolicy(t, tt.files)
			for _, w := range tt.words {
				if outcome != "refused" || !strings.Contains(said, w) {
					t.Errorf("%q: it does not say %q:\n%s", outcome, w, said)
				}
			}
		})
	}
	dir := t.TempDir()
	put(t, dir, "policies/a.qodpolicy.hcl", "")
	p, diags := config.LoadPolicy(dir+"/policie", time.Time{}, cty.EmptyObjectVal)
	if p == nil || !diags.HasErrors() || !strings.Contains(diags[0].Detail, `Did you mean "policies"?`) {
		t.Errorf("%v", diags)
	}
}

// A policy may be JSON, and several files are one.
func TestPolicyInJSON(t *testing.T) {
	outcome, said := loadPolicy(t, map[string]string{
		"a.qodpolicy.hcl": "locals {\n  most = 1\n}\n",
		"b.qodpolicy.json": `{"check": {"few threads": {"for_each": "${[for c in plan.resource_changes : c if c.kind == \"pool\"]}", "enforcement": "advisory",
			"assert": {"condition": "${each.value.change.effective.threads <= local.most}", "error_message": "${each.value.address} has too many."}}}}`,
	})
	if outcome != "few threads: false 2/2\n" || !strings.Contains(said, "pool.bi has too many.") || !strings.Contains(said, "Warning: Policy check failed") {
		t.Errorf("%q: %s", outcome, said)
	}
}

// The checks that docs/policy.md shows are good.
func TestPolicyPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := fence.FindAllStringSubmatch(string(page), -1)
	if len(shown) == 0 {
		t.Fatal("the page shows none")
	}
	for _, m := range shown {
		outcome, said := loadPolicy(t, map[string]string{"a.qodpolicy." + m[1]: m[2]})
		want := "large pools are protected: false 1/2\nno data goes: false 1/1\nsmall steps: true 0/1\nrefused"
		if outcome != want || strings.Contains(said, "could not") {
			t.Errorf("%q, want %q:\n%s", outcome, want, said)
		}
	}
}
