package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// manyDigits is how many digits in a row may be too many, and manyOfExponent how many of an exponent.
const (
	manyDigits     = 1000
	manyOfExponent = 4
)

// mayBeLong reports whether text has what may be a number of too many digits. Few files have any, and only
// those are looked through token by token.
func mayBeLong(text []byte) bool {
	digits := 0
	for i, c := range text {
		if isDigit(c) {
			if digits++; digits == manyDigits {
				return true
			}
			continue
		}
		digits = 0
		if (c == 'e' || c == 'E') && i > 0 && (isDigit(text[i-1]) || text[i-1] == '.') && longExponent(text[i+1:]) {
			return true
		}
	}
	return false
}

// longExponent reports whether text begins with what may be an exponent of too many digits.
func longExponent(text []byte) bool {
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	return len(text) >= manyOfExponent && !slices.ContainsFunc(text[:manyOfExponent], func(c byte) bool { return !isDigit(c) })
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// refuseNumbers refuses the numbers of a file that would be text of any length: 1e600000000 as a name has
// 600 MB.
func refuseNumbers(src []byte, file string) hcl.Diagnostics {
	inJSON := isJSON(file)
	if !mayBeLong(src) && !(inJSON && bytes.Contains(src, []byte(`\u`))) {
		return nil
	}
	if inJSON {
		return numbersOf(lexJSON(src, file))
	}
	tokens, _ := hclsyntax.LexConfig(src, file, hcl.InitialPos) // the parser reports what is wrong
	return numbersOf(tokens)
}

func numbersOf(tokens hclsyntax.Tokens) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenNumberLit:
			if tooLong(t.Bytes) {
				diags = append(diags, failAt(t.Range, "Number out of range", "%s", numberRange()))
			}
		case hclsyntax.TokenQuotedLit:
			if !isJSON(t.Range.Filename) {
				continue
			}
			inner, _ := hclsyntax.LexTemplate([]byte(jsonText(t.Bytes)), t.Range.Filename, t.Range.Start)
			for _, n := range inner {
				if n.Type == hclsyntax.TokenNumberLit && tooLong(n.Bytes) {
					diags = append(diags, failAt(t.Range, "Number out of range", "%s", numberRange()))
				}
			}
		}
	}
	return diags
}

func numberRange() string {
	return fmt.Sprintf("A number may be as large as 2 to the power of %d, or as small as 2 to the power of -%d.", maxExponent, maxExponent)
}

// checkNumbers looks for a number that cannot be used. That a value is large is no matter here.
func checkNumbers(v cty.Value) error {
	if err := checkLocal(v); errors.Is(err, errInfinite) || errors.Is(err, errDigits) {
		return err
	}
	return nil
}

func failNumbers(v cty.Value, rng hcl.Range) hcl.Diagnostics {
	if checkNumbers(v) == nil {
		return nil
	}
	return hcl.Diagnostics{failAt(rng, "Number out of range", "The value has a number that cannot be used. %s", numberRange())}
}

// tooLong reports whether a number cannot be used. What is no number, the parser reports.
func tooLong(text []byte) bool {
	v, err := cty.ParseNumberVal(string(text))
	return err == nil && checkDigits(v.AsBigFloat()) != nil
}
