package config

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func textFunctions() map[string]function.Function {
	return map[string]function.Function{
		"startswith":  predicate("prefix", strings.HasPrefix),
		"endswith":    predicate("suffix", strings.HasSuffix),
		"strcontains": predicate("substr", strings.Contains),
		"replace":     replaceFunction(),

		"base64decode": ofText(base64Decode),
		"urlencode":    ofText(func(s string) (string, error) { return url.QueryEscape(s), nil }),
		"urldecode": ofText(func(s string) (string, error) {
			decoded, err := url.QueryUnescape(s)
			if err != nil {
				return "", errors.New("this is not a URL-encoded string")
			}
			return decoded, nil
		}),
	}
}

func base64Decode(s string) (string, error) {
	decoded, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return "", errors.New("this is not base64")
	}
	if !utf8.Valid(decoded) {
		return "", errors.New("what it encodes is not UTF-8 text")
	}
	return string(decoded), nil
}

// ofText is a function from a string to a string.
func ofText(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "str", Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(out), nil
		},
	})
}

// predicate is a question about two strings.
func predicate(second string, f func(a, b string) bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: "str", Type: cty.String}, {Name: second, Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }

// replaceFunction takes a regular expression where the second argument is written /like this/.
func replaceFunction() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{
			{Name: "str", Type: cty.String}, {Name: "substr", Type: cty.String}, {Name: "replace", Type: cty.String},
		},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			pattern := args[1].AsString()
			if len(pattern) > 1 && pattern[0] == '/' && pattern[len(pattern)-1] == '/' {
				return stdlib.RegexReplace(args[0], cty.StringVal(pattern[1:len(pattern)-1]), args[2])
			}
			return stdlib.Replace(args[0], args[1], args[2])
		},
	})
}
