package schema

import (
	"encoding/json"

	"github.com/zclconf/go-cty/cty"
)

// decodeStored builds the value of JSON that has the form Encode gives it: a store reads many thousands
// at once. It declines anything else, such as a number written as a string.
func decodeStored(tree any, attrs []Attr, blocks []Block) (cty.Value, bool) {
	object, ok := tree.(map[string]any)
	if !ok {
		return cty.NilVal, false
	}
	values := make(map[string]cty.Value, len(attrs)+len(blocks))
	known := 0
	for i := range attrs {
		item, present := object[attrs[i].Name]
		if present {
			known++
		}
		if values[attrs[i].Name], ok = decodeAttr(item, attrs[i].Type); !ok {
			return cty.NilVal, false
		}
	}
	for i := range blocks {
		item, present := object[blocks[i].Name]
		if present {
			known++
		}
		if values[blocks[i].Name], ok = decodeBlock(item, &blocks[i]); !ok {
			return cty.NilVal, false
		}
	}
	return cty.ObjectVal(values), known == len(object)
}

func decodeBlock(tree any, b *Block) (cty.Value, bool) {
	if b.Single {
		if tree == nil {
			return cty.NullVal(b.object()), true
		}
		return decodeStored(tree, b.Attrs, nil)
	}
	if tree == nil {
		return cty.NullVal(cty.Set(b.object())), true
	}
	return decodeSet(tree, b.object, func(item any) (cty.Value, bool) { return decodeStored(item, b.Attrs, nil) })
}

func decodeAttr(tree any, t cty.Type) (cty.Value, bool) {
	switch v := tree.(type) {
	case nil:
		return cty.NullVal(t), true
	case string:
		return cty.StringVal(v), t == cty.String
	case bool:
		return cty.BoolVal(v), t == cty.Bool
	case json.Number:
		n, err := cty.ParseNumberVal(v.String())
		return n, err == nil && t == cty.Number
	case []any:
		if !t.IsSetType() {
			return cty.NilVal, false
		}
		return decodeSet(v, t.ElementType, func(item any) (cty.Value, bool) { return decodeAttr(item, t.ElementType()) })
	}
	return cty.NilVal, false
}

func decodeSet(tree any, element func() cty.Type, decode func(any) (cty.Value, bool)) (cty.Value, bool) {
	items, ok := tree.([]any)
	if !ok {
		return cty.NilVal, false
	}
	if len(items) == 0 {
		return cty.SetValEmpty(element()), true
	}
	values := make([]cty.Value, len(items))
	for i := range items {
		if values[i], ok = decode(items[i]); !ok {
			return cty.NilVal, false
		}
	}
	return cty.SetVal(values), true
}
