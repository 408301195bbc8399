package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// Policy is rules for plans: the check blocks of a directory, and the local values that they share.
type Policy struct {
	config *Config
	now    time.Time
}

// policyCheck is a check block of a policy.
type policyCheck struct {
	name     string
	advisory bool           // it warns, and stops nothing
	forEach  hcl.Expression // nil: it is about the plan as a whole
	asserts  []validation
}

func (k *policyCheck) enforcement() string {
	if k.advisory {
		return schema.Advisory
	}
	return schema.Mandatory
}

// policyRoots lists what references in a policy start with.
func policyRoots() []string { return []string{"plan", "local", "each", "path"} }

// LoadPolicy reads the files of a directory named *.qodpolicy.hcl or *.qodpolicy.json, not those of directories
// inside it. Its checks are tried on an example of a plan, which has all that a plan may have: what they name and
// no plan has is an error here, whatever the plan will be. The time is what plantimestamp() gives. The Policy is never nil;
// it is good for nothing but Files when the diagnostics have errors.
func LoadPolicy(dir string, now time.Time, example cty.Value) (*Policy, hcl.Diagnostics) {
	c := &Config{dir: dir, files: map[string]*hcl.File{}, forms: map[*schema.Kind]*form{}}
	c.root = newModule(c, dir)
	c.root.policy = true
	c.modules = []*module{c.root}
	p := &Policy{config: c, now: now}
	names, _, err := list(dir, IsPolicy)
	if err != nil {
		return p, failure("Policy directory not readable", fmt.Sprintf("--policy names a directory with files *%s or *%s, and %s cannot "+
			"be read as one: %v.%s", policyHCLSuffix, policyJSONSuffix, dir, reasonOf(err), otherDirectory(dir)))
	}
	if len(names) == 0 {
		return p, failure("No policy files", fmt.Sprintf("%s has no files named *%s or *%s, so it would allow everything.%s",
			inWords(dir), policyHCLSuffix, policyJSONSuffix, misnamedPolicy(dir)))
	}
	l := &loader{config: c, parser: hclparse.NewParser(), broken: map[string]bool{}, modules: map[string]*module{}}
	diags := l.read(c.root, names)
	diags = append(diags, guard(l.finish(), c.files, nil)...)
	if len(c.root.rules) == 0 && !diags.HasErrors() {
		diags = failure("No policy checks", fmt.Sprintf("%s has no check blocks, so it would allow everything. Write some:\n\n"+
			"  check \"no database goes\" {\n    assert {\n      condition     = plan.summary.destroy == 0\n"+
			"      error_message = \"Something is destroyed.\"\n    }\n  }", inWords(dir)))
	}
	if !diags.HasErrors() {
		diags = append(diags, p.try(example)...)
	}
	return p, sorted(diags)
}

// reasonOf is an error without the path that its reader knows.
func reasonOf(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return err
		}
		err = inner.Unwrap()
	}
}

// otherDirectory names a directory beside one that cannot be read, where one has a similar name.
func otherDirectory(dir string) string {
	entries, _ := os.ReadDir(filepath.Dir(dir)) // of what cannot be read, nothing is suggested
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return schema.DidYouMean(filepath.Base(dir), names)
}

// misnamedPolicy names a file that was probably meant to be part of the policy.
func misnamedPolicy(dir string) string {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if name := entry.Name(); !entry.IsDir() && !IsConfig(name) && slices.Contains([]string{".hcl", ".json"}, filepath.Ext(name)) {
			base, _, _ := strings.Cut(name, ".")
			return fmt.Sprintf(" If %s is meant, call it %s.qodpolicy%s.", name, base, filepath.Ext(name))
		}
	}
	return ""
}

// Files returns the files of the policy, for [WriteDiagnostics].
func (p *Policy) Files() map[string]*hcl.File { return maps.Clone(p.config.files) }

// collectPolicy sorts the blocks of one file of a policy into m.
func (m *module) collectPolicy(body hcl.Body) hcl.Diagnostics {
	content, diags := body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "check", LabelNames: []string{"name"}}, {Type: "locals"},
	}})
	for _, b := range content.Blocks {
		if b.Type == "locals" {
			diags = append(diags, m.addLocals(b)...)
			continue
		}
		diags = append(diags, m.addRule(b)...)
	}
	return diags
}

// addRule reads a check block of a policy. Its name is text for people.
func (m *module) addRule(b *hcl.Block) hcl.Diagnostics {
	k := &policyCheck{name: norm.NFC.String(b.Labels[0])}
	if strings.TrimSpace(k.name) == "" || strings.ContainsFunc(k.name, unicode.IsControl) {
		return hcl.Diagnostics{failAt(b.LabelRanges[0], "Invalid check name", "A check's name says in words what holds: \"large pools are protected\".")}
	}
	if slices.ContainsFunc(m.rules, func(before *policyCheck) bool { return before.name == k.name }) {
		return hcl.Diagnostics{failAt(header(b), "Duplicate check", "The policy has a check %q already: give one of them another name.", k.name)}
	}
	content, diags := b.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "enforcement"}}, Blocks: []hcl.BlockHeaderSchema{{Type: "assert"}},
	})
	if attr, ok := content.Attributes["for_each"]; ok {
		k.forEach = attr.Expr
	}
	if attr, ok := content.Attributes["enforcement"]; ok {
		diags = append(diags, k.enforce(attr.Expr)...)
	}
	asserts, more := decodeAsserts(content.Blocks)
	k.asserts, diags = asserts, append(diags, more...)
	if len(content.Blocks) == 0 && !diags.HasErrors() {
		diags = append(diags, emptyCheck(b))
	}
	m.rules = append(m.rules, k)
	return diags
}

// enforce reads the argument enforcement.
func (k *policyCheck) enforce(expr hcl.Expression) hcl.Diagnostics {
	v, diags := expr.Value(constantContext(expr))
	if diags.HasErrors() {
		return diags
	}
	text := ""
	if !v.IsNull() && v.Type() == cty.String {
		text = v.AsString()
	}
	if text != schema.Mandatory && text != schema.Advisory {
		return hcl.Diagnostics{failAt(expr.Range(), "Invalid enforcement", "It is %q, and the plan is refused where the check fails, "+
			"or %q, which only warns.%s", schema.Mandatory, schema.Advisory,
			schema.DidYouMean(text, []string{schema.Mandatory, schema.Advisory}))}
	}
	k.advisory = text == schema.Advisory
	return nil
}

// variables lists what a check refers to.
func (k *policyCheck) variables() []hcl.Traversal {
	var all []hcl.Traversal
	for _, rule := range k.asserts {
		all = append(append(all, rule.condition.Variables()...), rule.message.Variables()...)
	}
	return all
}
