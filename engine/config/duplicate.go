package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// duplicateKeys finds objects of a file in which a constant key is written twice. HCL itself lets the last
// one win without a word; in JSON the objects that stand for blocks count too.
func duplicateKeys(file *hcl.File) hcl.Diagnostics {
	if body, ok := file.Body.(*hclsyntax.Body); ok {
		return duplicateObjectKeys(body)
	}
	return duplicateJSONKeys(file)
}

func duplicateKey(key string, rng, before hcl.Range) *hcl.Diagnostic {
	return failAt(rng, "Duplicate object key",
		"The key %q is set already at %s, and a key has one value.", key, before.String())
}

func duplicateObjectKeys(root hclsyntax.Node) hcl.Diagnostics {
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
				diags = append(diags, duplicateKey(key, rng, before))
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

// duplicateJSONKeys goes by tokens of a file that parses.
func duplicateJSONKeys(file *hcl.File) hcl.Diagnostics {
	var diags hcl.Diagnostics
	var objects []map[string]hcl.Range
	tokens := lexJSON(file.Bytes, file.Body.MissingItemRange().Filename)
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOBrace:
			objects = append(objects, map[string]hcl.Range{})
		case hclsyntax.TokenCBrace:
			objects = objects[:max(0, len(objects)-1)]
		case hclsyntax.TokenQuotedLit:
			if i+2 >= len(tokens) || tokens[i+2].Type != hclsyntax.TokenColon || len(objects) == 0 {
				continue
			}
			key, first := jsonText(t.Bytes), objects[len(objects)-1]
			before, taken := first[key]
			switch {
			case key == "//":
			case taken:
				diags = append(diags, duplicateKey(key, t.Range, before))
			default:
				first[key] = t.Range
			}
		}
	}
	return diags
}
