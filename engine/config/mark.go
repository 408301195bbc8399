package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// sensitiveMark is on values that must not be shown.
type sensitiveMark struct{}

// objectMark is on the value of an object, and on everything computed from it.
type objectMark struct {
	kind    string
	block   string // the address without the key
	address string
}

const withheld = "The details are not shown, since a sensitive value is involved."

func isSensitive(v cty.Value) bool { return v.HasMark(sensitiveMark{}) }

func containsSensitive(v cty.Value) bool {
	if v.Type().IsPrimitiveType() {
		return isSensitive(v)
	}
	return v.HasMarkDeep(sensitiveMark{})
}

// objectMarks lists the objects that values were computed from, sorted by address.
func objectMarks(values map[string]cty.Value) []objectMark {
	found := map[objectMark]bool{}
	for _, v := range values {
		addObjectMarks(v, found)
	}
	byAddress := func(a, b objectMark) int { return strings.Compare(a.address, b.address) }
	return slices.SortedFunc(maps.Keys(found), byAddress)
}

// marksOf is objectMarks of one value.
func marksOf(v cty.Value) []objectMark { return objectMarks(map[string]cty.Value{"": v}) }

// addObjectMarks does not look into an object that has the mark of one: nothing in it has another.
func addObjectMarks(v cty.Value, found map[objectMark]bool) {
	if v.IsMarked() {
		var marks cty.ValueMarks
		v, marks = v.Unmark()
		for m := range marks {
			if object, ok := m.(objectMark); ok {
				found[object] = true
			}
		}
		if len(found) > 0 && isObjectOf(v, marks) {
			return
		}
	}
	if v.Type().IsPrimitiveType() || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return
	}
	for it := v.ElementIterator(); it.Next(); {
		_, element := it.Element()
		addObjectMarks(element, found)
	}
}

func isObjectOf(v cty.Value, marks cty.ValueMarks) bool {
	for m := range marks {
		if _, ok := m.(objectMark); ok {
			return v.Type().IsObjectType()
		}
	}
	return false
}

// guard looks at diagnostics that HCL made of exprs and takes out details that quote a sensitive value:
// messages of functions, in particular, repeat their arguments.
func guard(
	diags hcl.Diagnostics, files map[string]*hcl.File, ctx *hcl.EvalContext, exprs ...hcl.Expression,
) hcl.Diagnostics {
	for _, d := range diags {
		withoutPanic(d)
		if quotesNothing(d.Summary) || d.Subject == nil || isRefusal(d) {
			continue
		}
		secret := inSecret(files, *d.Subject)
		if d.Expression != nil && d.EvalContext != nil { // which knows the iterators of dynamic blocks
			secret = secret || touchesSensitive(d.Expression, files, d.EvalContext)
		}
		for _, expr := range exprs {
			secret = secret || expr.Range().Overlaps(*d.Subject) && touchesSensitive(expr, files, ctx)
		}
		if secret {
			d.Detail, d.Extra = withheld, nil
		}
	}
	return diags
}

// inSecret reports whether a range is in the value of a secret argument or sensitive variable.
func inSecret(files map[string]*hcl.File, rng hcl.Range) bool {
	file := files[rng.Filename]
	if file == nil {
		return false
	}
	nav, ok := file.Nav.(*navigation)
	if !ok {
		return false
	}
	_, secret := nav.find()
	return slices.ContainsFunc(secret, func(s hcl.Range) bool { return s.Overlaps(rng) })
}

// quotesNothing lists what HCL reports with names and types only, never with values.
func quotesNothing(summary string) bool {
	return slices.Contains([]string{
		"Unsupported attribute", "Unknown variable", "Call to unknown function", "Not enough function arguments",
		"Too many function arguments", "Incorrect attribute value type", "Invalid index", "Invalid operand",
		"Inconsistent conditional result types", "Incorrect condition type", "Null condition",
		"Invalid template interpolation value", "Unsupported argument", "Unsupported block type",
		"Attempt to index null value", "Attempt to get attribute from null value", "Iteration over null value",
		"Iteration over non-iterable value", "Extraneous JSON object property",
		sensitiveForEach,
	}, summary)
}

func touchesSensitive(expr hcl.Expression, files map[string]*hcl.File, ctx *hcl.EvalContext) bool {
	for _, t := range expr.Variables() {
		v, diags := t.TraverseAbs(ctx)
		if diags.HasErrors() {
			v, diags = t[:1].TraverseAbs(ctx)
		}
		if !diags.HasErrors() && containsSensitive(v) {
			return true
		}
	}
	return callsSensitive(expr, files)
}
