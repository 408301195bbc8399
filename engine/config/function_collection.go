package config

import (
	"errors"
	"math/big"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func collectionFunctions() map[string]function.Function {
	return map[string]function.Function{
		"alltrue":    fold(cty.True, func(all, v cty.Value) cty.Value { return all.And(v) }),
		"anytrue":    fold(cty.False, func(any, v cty.Value) cty.Value { return any.Or(v) }),
		"coalesce":   coalesceFunction(),
		"index":      indexFunction(),
		"length":     lengthFunction(),
		"matchkeys":  matchKeysFunction(),
		"merge":      mergeFunction(),
		"one":        oneFunction(),
		"setproduct": setProductFunction(),
		"sum":        sumFunction(),
		"transpose":  transposeFunction(),
	}
}

// fold goes through a list of booleans, in which null counts as false.
func fold(start cty.Value, step func(acc, v cty.Value) cty.Value) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			result := start
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				if v.IsNull() {
					v = cty.False
				}
				result = step(result, v)
			}
			return result, nil
		},
	})
}

// coalesceFunction returns the first argument that is neither null nor the empty string.
func coalesceFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{
			Name: "vals", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowNull: true, AllowDynamicType: true,
		},
		Type: func(args []cty.Value) (cty.Type, error) {
			types := make([]cty.Type, len(args))
			for i, v := range args {
				types[i] = v.Type()
			}
			if t, _ := convert.UnifyUnsafe(types); t != cty.NilType && len(types) > 0 {
				return t, nil
			}
			return cty.NilType, errors.New("all arguments must have the same type")
		},
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			for _, v := range args {
				v, err := convert.Convert(v, t)
				switch {
				case err != nil:
					return cty.NilVal, err
				case !v.IsKnown():
					return cty.UnknownVal(t), nil
				case v.IsNull() || v.Type() == cty.String && v.AsString() == "":
					continue
				}
				return v, nil
			}
			return cty.NilVal, errors.New("no argument has a value: all are null or empty strings")
		},
	})
}

// indexFunction returns at which place of a list a value is.
func indexFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType},
		},
		RefineResult: notNull,
		Type: func(args []cty.Value) (cty.Type, error) {
			if t := args[0].Type(); !t.IsListType() && !t.IsTupleType() {
				return cty.NilType, function.NewArgErrorf(0, "want a list, and this is a %s", t.FriendlyName())
			}
			return cty.Number, nil
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			unknown := false
			for it := args[0].ElementIterator(); it.Next(); {
				i, v := it.Element()
				equal, err := stdlib.Equal(v, args[1])
				switch {
				case err != nil:
					return cty.NilVal, err
				case !equal.IsKnown():
					unknown = true
				case equal.True() && !unknown:
					return i, nil
				}
			}
			if unknown {
				return cty.UnknownVal(cty.Number), nil
			}
			return cty.NilVal, errors.New("the list does not hold that value")
		},
	})
}

// lengthFunction counts elements, or the characters of a string.
func lengthFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{
			Name: "value", Type: cty.DynamicPseudoType, AllowUnknown: true, AllowDynamicType: true,
		}},
		RefineResult: notNull,
		Type: func(args []cty.Value) (cty.Type, error) {
			t := args[0].Type()
			if t == cty.String || t == cty.DynamicPseudoType || t.IsCollectionType() || t.IsTupleType() || t.IsObjectType() {
				return cty.Number, nil
			}
			return cty.NilType, function.NewArgErrorf(0, "want a collection or a string, and this is a %s", t.FriendlyName())
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v := args[0]
			switch t := v.Type(); {
			case t == cty.DynamicPseudoType:
				return cty.UnknownVal(cty.Number), nil
			case t == cty.String:
				return stdlib.Strlen(v)
			case t.IsTupleType():
				return cty.NumberIntVal(int64(t.Length())), nil
			case t.IsObjectType():
				return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
			}
			return v.Length(), nil
		},
	})
}

// mergeFunction is the standard one, which panics where a null comes before what is no map.
func mergeFunction() function.Function {
	return function.New(&function.Spec{
		VarParam: stdlib.MergeFunc.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			for i, arg := range args {
				t := arg.Type()
				if !t.IsMapType() && !t.IsObjectType() && t != cty.DynamicPseudoType {
					return cty.NilType, function.NewArgErrorf(i, "want a map or an object, and this is a %s", t.FriendlyName())
				}
			}
			return stdlib.MergeFunc.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return stdlib.MergeFunc.Call(args) },
	})
}

// oneFunction returns the only element, or null for an empty list.
func oneFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
		Type: func(args []cty.Value) (cty.Type, error) {
			switch t := args[0].Type(); {
			case t.IsListType() || t.IsSetType():
				return t.ElementType(), nil
			case t.IsTupleType() && t.Length() == 0:
				return cty.DynamicPseudoType, nil
			case t.IsTupleType() && t.Length() == 1:
				return t.TupleElementType(0), nil
			case t.IsTupleType():
				return cty.NilType, function.NewArgErrorf(0, "want at most one element, and this has %d", t.Length())
			default:
				return cty.NilType, function.NewArgErrorf(0, "want a list or a set, and this is a %s", t.FriendlyName())
			}
		},
		Impl: func(args []cty.Value, t cty.Type) (cty.Value, error) {
			length := args[0].Length()
			if !length.IsKnown() {
				return cty.UnknownVal(t), nil
			}
			switch n, _ := length.AsBigFloat().Int64(); n {
			case 0:
				return cty.NullVal(t), nil
			case 1:
				it := args[0].ElementIterator()
				it.Next()
				_, v := it.Element()
				return v, nil
			}
			return cty.NilVal, function.NewArgErrorf(0, "want at most one element")
		},
	})
}

// setProductFunction is the standard one, which panics on a tuple with an element of no known type beside others.
func setProductFunction() function.Function {
	asLists := func(args []cty.Value) ([]cty.Value, error) {
		lists := slices.Clone(args)
		for i, arg := range args {
			if t := arg.Type(); !t.IsTupleType() || t.Length() == 0 {
				continue
			}
			list, err := convert.Convert(arg, cty.List(cty.DynamicPseudoType))
			if err != nil {
				return nil, function.NewArgError(i, err)
			}
			lists[i] = list
		}
		return lists, nil
	}
	return function.New(&function.Spec{
		VarParam: stdlib.SetProductFunc.VarParam(),
		Type: func(args []cty.Value) (cty.Type, error) {
			lists, err := asLists(args)
			if err != nil {
				return cty.NilType, err
			}
			return stdlib.SetProductFunc.ReturnTypeForValues(lists)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			lists, err := asLists(args)
			if err != nil {
				return cty.NilVal, err
			}
			return stdlib.SetProductFunc.Call(lists)
		},
	})
}

func sumFunction() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			total := cty.Zero
			for it := args[0].ElementIterator(); it.Next(); {
				_, v := it.Element()
				if v.IsNull() {
					return cty.NilVal, function.NewArgErrorf(0, "a null cannot be added")
				}
				total = total.Add(v)
			}
			return total, nil
		},
	})
}

// plainRange is range that makes plain numbers of whole ones. Arithmetic gives numbers of 512 bits, and these
// take twenty times as long to become text, as most that count do.
func plainRange() function.Function {
	return function.New(&function.Spec{
		VarParam:     stdlib.RangeFunc.VarParam(),
		Type:         stdlib.RangeFunc.ReturnTypeForValues,
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			counted, err := stdlib.RangeFunc.Call(args)
			if err != nil || counted.LengthInt() == 0 {
				return counted, err
			}
			plain := counted.AsValueSlice()
			for i, v := range plain {
				if n, accuracy := v.AsBigFloat().Int64(); accuracy == big.Exact {
					plain[i] = cty.NumberIntVal(n)
				}
			}
			return cty.ListVal(plain), nil
		},
	})
}
