package schema

import (
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Encode returns the stored form of a value: JSON without what was not written. Sets are sorted, so
// equal values encode to equal bytes.
func (k *Kind) Encode(v cty.Value) ([]byte, error) {
	raw, err := ctyjson.Marshal(v, k.Type())
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.Name, err)
	}
	var tree any
	if err := unmarshalExact(raw, &tree); err != nil {
		return nil, fmt.Errorf("encode %s: %w", k.Name, err)
	}
	return json.Marshal(withoutNulls(tree))
}

// Decode reads what Encode wrote, or what a REST client sent. Unknown attributes are refused.
func (k *Kind) Decode(data []byte) (cty.Value, error) {
	var tree any
	if err := unmarshalExact(data, &tree); err != nil {
		return cty.NilVal, fmt.Errorf("decode %s: %w", k.Name, err)
	}
	if v, ok := decodeStored(tree, k.Attrs, k.Blocks); ok {
		return k.Shared(v), nil
	}
	filled, err := json.Marshal(withNulls(tree, k.Type()))
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode %s: %w", k.Name, err)
	}
	v, err := ctyjson.Unmarshal(filled, k.Type())
	if err != nil {
		return cty.NilVal, fmt.Errorf("decode %s: %w", k.Name, err)
	}
	return v, nil
}

func withoutNulls(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for name, v := range t {
			if v == nil {
				delete(t, name)
				continue
			}
			t[name] = withoutNulls(v)
		}
	case []any:
		for i, v := range t {
			t[i] = withoutNulls(v)
		}
	}
	return tree
}

// withNulls adds the attributes that the JSON leaves out: cty wants every attribute of an object.
func withNulls(tree any, t cty.Type) any {
	switch v := tree.(type) {
	case map[string]any:
		if !t.IsObjectType() {
			return tree
		}
		for name, at := range t.AttributeTypes() {
			v[name] = withNulls(v[name], at)
		}
	case []any:
		if !t.IsSetType() {
			return tree
		}
		for i := range v {
			v[i] = withNulls(v[i], t.ElementType())
		}
	}
	return tree
}
