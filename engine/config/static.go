package config

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// staticRef names something in the configuration without standing for its value: pool.bi,
// user.all["ana"], user.all[each.key].
type staticRef struct {
	steps hcl.Traversal
	keys  map[int]hcl.Expression // of the steps whose key is computed
	rng   hcl.Range
}

const (
	wantObject   = "This names something in the configuration, as in pool.bi or user.all[\"ana\"]"
	wantArgument = "This names an argument or a block, as in memory or nodes.dual"
)

// readStatic reads a reference. In JSON it is a string. want says what it is, for errors.
func readStatic(expr hcl.Expression, want string) (staticRef, hcl.Diagnostics) {
	r := staticRef{keys: map[int]hcl.Expression{}, rng: expr.Range()}
	native, diags := native(expr)
	if diags.HasErrors() {
		return r, diags
	}
	if !r.add(native) {
		hint := ""
		if v, more := native.Value(nil); !more.HasErrors() && v.Type() == cty.String {
			hint = " Write it without quotes."
		}
		return r, append(diags, failAt(r.rng, "Invalid reference", "%s, and cannot be computed.%s", want, hint))
	}
	return r, diags
}

// native returns the expression that a JSON string holds, and others as they are.
func native(expr hcl.Expression) (hclsyntax.Expression, hcl.Diagnostics) {
	if own, ok := hcl.UnwrapExpression(expr).(hclsyntax.Expression); ok {
		return own, nil
	}
	v, diags := expr.Value(nil)
	if diags.HasErrors() {
		return nil, diags
	}
	if v.IsNull() || v.Type() != cty.String {
		return nil, append(diags, failAt(expr.Range(), "Invalid reference",
			"In JSON, what names something in the configuration is a string, as in \"pool.bi\"."))
	}
	start := expr.Range().Start
	start.Byte++
	start.Column++
	own, diags := hclsyntax.ParseExpression([]byte(v.AsString()), expr.Range().Filename, start)
	if !diags.HasErrors() {
		limitArithmetic(own)
	}
	return own, diags
}

func (r *staticRef) add(expr hclsyntax.Expression) bool {
	switch expr := expr.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		r.steps = append(r.steps, expr.Traversal...)
		return true
	case *hclsyntax.RelativeTraversalExpr:
		if !r.add(expr.Source) {
			return false
		}
		r.steps = append(r.steps, expr.Traversal...)
		return true
	case *hclsyntax.IndexExpr:
		if !r.add(expr.Collection) {
			return false
		}
		r.keys[len(r.steps)] = expr.Key
		r.steps = append(r.steps, hcl.TraverseIndex{Key: cty.UnknownVal(cty.String), SrcRange: expr.SrcRange})
		return true
	}
	return false
}

// variables lists what the computed keys refer to.
func (r staticRef) variables() []hcl.Traversal {
	var out []hcl.Traversal
	for i := range r.steps {
		if key, computed := r.keys[i]; computed {
			out = append(out, key.Variables()...)
		}
	}
	return out
}

// address returns the address that the reference starts with, in the module it is written in, and what
// follows it.
func (r staticRef) address() (schema.Address, hcl.Traversal, hcl.Diagnostics) {
	a, rest, err := schema.AddressOf(r.steps)
	if err != nil {
		return a, rest, hcl.Diagnostics{failAt(r.rng, "Invalid reference", "%s", sentence(err.Error()))}
	}
	for i := range a.Modules {
		a.Modules[i].Name = norm.NFC.String(a.Modules[i].Name)
	}
	a.Name = norm.NFC.String(a.Name)
	return a, rest, nil
}

// whole returns the address of a reference to nothing smaller than an object.
func (r staticRef) whole() (schema.Address, hcl.Diagnostics) {
	a, rest, diags := r.address()
	if diags.HasErrors() || len(rest) == 0 {
		return a, diags
	}
	name, _ := stepName(rest, 0)
	hint := ""
	if a.Kind == "" {
		hint = schema.DidYouMean(name, roots())
	}
	return a, append(diags, failAt(r.rng, "Invalid reference", "Nothing may follow %s here.%s", a, hint))
}

// constant returns the address of a reference without computed keys.
func (r staticRef) constant() (schema.Address, hcl.Diagnostics) {
	if len(r.keys) > 0 {
		return schema.Address{}, hcl.Diagnostics{failAt(r.rng, "Invalid reference",
			"The key is a string in quotes here, as in user.all[\"ana\"].")}
	}
	return r.whole()
}

// withKeys returns the reference with its computed keys in place; the second result is false when one
// is not known, which follows from an error reported before.
func (r staticRef) withKeys(e *evaluation, ctx *hcl.EvalContext) (staticRef, bool, hcl.Diagnostics) {
	out := staticRef{steps: slices.Clone(r.steps), rng: r.rng}
	var diags hcl.Diagnostics
	for i := range r.steps {
		expr, computed := r.keys[i]
		if !computed {
			continue
		}
		key, more := e.plainString(expr, ctx, "key")
		diags = append(diags, more...)
		if key == cty.NilVal {
			return out, false, diags
		}
		out.steps[i] = hcl.TraverseIndex{Key: key, SrcRange: r.steps[i].SourceRange()}
	}
	return out, true, diags
}

// plainString evaluates what becomes part of an address: a string that may be shown. It returns NilVal
// when there is none.
func (e *evaluation) plainString(expr hcl.Expression, ctx *hcl.EvalContext, what string) (cty.Value, hcl.Diagnostics) {
	v, diags := e.value(expr, ctx)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	refuse := func(format string, args ...any) (cty.Value, hcl.Diagnostics) {
		d := failAt(expr.Range(), "Invalid "+what, format, args...)
		d.Expression, d.EvalContext = expr, ctx
		return cty.NilVal, append(diags, d)
	}
	plain, _ := v.UnmarkDeep()
	switch {
	case len(ephemeralNames(v)) > 0:
		return refuse("%s", ephemeralDetail("The "+what, ephemeralNames(v), nil))
	case containsSensitive(v):
		return refuse("The %s is shown, and it is computed from a sensitive value. If it is no secret, use nonsensitive(...).", what)
	case plain.IsNull():
		return refuse("The %s is null, and a string is wanted.", what)
	case !plain.IsKnown() && e.clean():
		return refuse("The %s cannot be computed from this configuration.", what)
	case !plain.IsKnown():
		return cty.NilVal, diags
	case plain.Type() != cty.String:
		return refuse("The %s is a string, and this is %s.", what,
			strings.ToLower(article(plain.Type().FriendlyName())))
	}
	return plain, diags
}

// clean reports whether no error was met so far: then what is not known is an error of its own.
func (e *evaluation) clean() bool { return !e.diags.HasErrors() && !e.config.failed }

// sentence gives a message a full stop, and a capital unless it starts with a word of the language.
func sentence(message string) string {
	if message == "" {
		return message
	}
	if first, _, _ := strings.Cut(message, " "); !slices.Contains(append(roots(), "module"), first) {
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	if last := message[len(message)-1]; last != '.' && last != '?' {
		message += "."
	}
	return message
}

// oneBlock returns the block, and an error for each further one of them.
func oneBlock(blocks hcl.Blocks, what string) (*hcl.Block, hcl.Diagnostics) {
	if len(blocks) == 0 {
		return nil, nil
	}
	var diags hcl.Diagnostics
	for _, b := range blocks[1:] {
		diags = append(diags, failAt(header(b), "Duplicate "+b.Type+" block",
			"%s has one %s block, and the one at %s is it: move what this one says there.", what, b.Type, header(blocks[0]).String()))
	}
	return blocks[0], diags
}
