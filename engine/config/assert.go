package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// checkBlock is a check block: rules for the configuration as a whole, which warn.
type checkBlock struct {
	name    string
	asserts []validation
	rng     hcl.Range
}

func (m *module) addCheck(b *hcl.Block) hcl.Diagnostics {
	k := &checkBlock{name: norm.NFC.String(b.Labels[0]), rng: header(b)}
	if !hclsyntax.ValidIdentifier(k.name) {
		return hcl.Diagnostics{failAt(b.LabelRanges[0], "Invalid check name",
			"A check's name has a letter first, then letters, digits, _ and -.")}
	}
	for _, before := range m.checks {
		if before.name == k.name {
			return hcl.Diagnostics{failAt(header(b), "Duplicate check", "A check %q is declared already at %s: give one of them "+
				"another name.", k.name, before.rng.String())}
		}
	}
	content, diags := b.Body.Content(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "assert"}}})
	asserts, more := decodeAsserts(content.Blocks)
	k.asserts, diags = asserts, append(diags, more...)
	if len(content.Blocks) == 0 && !diags.HasErrors() {
		diags = append(diags, emptyCheck(b))
	}
	m.checks = append(m.checks, k)
	return diags
}

// decodeAsserts reads the assert blocks of a check, of configurations and of policies alike. Those with errors are left out.
func decodeAsserts(blocks hcl.Blocks) ([]validation, hcl.Diagnostics) {
	var asserts []validation
	var diags hcl.Diagnostics
	for _, b := range blocks {
		rule, more := decodeRule(b)
		diags = append(diags, more...)
		if !more.HasErrors() {
			asserts = append(asserts, rule)
		}
	}
	return asserts, diags
}

func emptyCheck(b *hcl.Block) *hcl.Diagnostic {
	return failAt(header(b), "Empty check", "A check has one or more assert blocks, each with condition and error_message.")
}

// decodeRule reads the condition and error_message of a block.
func decodeRule(b *hcl.Block) (validation, hcl.Diagnostics) {
	content, diags := b.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "condition", Required: true}, {Name: "error_message", Required: true}},
	})
	if diags.HasErrors() {
		return validation{}, diags
	}
	return validation{content.Attributes["condition"].Expr, content.Attributes["error_message"].Expr}, diags
}

// assert evaluates the check blocks.
func (e *evaluation) assert() {
	for _, k := range e.module.checks {
		for _, rule := range k.asserts {
			refs, diags := e.module.references(append(rule.condition.Variables(), rule.message.Variables()...), scope{})
			if !diags.HasErrors() {
				diags = e.assertOne(k, rule, e.context(refs))
			}
			e.report(e.noted(diags))
		}
	}
}

// noted returns diagnostics that say which module they are about, as there may be several of one directory.
func (e *evaluation) noted(diags hcl.Diagnostics) hcl.Diagnostics {
	if e.parent == nil {
		return diags
	}
	for _, d := range diags {
		d.Extra = instanceNote{schema.Address{Modules: e.path}.String(), d.Extra}
	}
	return diags
}

// assertOne returns a warning when the condition does not hold or cannot be evaluated, and errors about
// the rule itself.
func (e *evaluation) assertOne(k *checkBlock, rule validation, ctx *hcl.EvalContext) hcl.Diagnostics {
	message, problems := e.value(rule.message, ctx)
	if ephemeral := failEphemeral(rule.message, ctx, "error_message", message); ephemeral != nil {
		return ephemeral
	}
	result, diags := e.value(rule.condition, ctx)
	result, _ = result.Unmark()
	warning := func(summary, detail string) hcl.Diagnostics {
		return hcl.Diagnostics{{
			Severity: hcl.DiagWarning, Summary: summary, Detail: detail, Subject: rule.condition.Range().Ptr(),
			Expression: rule.condition, EvalContext: ctx,
		}}
	}
	switch {
	case diags.HasErrors():
		return asWarnings(k.name, diags)
	case !result.IsKnown() && !e.clean():
		return nil
	case !result.IsKnown():
		return warning("Check not evaluated", "Check \""+k.name+"\" could not be evaluated: a value is not known.")
	case result.IsNull() || result.Type() != cty.Bool:
		return hcl.Diagnostics{failAt(rule.condition.Range(), "Invalid check", "The condition is neither true nor false.")}
	case result.True():
		return nil
	case problems.HasErrors():
		return append(warning("Check failed", "Check \""+k.name+"\" failed."), asWarnings(k.name, problems)...)
	}
	text, problem := ruleText(rule, message)
	if problem != nil {
		problem.Summary = "Invalid check"
		return hcl.Diagnostics{problem}
	}
	return warning("Check failed", text+"\n\nThis is what check \""+k.name+"\" says.")
}

// ruleText returns what the error_message of a rule says, but for secrets.
func ruleText(rule validation, message cty.Value) (string, *hcl.Diagnostic) {
	if containsSensitive(message) {
		return withheld + " (The rule's error_message refers to it.)", nil
	}
	message, _ = message.UnmarkDeep()
	if !message.IsKnown() || message.IsNull() || message.Type() != cty.String {
		return "", failAt(rule.message.Range(), "Invalid validation", "error_message is a string.")
	}
	return message.AsString(), nil
}

// asWarnings lets a plan go on in spite of what went wrong in a check, but for what is wrong whatever the
// values are.
func asWarnings(check string, diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if isMistake(d) {
			continue
		}
		d.Severity = hcl.DiagWarning
		d.Detail += "\n\nSo check \"" + check + "\" could not be evaluated."
	}
	return diags
}

// isMistake reports whether an expression is wrong whatever the values are.
func isMistake(d *hcl.Diagnostic) bool {
	return slices.Contains([]string{
		"Unsupported attribute", "Call to unknown function", "Not enough function arguments", "Too many function arguments",
	}, d.Summary)
}
