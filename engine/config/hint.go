package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// addHints adds what HCL's own messages leave out: which attribute or key was probably meant, and how
// to reach an object of a block with for_each.
func addHints(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if d.Subject == nil || strings.Contains(d.Detail, "Did you mean") {
			continue
		}
		switch d.Summary {
		case "Unsupported attribute", "Invalid index", "Missing map element":
			d.Detail += attributeHint(d)
		case "Unsupported argument", "Extraneous JSON object property":
			d.Detail += argumentHint(d.Detail)
		}
	}
	return diags
}

func argumentHint(detail string) string {
	_, after, _ := strings.Cut(detail, `"`)
	name, _, _ := strings.Cut(after, `"`)
	if name == "count" {
		return " For several objects of a kind, use for_each."
	}
	return schema.DidYouMean(name, []string{"for_each", "depends_on"})
}

// attributeHint finds the step of the traversal that failed and what the value before it has.
func attributeHint(d *hcl.Diagnostic) string {
	source, steps := traversalOf(d)
	if source == cty.NilVal {
		return ""
	}
	for i, step := range steps {
		next, diags := hcl.Traversal{step}.TraverseRel(source)
		if !diags.HasErrors() {
			source = next
			continue
		}
		if rng := step.SourceRange(); rng != *d.Subject && !rng.Overlaps(*d.Subject) {
			return ""
		}
		name, ok := stepName(steps, i)
		if !ok {
			return ""
		}
		return namesHint(name, source)
	}
	return ""
}

func traversalOf(d *hcl.Diagnostic) (cty.Value, hcl.Traversal) {
	switch expr := d.Expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		root, diags := expr.Traversal[:1].TraverseAbs(d.EvalContext)
		if diags.HasErrors() {
			return cty.NilVal, nil
		}
		return root, expr.Traversal[1:]
	case *hclsyntax.RelativeTraversalExpr:
		source, diags := expr.Source.Value(d.EvalContext)
		if diags.HasErrors() {
			return cty.NilVal, nil
		}
		return source, expr.Traversal
	case *hclsyntax.IndexExpr:
		source, diags := expr.Collection.Value(d.EvalContext)
		key, more := expr.Key.Value(d.EvalContext)
		if diags.HasErrors() || more.HasErrors() || key.IsMarked() {
			return cty.NilVal, nil
		}
		return source, hcl.Traversal{hcl.TraverseIndex{Key: key, SrcRange: *d.Subject}}
	}
	return cty.NilVal, nil
}

func namesHint(name string, of cty.Value) string {
	if isSensitive(of) {
		return ""
	}
	of, _ = of.Unmark()
	var names []string
	instances := marksOf(of)
	switch t := of.Type(); {
	case t.IsObjectType():
		names = slices.Sorted(maps.Keys(t.AttributeTypes()))
	case t.IsMapType() && of.IsKnown() && !of.IsNull():
		names = slices.Sorted(maps.Keys(of.AsValueMap()))
	}
	if suggestion := schema.DidYouMean(name, names); suggestion != "" {
		return suggestion
	}
	for _, m := range instances {
		kind, _ := schema.Lookup(m.kind)
		if m.address != m.block && slices.Contains(kind.Names(), name) {
			return fmt.Sprintf(" %s has for_each, so this is an attribute of each of its objects: %s.%s.",
				m.block, m.address, name)
		}
	}
	if len(names) > 0 && len(names) <= 20 {
		return " It has " + strings.Join(names, ", ") + "."
	}
	return ""
}
