package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

const (
	hclSuffix      = ".qod.hcl"
	jsonSuffix     = ".qod.json"
	autoHCLSuffix  = ".auto.qodvars.hcl"
	autoJSONSuffix = ".auto.qodvars.json"

	policyHCLSuffix  = ".qodpolicy.hcl"
	policyJSONSuffix = ".qodpolicy.json"
)

func isJSON(file string) bool { return filepath.Ext(file) == ".json" }

// IsConfig reports whether a file of that name is part of a configuration.
func IsConfig(file string) bool {
	return strings.HasSuffix(file, hclSuffix) || strings.HasSuffix(file, jsonSuffix)
}

// IsPolicy reports whether a file of that name is part of a policy.
func IsPolicy(file string) bool {
	return strings.HasSuffix(file, policyHCLSuffix) || strings.HasSuffix(file, policyJSONSuffix)
}

// isConfig is IsConfig, and true for policies and for what is typed at the console.
func isConfig(file string) bool { return IsConfig(file) || IsPolicy(file) || file == consoleFile }

// header is the range that names a block: in JSON the innermost label, or else what first tells the block
// from others of its type.
func header(b *hcl.Block) hcl.Range {
	if !isJSON(b.DefRange.Filename) {
		return b.DefRange
	}
	if n := len(b.LabelRanges); n > 0 {
		return b.LabelRanges[n-1]
	}
	attrs, _ := b.Body.JustAttributes()
	if first := sortedAttributes(attrs); len(first) > 0 {
		return first[0].NameRange
	}
	return b.TypeRange
}

// extent is the range of a block with its body.
func extent(b *hcl.Block) hcl.Range {
	if body, ok := b.Body.(*hclsyntax.Body); ok {
		return hcl.RangeBetween(b.DefRange, body.Range())
	}
	return hcl.RangeBetween(b.TypeRange, b.Body.MissingItemRange())
}

func sortedAttributes(attrs hcl.Attributes) []*hcl.Attribute {
	out := make([]*hcl.Attribute, 0, len(attrs))
	for _, attr := range attrs {
		out = append(out, attr)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return out
}

// constantContext is what an expression sees that may refer to nothing. A string in JSON is a template
// only where there is a context.
func constantContext(expr hcl.Expression) *hcl.EvalContext {
	if inJSON(expr) {
		return &hcl.EvalContext{}
	}
	return nil
}

// withoutQuotes takes out of the parser's diagnostics what they quote of the source: a secret whose quotes
// are missing, maybe.
func withoutQuotes(diags hcl.Diagnostics) hcl.Diagnostics {
	for _, d := range diags {
		if d.Summary == "Invalid JSON keyword" {
			d.Detail = "A string is written in double quotes. Besides strings, numbers, lists and objects there are true, " +
				"false and null."
		}
	}
	return diags
}
