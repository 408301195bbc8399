package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// node is a part of a JSON Schema. Maps are written in order of their names, so equal kinds give equal
// bytes.
type node map[string]any

// JSONSchema returns a JSON Schema (2020-12) of *.qod.json files, for editors: the blocks of the language
// and of every kind, with the words of the reference pages. Arguments take templates in place of values.
func JSONSchema() []byte {
	d := definer{
		"template": node{"type": "string", "pattern": `[$%]\{`, "description": "An expression, as in ${var.name}."},
		"null":     node{"type": "null", "description": "As if left out."},
	}
	properties := node{}
	for _, c := range constructs() {
		properties[c.name] = d.construct(c, c.name)
	}
	for _, k := range Kinds() {
		properties[k.Name] = labelled(d.define(k.Name, d.kind(k)), k.Doc)
	}
	file := d.define("file", body(properties, nil, false))
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(node{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "qod configuration",
		"$defs":   d,
		"anyOf":   []node{file, listOf(file)},
	})
	if err != nil {
		panic(fmt.Sprintf("schema: JSON Schema: %v", err)) // all of it is constant
	}
	return out.Bytes()
}

// definer collects what is referred to by name.
type definer node

func (d definer) define(name string, s node) node {
	d[name] = s
	return ref(name)
}

func ref(name string) node { return node{"$ref": "#/$defs/" + name} }

func comment() node { return node{"description": "A comment."} }

func listOf(item node) node { return node{"type": "array", "items": item} }

// labelled is for blocks with a label: JSON has an object from labels to bodies, or a list of such.
func labelled(body node, doc string) node {
	byLabel := node{"type": "object", "additionalProperties": body, "properties": node{"//": comment()}}
	return node{"description": doc, "anyOf": []node{byLabel, listOf(byLabel)}}
}

// body is an object of arguments and blocks.
func body(properties node, required []string, open bool) node {
	properties["//"] = comment()
	out := node{"type": "object", "properties": properties}
	if !open {
		out["additionalProperties"] = false
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// block is for blocks without a label: a body that is defined, or where there may be several a list of them.
func block(body node, single bool, doc string) node {
	if single {
		return node{"description": doc, "$ref": body["$ref"]}
	}
	return node{"description": doc, "anyOf": []node{body, listOf(body)}}
}

// construct defines the body of a construct under a name.
func (d definer) construct(c construct, name string) node {
	inner := d.define(name, body(d.parts(c, name)))
	if c.labelled {
		return labelled(inner, c.doc)
	}
	return block(inner, c.single, c.doc)
}

// parts returns what [body] takes.
func (d definer) parts(c construct, name string) (properties node, required []string, open bool) {
	properties = node{}
	for _, a := range c.args {
		properties[a.name] = described(typeSchema(a.typ, nil), a.doc)
		if a.required {
			required = append(required, a.name)
		}
	}
	for _, b := range c.blocks {
		properties[b.name] = d.construct(b, name+"."+b.name)
	}
	return properties, required, c.open
}

func (d definer) kind(k *Kind) node {
	// Nothing of a kind is required: the label gives the name, and references imply the rest.
	properties, _ := attrSchemas(k.Attrs)
	for _, b := range k.Blocks {
		inner, required := attrSchemas(b.Attrs)
		properties[b.Name] = block(d.define(k.Name+"."+b.Name, body(inner, required, false)), b.Single, b.Doc)
	}
	m := meta()
	more, required, open := d.parts(m, m.name)
	maps.Copy(properties, more)
	return body(properties, required, open)
}

// attrSchemas returns the arguments, and those of them that must be written.
func attrSchemas(attrs []Attr) (properties node, required []string) {
	properties = node{}
	for _, a := range attrs {
		s := described(typeSchema(a.Type, a.OneOf), a.documentation())
		a.annotate(s)
		properties[a.Name] = s
		if a.Mode == Required {
			required = append(required, a.Name)
		}
	}
	return properties, required
}

// annotate says in a schema of the attribute's values what the default is, and that nobody reads a secret.
func (a *Attr) annotate(s node) {
	if a.Default != cty.NilVal {
		raw, err := ctyjson.Marshal(a.Default, a.Type)
		if err != nil {
			panic(fmt.Sprintf("schema: default of %s: %v", a.Name, err)) // all defaults are constant
		}
		s["default"] = json.RawMessage(raw)
	}
	if a.Secret {
		s["writeOnly"] = true
	}
}

// documentation is what editors show: as the reference page has it, and what a change does.
func (a *Attr) documentation() string {
	words := a.writtenDoc()
	if a.Ref != "" {
		words = fmt.Sprintf("%s A %s: ${%s.LABEL}, or the name of one.", words, a.typeWords(), a.Ref)
	}
	return words + a.notes() + " A change " + effectWords[a.Effect] + "."
}

func described(s node, doc string) node {
	s["description"] = doc
	return s
}

// typeSchema is of values of a type, of expressions for them, and of null.
func typeSchema(t cty.Type, oneOf []string) node {
	var value node
	switch {
	case t == cty.DynamicPseudoType:
		return node{}
	case t.IsSetType() || t.IsListType():
		value = listOf(typeSchema(t.ElementType(), oneOf))
		value["uniqueItems"] = t.IsSetType()
	case t == cty.String && len(oneOf) > 0:
		value = node{"enum": slices.Clone(oneOf)}
	case t == cty.String:
		return node{"type": []string{"string", "number", "boolean", "null"}}
	case t == cty.Number:
		value = node{"type": "number"}
	default:
		value = node{"type": "boolean"}
	}
	return node{"anyOf": []node{value, ref("template"), ref("null")}}
}
