package config

import (
	"maps"
	"time"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns what expressions can call, under the names Terraform has for it. All are functions
// of their arguments, of the files in dir and of now, which is one time for a whole evaluation: equal
// configurations give equal objects. With a zero now, plantimestamp fails.
func functions(dir string, now time.Time) map[string]function.Function {
	all := map[string]function.Function{}
	for _, table := range []map[string]function.Function{
		standardFunctions(), collectionFunctions(), textFunctions(), hashFunctions(), networkFunctions(),
		timeFunctions(now), typeFunctions(), markFunctions(), fileFunctions(dir), refusedFunctions(),
	} {
		maps.Copy(all, table)
	}
	all["templatefile"], all["templatestring"] = templateFile(dir, all), templateString(all)
	for name, l := range limits() {
		all[name] = limited(all[name], l)
	}
	return all
}

func standardFunctions() map[string]function.Function {
	return map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "floor": stdlib.FloorFunc, "log": stdlib.LogFunc,
		"max": stdlib.MaxFunc, "min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc,
		"signum": stdlib.SignumFunc,

		"chomp": stdlib.ChompFunc, "format": stdlib.FormatFunc, "formatlist": stdlib.FormatListFunc,
		"indent": stdlib.IndentFunc, "join": stdlib.JoinFunc, "lower": stdlib.LowerFunc, "regex": stdlib.RegexFunc,
		"regexall": stdlib.RegexAllFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "title": stdlib.TitleFunc,
		"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc,

		"chunklist": stdlib.ChunklistFunc, "coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc,
		"concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc, "distinct": stdlib.DistinctFunc,
		"element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "hasindex": stdlib.HasIndexFunc,
		"keys": stdlib.KeysFunc, "lookup": stdlib.LookupFunc, "range": plainRange(),
		"reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
		"setsubtract": stdlib.SetSubtractFunc, "setunion": stdlib.SetUnionFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "values": stdlib.ValuesFunc, "zipmap": stdlib.ZipmapFunc,

		"csvdecode": stdlib.CSVDecodeFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc,
		"yamldecode": ctyyaml.YAMLDecodeFunc, "yamlencode": ctyyaml.YAMLEncodeFunc,

		"can": tryfunc.CanFunc, "try": tryfunc.TryFunc,
		"tobool": stdlib.MakeToFunc(cty.Bool), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)),
		"tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)), "tonumber": stdlib.MakeToFunc(cty.Number),
		"toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tostring": stdlib.MakeToFunc(cty.String),
	}
}

func markFunctions() map[string]function.Function {
	anything := []function.Parameter{{
		Name: "value", Type: cty.DynamicPseudoType,
		AllowUnknown: true, AllowNull: true, AllowMarked: true, AllowDynamicType: true,
	}}
	sameType := func(args []cty.Value) (cty.Type, error) { return args[0].Type(), nil }
	return map[string]function.Function{
		"sensitive": function.New(&function.Spec{
			Params: anything, Type: sameType,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) { return args[0].Mark(sensitiveMark{}), nil },
		}),
		"nonsensitive": function.New(&function.Spec{
			Params: anything, Type: sameType,
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				if len(ephemeralSelf(args[0])) > 0 {
					return args[0], nil
				}
				v, marks := args[0].Unmark()
				delete(marks, sensitiveMark{})
				return v.WithMarks(marks), nil
			},
		}),
		"ephemeralasnull": ephemeralAsNull(),
		"issensitive": function.New(&function.Spec{
			Params: anything, Type: function.StaticReturnType(cty.Bool),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				if !args[0].IsKnown() && !isSensitive(args[0]) {
					return cty.UnknownVal(cty.Bool), nil
				}
				return cty.BoolVal(isSensitive(args[0])), nil
			},
		}),
	}
}
