package schema

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
)

// SpecSchema returns a JSON Schema (2020-12) of an object's value: as it is written, or with complete true as it
// is with all its defaults in place, without secrets, where null stands for what has no value.
func (k *Kind) SpecSchema(complete bool) map[string]any {
	properties, required := valueSchemas(k.Attrs, complete)
	for i := range k.Blocks {
		b := &k.Blocks[i]
		if complete && k.Secret(b.Name) {
			continue
		}
		inner, needs := valueSchemas(b.Attrs, complete)
		s := closed(inner, needs)
		if b.Single {
			s = orNull(s)
		} else {
			s = orNull(node{"type": "array", "items": s})
		}
		s["description"] = b.Doc
		properties[b.Name] = s
	}
	// The key of an object that is written is in its address as well.
	out := closed(properties, slices.DeleteFunc(required, k.Identifies))
	out["description"] = k.Doc
	return out
}

func closed(properties node, required []string) node {
	out := node{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// valueSchemas returns the attributes, and those that a program that writes the object must give.
func valueSchemas(attrs []Attr, complete bool) (properties node, required []string) {
	properties = node{}
	for i := range attrs {
		a := &attrs[i]
		if complete && a.Secret {
			continue
		}
		s := valueSchema(a.Type, a.OneOf)
		must := a.Mode == Required && a.Default == cty.NilVal
		if !must {
			s = orNull(s)
		}
		if must && !complete {
			required = append(required, a.Name)
		}
		s["description"] = a.Doc + a.notes() + " A change " + effectWords[a.Effect] + "."
		a.annotate(s)
		properties[a.Name] = s
	}
	return properties, required
}

func orNull(s node) node {
	if t, ok := s["type"].(string); ok && s["enum"] == nil {
		s["type"] = []string{t, "null"}
		return s
	}
	return node{"anyOf": []node{s, {"type": "null"}}}
}

func valueSchema(t cty.Type, oneOf []string) node {
	switch {
	case t.IsSetType():
		return node{"type": "array", "items": valueSchema(t.ElementType(), oneOf)}
	case t == cty.Number:
		return node{"type": "number"}
	case t == cty.Bool:
		return node{"type": "boolean"}
	case len(oneOf) > 0:
		return node{"type": "string", "enum": slices.Clone(oneOf)}
	}
	return node{"type": "string"}
}
