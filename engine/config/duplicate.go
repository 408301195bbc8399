package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// duplicateKeys finds object expressions in which a constant key is written twice. HCL itself lets the
// last one win without a word.
func duplicateKeys(root hclsyntax.Node) hcl.Diagnostics {
	return hclsyntax.VisitAll(root, func(n hclsyntax.Node) hcl.Diagnostics {
		object, ok := n.(*hclsyntax.ObjectConsExpr)
		if !ok {
			return nil
		}
		var diags hcl.Diagnostics
		first := map[string]hcl.Range{}
		for _, item := range object.Items {
			key, constant := constantKey(item.KeyExpr)
			if !constant {
				continue
			}
			rng := item.KeyExpr.Range()
			if before, taken := first[key]; taken {
				diags = append(diags, failAt(rng, "Duplicate object key",
					"The key %q is set already at %s, and a key has one value.", key, before.String()))
				continue
			}
			first[key] = rng
		}
		return diags
	})
}

func constantKey(expr hclsyntax.Expression) (string, bool) {
	v, diags := expr.Value(nil)
	if diags.HasErrors() || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	v, err := convert.Convert(v, cty.String)
	if err != nil {
		return "", false
	}
	return v.AsString(), true
}
