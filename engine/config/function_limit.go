package config

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	ctyyaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// What one call may take and give. Without such limits a line of a configuration could take all memory.
const (
	maxText     = 16 << 20 // bytes
	maxPieces   = 300_000  // elements
	maxDepth    = 500      // of lists in lists
	maxExponent = 4096     // of a number, in bits

	// What a local may have. Locals that share parts, as [local.a, local.a] does, double with each step.
	maxLocalText   = 64 << 20
	maxLocalPieces = 1 << 20
)

var (
	errText   = fmt.Errorf("the result would have more than %d MiB", maxText>>20)
	errPieces = fmt.Errorf("this has more than %d elements", maxPieces)
	errDigits = errors.New("the number has too many digits")
	errDepth  = fmt.Errorf("this is nested more than %d deep", maxDepth)
)

var digitsPattern = regexp.MustCompile(`[0-9]+`)

// limit estimates, from known arguments without marks, what a call would give.
type limit func(args []cty.Value) error

func limits() map[string]limit {
	numbers := func([]cty.Value) error { return nil }
	return map[string]limit{
		"abs": numbers, "max": numbers, "min": numbers, "range": numbers, "signum": numbers, "sum": numbers,
		"convert": numbers, "lookup": numbers,
		"ceil": numbers, "floor": numbers, "jsonencode": numbers, "yamlencode": numbers, "tonumber": numbers,
		"tostring": numbers, "templatefile": numbers, "templatestring": numbers, "pow": real(math.Pow),
		"log":      real(func(a, b float64) float64 { return math.Log(a) / math.Log(b) }),
		"distinct": numbers, "setunion": numbers, "setintersection": numbers, "setsubtract": numbers,
		"csvdecode": textPieces("\n,"), "jsondecode": textPieces("[{,"), "yamldecode": yamlLimit,
		"format": formatLimit, "formatlist": formatLimit, "indent": indentLimit, "join": joinLimit,
		"parseint": textLength(maxExponent), "regexall": textLength(maxPieces),
		"replace": replaceLimit, "setproduct": productLimit, "split": splitLimit,
	}
}

// limited refuses calls of f that take or give too much, and is like f otherwise.
func limited(f function.Function, l limit) function.Function {
	allow := func(p function.Parameter) function.Parameter {
		p.AllowNull, p.AllowUnknown, p.AllowDynamicType, p.AllowMarked = true, true, true, true
		return p
	}
	spec := &function.Spec{
		Type: func(args []cty.Value) (cty.Type, error) {
			if err := checkArgs(args, l); err != nil {
				return cty.NilType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			out, err := f.Call(args)
			if err != nil {
				return cty.NilVal, err
			}
			return out, checkSize(out)
		},
	}
	for _, p := range f.Params() {
		spec.Params = append(spec.Params, allow(p))
	}
	if p := f.VarParam(); p != nil {
		variadic := allow(*p)
		spec.VarParam = &variadic
	}
	return function.New(spec)
}

func checkArgs(args []cty.Value, l limit) error {
	plain := make([]cty.Value, len(args))
	for i, arg := range args {
		if err := checkSize(arg); err != nil {
			return function.NewArgError(i, err)
		}
		plain[i], _ = arg.UnmarkDeep()
		if plain[i].IsNull() || !plain[i].IsWhollyKnown() {
			return nil
		}
	}
	return l(plain)
}

// size is what a value takes when it is written out, and the most that it may.
type size struct{ text, pieces, maxText, maxPieces int }

func newSize() *size { return &size{maxText: maxText, maxPieces: maxPieces} }

func checkSize(v cty.Value) error { return newSize().add(v, 0) }

// checkLocal does the same for a local.
func checkLocal(v cty.Value) error {
	s := size{maxText: maxLocalText, maxPieces: maxLocalPieces}
	if err := s.add(v, 0); err != nil {
		return fmt.Errorf("counting each part as often as it occurs, %w", err)
	}
	return nil
}

// add stops at the limits: a value may have far more parts than memory, since parts can be shared.
func (s *size) add(v cty.Value, depth int) error {
	v, _ = v.Unmark()
	s.pieces++
	t := v.Type()
	switch {
	case s.pieces > s.maxPieces:
		return fmt.Errorf("this has more than %d elements", s.maxPieces)
	case depth > maxDepth:
		return errDepth
	case v.IsNull() || !v.IsKnown():
		return nil
	case t == cty.String:
		s.text += len(v.AsString())
	case t == cty.Number:
		return checkDigits(v.AsBigFloat())
	case v.CanIterateElements():
		for it := v.ElementIterator(); it.Next(); {
			key, ev := it.Element()
			if key.Type() == cty.String && !t.IsSetType() {
				s.text += len(key.AsString())
			}
			if err := s.add(ev, depth+1); err != nil {
				return err
			}
		}
	}
	if s.text > s.maxText {
		return fmt.Errorf("the result would have more than %d MiB", s.maxText>>20)
	}
	return nil
}

func checkDigits(f *big.Float) error {
	if f.IsInf() {
		return errInfinite
	}
	if exp := f.MantExp(nil); exp > maxExponent || exp < -maxExponent {
		return errDigits
	}
	return nil
}

func textLength(most int) limit {
	return func(args []cty.Value) error {
		for i, arg := range args {
			if arg.Type() == cty.String && len(arg.AsString()) > most {
				return function.NewArgErrorf(i, "this has more than %d bytes", most)
			}
		}
		return nil
	}
}

// textPieces is for text of a notation in which each element has at least one of the given bytes.
func textPieces(marks string) limit {
	return func(args []cty.Value) error {
		text := args[0].AsString()
		pieces, depth := 0, 0
		for i := range len(text) {
			switch c := text[i]; c {
			case '[', '{':
				depth++
			case ']', '}':
				depth--
			}
			if depth > maxDepth {
				return function.NewArgError(0, errDepth)
			}
			if strings.IndexByte(marks, text[i]) >= 0 {
				pieces++
			}
		}
		return few(pieces)
	}
}

// yamlLimit reads the types first: with aliases, little text makes far more parts than memory has.
func yamlLimit(args []cty.Value) error {
	if err := textPieces("[{,\n-")(args); err != nil {
		return err
	}
	t, err := ctyyaml.Standard.ImpliedType([]byte(args[0].AsString()))
	if err != nil {
		return nil // yamldecode itself reports it
	}
	return newSize().addType(t, 0)
}

// addType counts the parts of a type in which each part of a value has its own.
func (s *size) addType(t cty.Type, depth int) error {
	s.pieces++
	switch {
	case s.pieces > s.maxPieces:
		return errPieces
	case depth > maxDepth:
		return errDepth
	case t.IsTupleType():
		for _, et := range t.TupleElementTypes() {
			if err := s.addType(et, depth+1); err != nil {
				return err
			}
		}
	case t.IsObjectType():
		for _, at := range t.AttributeTypes() {
			if err := s.addType(at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// real is for functions of two numbers that have no answer for some.
func real(f func(a, b float64) float64) limit {
	return func(args []cty.Value) error {
		a, _ := args[0].AsBigFloat().Float64()
		b, _ := args[1].AsBigFloat().Float64()
		if out := f(a, b); math.IsNaN(out) || math.IsInf(out, 0) {
			return errors.New("these numbers have no answer, or one that is too large")
		}
		return nil
	}
}

func few(pieces int) error {
	if pieces > maxPieces {
		return errPieces
	}
	return nil
}

func short(bytes int) error {
	if bytes > maxText {
		return errText
	}
	return nil
}

// formatLimit counts every verb as if it took the largest argument, at the width that it names.
func formatLimit(args []cty.Value) error {
	if args[0].Type() != cty.String {
		return nil
	}
	text := args[0].AsString()
	width := len(text)
	for _, digits := range digitsPattern.FindAllString(text, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil || n > maxText {
			return function.NewArgError(0, errText)
		}
		width += n
	}
	largest, times := 0, 1
	for _, arg := range args[1:] {
		if !arg.CanIterateElements() {
			largest = max(largest, written(arg))
			continue
		}
		times = max(times, arg.LengthInt())
		for it := arg.ElementIterator(); it.Next(); {
			_, v := it.Element()
			largest = max(largest, written(v))
		}
	}
	if perCall := width + strings.Count(text, "%")*largest; perCall > maxText || perCall*times > maxText {
		return errText
	}
	return nil
}

// written estimates the bytes of a value as text.
func written(v cty.Value) int {
	s := newSize()
	if err := s.add(v, 0); err != nil {
		return maxText + 1
	}
	return s.text + 40*s.pieces
}

func indentLimit(args []cty.Value) error {
	spaces, _ := args[0].AsBigFloat().Float64()
	if spaces < 0 || spaces > maxText {
		return function.NewArgErrorf(0, "want a number of spaces from 0 to %d", maxText)
	}
	text := args[1].AsString()
	return short(len(text) + int(spaces)*strings.Count(text, "\n"))
}

func joinLimit(args []cty.Value) error {
	separator, s := len(args[0].AsString()), newSize()
	for i, list := range args[1:] {
		if err := s.add(list, 0); err != nil {
			return function.NewArgError(i+1, err)
		}
	}
	return short(s.text + separator*s.pieces)
}

func replaceLimit(args []cty.Value) error {
	text, pattern, by := args[0].AsString(), args[1].AsString(), args[2].AsString()
	times := strings.Count(text, pattern)
	if len(pattern) > 1 && pattern[0] == '/' && pattern[len(pattern)-1] == '/' {
		re, err := regexp.Compile(pattern[1 : len(pattern)-1])
		if err != nil || len(text) > maxPieces {
			return short(len(text) * len(by)) // replace itself reports the expression
		}
		times = len(re.FindAllStringIndex(text, -1))
	}
	return short(len(text)*(1+strings.Count(by, "$")) + times*len(by))
}

func splitLimit(args []cty.Value) error {
	if args[0].AsString() == "" {
		return few(utf8.RuneCountInString(args[1].AsString()))
	}
	return few(strings.Count(args[1].AsString(), args[0].AsString()))
}

func productLimit(args []cty.Value) error {
	total := 1
	for _, arg := range args {
		if !arg.CanIterateElements() {
			return nil
		}
		total *= arg.LengthInt()
		if total*len(args) > maxPieces {
			return fmt.Errorf("the product has more than %d elements", maxPieces)
		}
	}
	return nil
}
