package config

import (
	"errors"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func timeFunctions(now time.Time) map[string]function.Function {
	return map[string]function.Function{
		"formatdate": stdlib.FormatDateFunc, "timeadd": stdlib.TimeAddFunc,
		"timecmp":       timeCompare(),
		"plantimestamp": planTime(now),
	}
}

// planTime returns now, the same in all of an evaluation.
func planTime(now time.Time) function.Function {
	return function.New(&function.Spec{
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			if now.IsZero() {
				return cty.NilVal, errors.New("there is no plan here whose time it could be")
			}
			return cty.StringVal(now.UTC().Format(time.RFC3339)), nil
		},
	})
}

// timeCompare returns -1, 0 or 1: whether the first time is before, at or after the second.
func timeCompare() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "timestamp_a", Type: cty.String}, {Name: "timestamp_b", Type: cty.String}},
		Type:         function.StaticReturnType(cty.Number),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			var times [2]time.Time
			for i, arg := range args {
				t, err := time.Parse(time.RFC3339, arg.AsString())
				if err != nil {
					return cty.NilVal, function.NewArgErrorf(i, "want a time such as 2030-01-31T18:00:00Z")
				}
				times[i] = t
			}
			return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
		},
	})
}
