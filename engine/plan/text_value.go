package plan

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

func nested(a Attr) bool {
	t := a.After.Type()
	return t.IsObjectType() || t.IsSetType() && t.ElementType().IsObjectType()
}

func (t Text) block(out *strings.Builder, a Attr, note string) {
	if a.After.Type().IsObjectType() && !absent(a.Before) && !absent(a.After) {
		t.changedBlock(out, a, note)
		return
	}
	before, after := blocks(a.Before), blocks(a.After)
	for _, b := range before {
		if !contains(after, b) {
			t.nestedBlock(out, "-", a.Name, b, note)
		}
	}
	for _, b := range after {
		if !contains(before, b) {
			t.nestedBlock(out, "+", a.Name, b, note)
		}
	}
}

// changedBlock prints what changes in a block of which there is one.
func (t Text) changedBlock(out *strings.Builder, a Attr, note string) {
	fmt.Fprintf(out, "      %s %s {%s\n", t.Paint("~"), a.Name, note)
	for _, name := range sortedKeys(a.After.Type().AttributeTypes()) {
		before, after := a.Before.GetAttr(name), a.After.GetAttr(name)
		switch {
		case absent(before) && absent(after):
		case absent(before):
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint("+"), name, literal(after))
		case absent(after):
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint("-"), name, literal(before))
		case before.RawEquals(after):
			fmt.Fprintf(out, "            %s = %s\n", name, literal(after))
		default:
			fmt.Fprintf(out, "          %s %s = %s -> %s\n", t.Paint("~"), name, literal(before), literal(after))
		}
	}
	out.WriteString("        }\n")
}

func (t Text) nestedBlock(out *strings.Builder, symbol, name string, v cty.Value, note string) {
	fmt.Fprintf(out, "      %s %s {%s\n", t.Paint(symbol), name, note)
	attrs := v.AsValueMap()
	for _, attr := range sortedKeys(attrs) {
		if !absent(attrs[attr]) {
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint(symbol), attr, literal(attrs[attr]))
		}
	}
	out.WriteString("        }\n")
}

// withoutNulls leaves out, of blocks, what is not written.
func withoutNulls(v cty.Value) cty.Value {
	if v.Type().IsSetType() && v.Type().ElementType().IsObjectType() {
		items := v.AsValueSlice()
		for i := range items {
			items[i] = withoutNulls(items[i])
		}
		return cty.TupleVal(items)
	}
	if !v.Type().IsObjectType() {
		return v
	}
	attrs := v.AsValueMap()
	for name, av := range attrs {
		if absent(av) {
			delete(attrs, name)
		}
	}
	return cty.ObjectVal(attrs)
}

func blocks(v cty.Value) []cty.Value {
	switch {
	case absent(v):
		return nil
	case v.Type().IsSetType():
		return v.AsValueSlice()
	}
	return []cty.Value{v}
}

func contains(list []cty.Value, v cty.Value) bool {
	for _, have := range list {
		if have.RawEquals(v) {
			return true
		}
	}
	return false
}

// literal prints a value as HCL.
func literal(v cty.Value) string {
	switch {
	case v == cty.NilVal || v.IsNull():
		return "null"
	case v.Type() == cty.String:
		return string(hclwrite.TokensForValue(v).Bytes())
	case v.Type() == cty.Number:
		return v.AsBigFloat().Text('f', -1)
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type().IsObjectType(), v.Type().IsMapType():
		return keyed(v)
	}
	var items []string
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		items = append(items, literal(ev))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func keyed(v cty.Value) string {
	var items []string
	for it := v.ElementIterator(); it.Next(); {
		key, ev := it.Element()
		name := key.AsString()
		if !hclsyntax.ValidIdentifier(name) {
			name = literal(key)
		}
		items = append(items, name+" = "+literal(ev))
	}
	if len(items) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(items, ", ") + " }"
}
