package export

import (
	"encoding/json"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/schema"
)

// expr is an expression in both syntaxes.
type expr interface {
	hcl() hclwrite.Tokens
	json() string
}

// literal is a value without unknowns and marks.
type literal struct{ value cty.Value }

func (l literal) hcl() hclwrite.Tokens { return hclwrite.TokensForValue(l.value) }

func (l literal) json() string {
	v := l.value
	switch {
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return quote(template(v.AsString()))
	case v.Type().IsPrimitiveType():
		raw, err := ctyjson.Marshal(v, v.Type())
		if err == nil {
			return string(raw)
		}
	}
	return interpolated(l) // HCL's own syntax has all values
}

// template escapes what a string means in a template. HCL skips a byte order mark that is the first of one.
func template(s string) string {
	const mark = "\ufeff"
	rest, marked := strings.CutPrefix(s, mark)
	rest = strings.NewReplacer("${", "$${", "%{", "%%{").Replace(rest)
	if marked {
		return `${"` + mark + `"}` + rest
	}
	return rest
}

func quote(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// interpolated is an expression as JSON has it: a template of nothing else.
func interpolated(e expr) string {
	return quote("${" + string(hclwrite.Format(e.hcl().Bytes())) + "}")
}

// traversal is a reference.
type traversal hcl.Traversal

func names(names ...string) traversal {
	t := traversal{hcl.TraverseRoot{Name: names[0]}}
	for _, name := range names[1:] {
		t = append(t, hcl.TraverseAttr{Name: name})
	}
	return t
}

func (t traversal) hcl() hclwrite.Tokens { return hclwrite.TokensForTraversal(hcl.Traversal(t)) }
func (t traversal) json() string         { return interpolated(t) }

// static is a traversal that is read and not evaluated.
type static struct{ traversal }

func (s static) json() string { return quote(string(s.hcl().Bytes())) }

// reference returns the traversal to what is at an address.
func reference(a schema.Address) traversal {
	var t traversal
	step := func(root string, s schema.Step) {
		if len(t) == 0 {
			t = names(root)
		} else {
			t = append(t, hcl.TraverseAttr{Name: root})
		}
		t = append(t, hcl.TraverseAttr{Name: s.Name})
		if s.Keyed {
			t = append(t, hcl.TraverseIndex{Key: cty.StringVal(s.Key)})
		}
	}
	for _, m := range a.Modules {
		step("module", m)
	}
	step(a.Kind, a.Step)
	return t
}

func address(a schema.Address) static { return static{reference(a)} }

// list is a tuple.
type list []expr

func (l list) hcl() hclwrite.Tokens {
	items := make([]hclwrite.Tokens, len(l))
	for i, e := range l {
		items[i] = e.hcl()
	}
	return hclwrite.TokensForTuple(items)
}

func (l list) json() string {
	items := make([]string, len(l))
	for i, e := range l {
		items[i] = e.json()
	}
	return "[" + strings.Join(items, ",") + "]"
}

// field is one element of an object. A quoted one has a name from outside, which may be anything.
type field struct {
	name   string
	quoted bool
	value  expr
}

type object []field

func (o object) hcl() hclwrite.Tokens {
	items := make([]hclwrite.ObjectAttrTokens, len(o))
	for i, f := range o {
		name := hclwrite.TokensForIdentifier(f.name)
		if f.quoted {
			name = hclwrite.TokensForValue(cty.StringVal(f.name))
		}
		items[i] = hclwrite.ObjectAttrTokens{Name: name, Value: f.value.hcl()}
	}
	return hclwrite.TokensForObject(items)
}

func (o object) json() string {
	items := make([]string, len(o))
	for i, f := range o {
		items[i] = quote(template(f.name)) + ":" + f.value.json()
	}
	return "{" + strings.Join(items, ",") + "}"
}

// keyword is a bare word where one is expected.
type keyword string

func (k keyword) hcl() hclwrite.Tokens { return hclwrite.TokensForIdentifier(string(k)) }
func (k keyword) json() string         { return quote(string(k)) }

// call is a function of one argument.
type call struct {
	function string
	arg      expr
}

func (c call) hcl() hclwrite.Tokens { return hclwrite.TokensForFunctionCall(c.function, c.arg.hcl()) }
func (c call) json() string         { return interpolated(c) }

// attr is an argument, block what it is in.
type attr struct {
	name  string
	value expr
}

type body struct {
	notes  []string // comments inside
	attrs  []attr
	blocks []block
}

type block struct {
	comment string // above; may have several lines
	kind    string
	labels  []string
	body
}

// HCL returns the document in HCL's native syntax.
func (d *Document) HCL() []byte {
	f := hclwrite.NewEmptyFile()
	for i, b := range d.blocks {
		if i > 0 {
			f.Body().AppendNewline()
		}
		b.appendTo(f.Body())
	}
	return hclwrite.Format(f.Bytes())
}

func (b *block) appendTo(to *hclwrite.Body) {
	if b.comment != "" {
		appendComment(to, b.comment)
	}
	in := to.AppendNewBlock(b.kind, b.labels).Body()
	for _, note := range b.notes {
		appendComment(in, note)
	}
	for _, a := range b.attrs {
		in.SetAttributeRaw(a.name, a.value.hcl())
	}
	for i := range b.blocks {
		b.blocks[i].appendTo(in)
	}
}

func appendComment(to *hclwrite.Body, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		to.AppendUnstructuredTokens(hclwrite.Tokens{{Type: hclsyntax.TokenComment, Bytes: []byte("# " + line + "\n")}})
	}
}
