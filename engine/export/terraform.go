package export

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// What Terraform calls the provider, and where it comes from.
const (
	terraformName   = "qod"
	terraformSource = "qod-io/qod"
)

// Terraform returns objects as resources for Terraform, each with the import block that has it managed from there: a
// plan of it imports and changes nothing. With a stack it has the provider's blocks too. What a secret or sensitive
// value would be is left out; those of the latter are told in warnings, since the plan will take them away.
func Terraform(stack string, objects []Object) (text []byte, warnings []string) {
	w := &resources{file: hclwrite.NewEmptyFile(), labels: map[schema.Addr]string{}}
	order := map[string]int{}
	for i, k := range schema.Kinds() {
		order[k.Name] = i
	}
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b Object) int {
		return cmp.Or(order[a.Kind.Name]-order[b.Kind.Name], cmp.Compare(a.Kind.Addr(a.Value).Path, b.Kind.Addr(b.Value).Path))
	})
	taken := map[string]bool{}
	for _, o := range objects {
		g := group{kind: o.Kind, members: []member{{Object: o}}}
		label := freeLabel(g.wish(), func(label string) bool { return taken[o.Kind.Name+"."+label] })
		taken[o.Kind.Name+"."+label] = true
		w.labels[o.Kind.Addr(o.Value)] = label
	}
	if stack != "" {
		w.head(stack)
	}
	for _, o := range objects {
		w.resource(o)
	}
	for _, o := range objects {
		body := w.block("import")
		body.SetAttributeTraversal("to", w.traversal(o.Kind.Addr(o.Value)))
		body.SetAttributeValue("id", cty.StringVal(o.Kind.Addr(o.Value).Path))
	}
	return hclwrite.Format(w.file.Bytes()), w.warnings
}

type resources struct {
	file     *hclwrite.File
	labels   map[schema.Addr]string
	warnings []string
}

func (w *resources) block(kind string, labels ...string) *hclwrite.Body {
	if len(w.file.Body().Blocks()) > 0 {
		w.file.Body().AppendNewline()
	}
	return w.file.Body().AppendNewBlock(kind, labels).Body()
}

func (w *resources) head(stack string) {
	required := w.block("terraform").AppendNewBlock("required_providers", nil).Body()
	required.SetAttributeValue(terraformName, cty.ObjectVal(map[string]cty.Value{"source": cty.StringVal(terraformSource)}))
	w.block("provider", terraformName).SetAttributeValue("stack", cty.StringVal(stack))
}

func (w *resources) traversal(a schema.Addr, attrs ...string) hcl.Traversal {
	t := hcl.Traversal{hcl.TraverseRoot{Name: terraformName + "_" + a.Kind}, hcl.TraverseAttr{Name: w.labels[a]}}
	for _, name := range attrs {
		t = append(t, hcl.TraverseAttr{Name: name})
	}
	return t
}

func (w *resources) resource(o Object) {
	at := o.Kind.Addr(o.Value)
	body := w.block("resource", terraformName+"_"+o.Kind.Name, w.labels[at])
	for _, name := range o.Kind.Names() {
		v := o.Value.GetAttr(name)
		switch {
		case v.IsNull() || o.Kind.Secret(name):
		case slices.Contains(o.Sensitive, name):
			w.warnings = append(w.warnings, fmt.Sprintf("%s.%s is sensitive and not exported: write it anew, or the next apply takes it away.", at, name))
		default:
			body.SetAttributeRaw(name, w.value(o, name, v))
		}
	}
	if o.Lifecycle.PreventDestroy {
		body.SetAttributeValue("protected", cty.True)
	}
}

// value writes a value, with references to what is exported as well.
func (w *resources) value(o Object, name string, v cty.Value) hclwrite.Tokens {
	refs := map[string]schema.Addr{}
	for _, ref := range o.Kind.Refs(o.Value) {
		if _, exported := w.labels[ref.To]; exported && ref.Attr == name {
			refs[ref.To.Name()] = ref.To
		}
	}
	one := func(v cty.Value) hclwrite.Tokens {
		if v.Type() == cty.String {
			if to, ok := refs[schema.Fold(v.AsString())]; ok {
				k, _ := schema.Lookup(to.Kind)
				return hclwrite.TokensForTraversal(w.traversal(to, k.Key[len(k.Key)-1]))
			}
		}
		return hclwrite.TokensForValue(plain(v))
	}
	if !v.Type().IsSetType() {
		return one(v)
	}
	var items []hclwrite.Tokens
	for _, item := range v.AsValueSlice() {
		items = append(items, one(item))
	}
	if v.Type().ElementType() == cty.String || len(items) < 2 {
		return hclwrite.TokensForTuple(items)
	}
	return lines(items)
}

// lines writes a list with each of its items in a line of its own.
func lines(items []hclwrite.Tokens) hclwrite.Tokens {
	newline := &hclwrite.Token{Type: hclsyntax.TokenNewline, Bytes: []byte("\n")}
	out := hclwrite.Tokens{{Type: hclsyntax.TokenOBrack, Bytes: []byte("[")}, newline}
	for _, item := range items {
		out = append(append(out, item...), &hclwrite.Token{Type: hclsyntax.TokenComma, Bytes: []byte(",")}, newline)
	}
	return append(out, &hclwrite.Token{Type: hclsyntax.TokenCBrack, Bytes: []byte("]")})
}

// plain leaves out what was not written in a block. Sets become lists, as they are written.
func plain(v cty.Value) cty.Value {
	switch {
	case v.IsNull():
		return v
	case v.Type().IsObjectType():
		attrs := v.AsValueMap()
		for name, at := range attrs {
			if attrs[name] = plain(at); at.IsNull() {
				delete(attrs, name)
			}
		}
		return cty.ObjectVal(attrs)
	case v.Type().IsSetType():
		items := v.AsValueSlice()
		for i := range items {
			items[i] = plain(items[i])
		}
		return cty.TupleVal(items)
	}
	return v
}
