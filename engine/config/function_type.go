package config

import (
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// typeFunctions convert to a type written as those of variables are, and write a value's type so.
func typeFunctions() map[string]function.Function {
	return map[string]function.Function{
		"convert": typeexpr.ConvertFunc,
		"type": function.New(&function.Spec{
			Params: []function.Parameter{{
				Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowDynamicType: true,
			}},
			Type: function.StaticReturnType(cty.String), RefineResult: notNull,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				t := args[0].Type()
				if !args[0].IsKnown() && t.HasDynamicTypes() {
					return cty.UnknownVal(cty.String), nil
				}
				return cty.StringVal(typeexpr.TypeString(t)), nil
			},
		}),
	}
}
