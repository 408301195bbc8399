package provider

import (
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"github.com/zclconf/go-cty/cty/msgpack"

	"github.com/qod-io/qod/schema"
)

// ctyType returns the cty type of a type of Terraform's: they write them alike.
func ctyType(t tftypes.Type) (cty.Type, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return cty.NilType, fmt.Errorf("read type: %w", err)
	}
	out, err := ctyjson.UnmarshalType(raw)
	if err != nil {
		return cty.NilType, fmt.Errorf("read type: %w", err)
	}
	return out, nil
}

// fromTerraform returns a value of Terraform's as one of cty's. What is unknown stays so.
func fromTerraform(v tftypes.Value) (cty.Value, error) {
	t, err := ctyType(v.Type())
	if err != nil {
		return cty.NilVal, err
	}
	packed, err := tfprotov6.NewDynamicValue(v.Type(), v)
	if err != nil {
		return cty.NilVal, fmt.Errorf("read value: %w", err)
	}
	out, err := msgpack.Unmarshal(packed.MsgPack, t)
	if err != nil {
		return cty.NilVal, fmt.Errorf("read value: %w", err)
	}
	return out, nil
}

// toTerraform is the inverse of fromTerraform.
func toTerraform(v cty.Value, t tftypes.Type) (tftypes.Value, error) {
	ct, err := ctyType(t)
	if err != nil {
		return tftypes.Value{}, err
	}
	packed, err := msgpack.Marshal(v, ct)
	if err != nil {
		return tftypes.Value{}, fmt.Errorf("write value: %w", err)
	}
	out, err := tfprotov6.DynamicValue{MsgPack: packed}.Unmarshal(t)
	if err != nil {
		return tftypes.Value{}, fmt.Errorf("write value: %w", err)
	}
	return out, nil
}

// part returns the attributes of a kind among those of a resource.
func part(k *schema.Kind, attrs map[string]cty.Value) cty.Value {
	own := k.Empty().AsValueMap()
	for name := range own {
		if v, ok := attrs[name]; ok {
			own[name] = v
		}
	}
	return cty.ObjectVal(own)
}

// pathOf leads to the same attribute in Terraform. It ends at a set: what is in it has no name.
func pathOf(p cty.Path) path.Path {
	out := path.Empty()
	for _, step := range p {
		name, ok := step.(cty.GetAttrStep)
		if !ok {
			break
		}
		out = out.AtName(name.Name)
	}
	return out
}
