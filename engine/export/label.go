package export

import (
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// identifier makes a label of a text: what may not be in one becomes "_".
func identifier(text string) string {
	if hclsyntax.ValidIdentifier(text) {
		return text
	}
	label := strings.Map(func(r rune) rune {
		if hclsyntax.ValidIdentifier("a" + string(r)) {
			return r
		}
		return '_'
	}, text)
	if !hclsyntax.ValidIdentifier(label) {
		label = "_" + label
	}
	if !hclsyntax.ValidIdentifier(label) { // no letter comes first
		label = "x" + label
	}
	return label
}
