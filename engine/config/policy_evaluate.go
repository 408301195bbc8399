package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

const notShown = "(sensitive value)"

// judgement is an evaluation of a policy for one plan.
type judgement struct {
	*evaluation
	place func(address string) hcl.Range
}

// Evaluate holds a plan against the checks, and returns what came of each, in the order of the files. What is unknown
// of the plan must not be shown: a check whose outcome depends on it fails. The diagnostics are errors where a
// mandatory check fails or anything is wrong with a check, and warnings where an advisory one fails; each names its
// object, and where place knows, its place in the configuration.
func (p *Policy) Evaluate(plan cty.Value, place func(address string) hcl.Range) ([]schema.PolicyResult, hcl.Diagnostics) {
	j := p.judgement(plan)
	j.place = place
	results, diags := []schema.PolicyResult{}, j.diags
	for _, k := range p.config.root.rules {
		result := schema.PolicyResult{Check: k.name, Enforcement: k.enforcement()}
		if !j.diags.HasErrors() { // of local values, on which any check may depend
			diags = append(diags, j.judge(k, &result)...)
		}
		results = append(results, result)
	}
	return results, diags
}

// judgement evaluates the local values for one plan.
func (p *Policy) judgement(plan cty.Value) *judgement {
	m := p.config.root
	r := &run{config: p.config, now: p.now, files: p.config.files, analyses: map[*module]*analysis{}, instances: map[string]*instance{}}
	r.analyses[m] = r.analyse(m)
	e := r.evaluation(m, nil)
	e.fixed["plan"] = plan
	for _, n := range e.order {
		e.evaluateLocal(m.localOf[n])
	}
	return &judgement{evaluation: e}
}

// try evaluates the checks for an example, and returns what is wrong with them whatever the plan is.
func (p *Policy) try(example cty.Value) hcl.Diagnostics {
	j := p.judgement(example)
	var diags hcl.Diagnostics
	for _, k := range p.config.root.rules {
		if k.forEach != nil {
			_, more := j.module.references(k.forEach.Variables(), scope{})
			diags = append(diags, more...)
		}
		_, more := j.module.references(k.variables(), scope{each: k.forEach != nil})
		diags = append(diags, more...)
	}
	if diags.HasErrors() {
		return diags
	}
	for _, d := range j.diags {
		if d.Summary == "Reference cycle" || d.Summary == "Invalid reference" || d.Summary == "Reference to undeclared local value" || isMistake(d) {
			diags = append(diags, d)
		}
	}
	for _, k := range p.config.root.rules {
		elements, more := j.elements(k)
		for _, el := range elements {
			for _, rule := range k.asserts {
				more = append(more, j.examine(rule.condition, el.ctx)...)
				_, problems := j.value(rule.message, el.ctx)
				more = append(more, problems...)
			}
		}
		for _, d := range more {
			again := func(before *hcl.Diagnostic) bool { return *before.Subject == *d.Subject && before.Summary == d.Summary }
			if isMistake(d) && !slices.ContainsFunc(diags, again) {
				diags = append(diags, d)
			}
		}
	}
	return diags
}

// examine returns what is wrong with a condition. HCL leaves out what is wrong with one side of an operator where
// the other may decide.
func (j *judgement) examine(expr hcl.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	switch e := expr.(type) {
	case *hclsyntax.ParenthesesExpr:
		return j.examine(e.Expression, ctx)
	case *hclsyntax.BinaryOpExpr:
		if e.Op != hclsyntax.OpLogicalAnd && e.Op != hclsyntax.OpLogicalOr {
			break
		}
		diags := j.examine(e.LHS, ctx)
		left, _ := e.LHS.Value(ctx)
		if left, _ = left.Unmark(); left.Type() == cty.Bool && left.IsKnown() && !left.IsNull() && left.True() == (e.Op == hclsyntax.OpLogicalOr) {
			return diags // it guards the other side
		}
		return append(diags, j.examine(e.RHS, ctx)...)
	}
	_, diags := j.value(expr, ctx)
	return diags
}

// element is what a check is held against.
type element struct {
	ctx     *hcl.EvalContext
	address string // of the object it is about; "" where that is none in particular
}

// elements returns those of a check's for_each, or the plan as a whole.
func (j *judgement) elements(k *policyCheck) ([]element, hcl.Diagnostics) {
	refs, _ := j.module.references(k.variables(), scope{each: k.forEach != nil})
	base := j.context(refs)
	if k.forEach == nil {
		return []element{{ctx: base}}, nil
	}
	refs, _ = j.module.references(k.forEach.Variables(), scope{})
	ctx := j.context(refs)
	v, diags := j.value(k.forEach, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	v, _ = v.Unmark()
	refuse := func(format string, args ...any) ([]element, hcl.Diagnostics) {
		d := failAt(k.forEach.Range(), "Invalid for_each", format, args...)
		d.Expression, d.EvalContext = k.forEach, ctx
		return nil, hcl.Diagnostics{d}
	}
	switch {
	case v.IsNull():
		return refuse("It is null; for no elements, use an empty list.")
	case !v.IsKnown():
		return refuse("Which elements it has depends on a value that is not shown, such as a secret. %s", undecided)
	case !v.CanIterateElements():
		return refuse("It takes a list, a set, a map or an object, and this is a %s.", v.Type().FriendlyName())
	}
	var out []element
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		child := base.NewChild()
		child.Functions = base.Functions
		child.Variables = map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": item})}
		out = append(out, element{child, addressIn(item)})
	}
	return out, nil
}

// addressIn returns the address that an element of a plan has.
func addressIn(v cty.Value) string {
	v, _ = v.UnmarkDeep()
	if !v.IsKnown() || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute("address") {
		return ""
	}
	if v = v.GetAttr("address"); !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// judge holds the plan against one check.
func (j *judgement) judge(k *policyCheck, result *schema.PolicyResult) hcl.Diagnostics {
	elements, diags := j.elements(k)
	if diags.HasErrors() {
		return k.wrong(diags)
	}
	failures := 0
	for _, el := range elements {
		var found hcl.Diagnostics
		for _, rule := range k.asserts {
			found = append(found, j.assertPolicy(k, rule, el)...)
		}
		if len(found) > 0 {
			failures++
		}
		if el.address != "" {
			for _, d := range found {
				d.Extra = instanceNote{el.address, d.Extra}
			}
		}
		diags = append(diags, found...)
	}
	result.Checked, result.Failed, result.Passed = len(elements), failures, failures == 0
	return diags
}

const undecided = "The rule can see that such a value is set, by != null or in after_sensitive, and not what it is; " +
	"what cannot be decided counts as failed."

// assertPolicy returns a diagnostic when the rule does not hold for the element, or that cannot be told.
func (j *judgement) assertPolicy(k *policyCheck, rule validation, el element) hcl.Diagnostics {
	result, diags := j.value(rule.condition, el.ctx)
	if diags.HasErrors() {
		return k.wrong(diags)
	}
	result, _ = result.Unmark()
	failed := func(summary, text string) hcl.Diagnostics {
		d := failAt(rule.condition.Range(), summary, "%s\n\nThis is what the %s check %q says%s.", text, k.enforcement(), k.name, j.about(el))
		d.Expression, d.EvalContext = rule.condition, el.ctx
		if k.advisory {
			d.Severity = hcl.DiagWarning
		}
		return hcl.Diagnostics{d}
	}
	switch {
	case !result.IsKnown():
		return failed("Policy check not decided", "The condition depends on a value that is not shown, such as a secret. "+undecided)
	case result.IsNull() || result.Type() != cty.Bool:
		return hcl.Diagnostics{failAt(rule.condition.Range(), "Invalid check", "The condition is neither true nor false.")}
	case result.True():
		return nil
	}
	text, diags := j.message(rule.message, el.ctx)
	if diags.HasErrors() {
		return append(failed("Policy check failed", "Its message could not be made."), k.wrong(diags)...)
	}
	return failed("Policy check failed", text)
}

// about says which object an element is, and where the configuration has it.
func (j *judgement) about(el element) string {
	if el.address == "" {
		return ""
	}
	at := j.place(el.address)
	if at.Filename == "" {
		return " of " + el.address
	}
	return fmt.Sprintf(" of %s, which is at %s line %d", el.address, at.Filename, at.Start.Line)
}

// wrong returns what is wrong with a check: warnings for an advisory one, but for mistakes.
func (k *policyCheck) wrong(diags hcl.Diagnostics) hcl.Diagnostics {
	if k.advisory {
		return asWarnings(k.name, diags)
	}
	for _, d := range diags {
		d.Detail += fmt.Sprintf("\n\nSo the check %q could not be evaluated, and counts as failed.", k.name)
	}
	return diags
}

// message evaluates the message of a rule. Each part of it that is not to be shown is replaced.
func (j *judgement) message(expr hcl.Expression, ctx *hcl.EvalContext) (string, hcl.Diagnostics) {
	v, diags := j.value(expr, ctx)
	if diags.HasErrors() {
		return "", diags
	}
	if text, ok := plainText(v); ok {
		return text, nil
	}
	if v.IsKnown() && !containsSensitive(v) {
		return "", hcl.Diagnostics{failAt(expr.Range(), "Invalid check", "error_message is a string.")}
	}
	template, ok := expr.(*hclsyntax.TemplateExpr)
	if !ok {
		return notShown, nil
	}
	text := ""
	for _, part := range template.Parts {
		v, diags := part.Value(ctx)
		shown, ok := plainText(v)
		if diags.HasErrors() || !ok {
			shown = notShown
		}
		text += shown
	}
	return text, nil
}

// plainText returns a value as text, where it is one that may be shown.
func plainText(v cty.Value) (string, bool) {
	if containsSensitive(v) || !v.IsKnown() {
		return "", false
	}
	v, _ = v.UnmarkDeep()
	v, err := convert.Convert(v, cty.String)
	if err != nil || v.IsNull() || !v.IsKnown() {
		return "", false
	}
	return v.AsString(), true
}
