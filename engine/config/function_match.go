package config

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// matchKeysFunction returns the values whose keys, at the same places of another list, are among those
// searched for.
func matchKeysFunction() function.Function {
	list := func(name string) function.Parameter {
		return function.Parameter{Name: name, Type: cty.List(cty.DynamicPseudoType)}
	}
	return function.New(&function.Spec{
		Params: []function.Parameter{list("valueslist"), list("keyslist"), list("searchset")},
		Type: func(args []cty.Value) (cty.Type, error) {
			if t, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()}); t == cty.NilType {
				return cty.NilType, function.NewArgErrorf(2, "the keys searched for are of another type than the keys")
			}
			return args[0].Type(), nil
		},
		RefineResult: notNull,
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			if args[0].LengthInt() != args[1].LengthInt() {
				return cty.NilVal, function.NewArgErrorf(1, "there must be as many keys as values")
			}
			unified, _ := convert.UnifyUnsafe([]cty.Type{args[1].Type(), args[2].Type()})
			keys, err := convert.Convert(args[1], unified)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			search, err := convert.Convert(args[2], unified)
			if err != nil {
				return cty.NilVal, function.NewArgError(2, err)
			}
			return matchKeys(args[0].AsValueSlice(), keys, search, t)
		},
	})
}

func matchKeys(values []cty.Value, keys, search cty.Value, t cty.Type) (cty.Value, error) {
	if !keys.IsWhollyKnown() || !search.IsWhollyKnown() {
		return cty.UnknownVal(t), nil
	}
	var out []cty.Value
	for i, key := range keys.AsValueSlice() {
		found := slices.ContainsFunc(search.AsValueSlice(), func(v cty.Value) bool {
			equal, err := stdlib.Equal(key, v)
			return err == nil && equal.True()
		})
		if found {
			out = append(out, values[i])
		}
	}
	if len(out) == 0 {
		return cty.ListValEmpty(t.ElementType()), nil
	}
	return cty.ListVal(out), nil
}

// transposeFunction turns a map of lists around: from each element to the keys whose lists have it.
func transposeFunction() function.Function {
	t := cty.Map(cty.List(cty.String))
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "values", Type: t}}, Type: function.StaticReturnType(t), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(t), nil
			}
			in := args[0].AsValueMap()
			keys := map[string][]cty.Value{}
			for _, key := range slices.Sorted(maps.Keys(in)) {
				if in[key].IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "a list in it is null")
				}
				for _, v := range in[key].AsValueSlice() {
					if v.IsNull() {
						return cty.NilVal, function.NewArgErrorf(0, "a list in it holds a null")
					}
					keys[v.AsString()] = append(keys[v.AsString()], cty.StringVal(key))
				}
			}
			if len(keys) == 0 {
				return cty.MapValEmpty(cty.List(cty.String)), nil
			}
			out := map[string]cty.Value{}
			for name, list := range keys {
				out[name] = cty.ListVal(list)
			}
			return cty.MapVal(out), nil
		},
	})
}
