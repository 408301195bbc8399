package plan

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// Hidden is printed in place of what must not be shown.
const Hidden = "(sensitive value)"

// Nested reports whether values of a type are blocks: one, or a set of them.
func Nested(t cty.Type) bool {
	return t.IsObjectType() || t.IsSetType() && t.ElementType().IsObjectType()
}

// Blocks prints what becomes of the blocks of a name. The note stands behind each.
func (t Text) Blocks(out *strings.Builder, name string, before, after cty.Value, note string) {
	if after.Type().IsObjectType() && !absent(before) && !absent(after) {
		t.changedBlock(out, name, before, after, note)
		return
	}
	was, is := Blocks(before), Blocks(after)
	for _, b := range was {
		if !contains(is, b) {
			t.nestedBlock(out, "-", name, b, note)
		}
	}
	for _, b := range is {
		if !contains(was, b) {
			t.nestedBlock(out, "+", name, b, note)
		}
	}
}

// changedBlock prints what changes in a block of which there is one.
func (t Text) changedBlock(out *strings.Builder, name string, was, is cty.Value, note string) {
	fmt.Fprintf(out, "      %s %s {%s\n", t.Paint("~"), name, note)
	for _, name := range sortedKeys(is.Type().AttributeTypes()) {
		before, after := was.GetAttr(name), is.GetAttr(name)
		switch {
		case absent(before) && absent(after):
		case absent(before):
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint("+"), name, Literal(after))
		case absent(after):
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint("-"), name, Literal(before))
		case before.RawEquals(after):
			fmt.Fprintf(out, "            %s = %s\n", name, Literal(after))
		default:
			fmt.Fprintf(out, "          %s %s = %s -> %s\n", t.Paint("~"), name, Literal(before), Literal(after))
		}
	}
	out.WriteString("        }\n")
}

func (t Text) nestedBlock(out *strings.Builder, symbol, name string, v cty.Value, note string) {
	fmt.Fprintf(out, "      %s %s {%s\n", t.Paint(symbol), name, note)
	attrs := v.AsValueMap()
	for _, attr := range sortedKeys(attrs) {
		if !absent(attrs[attr]) {
			fmt.Fprintf(out, "          %s %s = %s\n", t.Paint(symbol), attr, Literal(attrs[attr]))
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

// Blocks lists the nested blocks in a value: none, one, or those of a set.
func Blocks(v cty.Value) []cty.Value {
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

// Literal prints a value as HCL.
func Literal(v cty.Value) string {
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
		items = append(items, Literal(ev))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func keyed(v cty.Value) string {
	var items []string
	for it := v.ElementIterator(); it.Next(); {
		key, ev := it.Element()
		name := key.AsString()
		if !hclsyntax.ValidIdentifier(name) {
			name = Literal(key)
		}
		items = append(items, name+" = "+Literal(ev))
	}
	if len(items) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(items, ", ") + " }"
}
