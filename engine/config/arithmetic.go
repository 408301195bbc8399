package config

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var (
	errInfinite = errors.New("infinite numbers cannot be used")
	errDivision = errors.New("division by zero")
)

// operationFailed is the summary of what HCL reports of an operator, whose detail has the error.
const operationFailed = "Operation failed"

// limitArithmetic gives what is parsed operators that fail where HCL's own would go on with a number that is
// infinite or has too many digits, and reports whether there are any. In a template such a number would be
// text before anything else could refuse it.
func limitArithmetic(root hclsyntax.Node) bool {
	found := false
	_ = hclsyntax.VisitAll(root, func(n hclsyntax.Node) hcl.Diagnostics {
		switch e := n.(type) {
		case *hclsyntax.BinaryOpExpr:
			if e.Op.Type == cty.Number {
				e.Op, found = limitOperator(e.Op), true
			}
		case *hclsyntax.UnaryOpExpr:
			if e.Op.Type == cty.Number {
				e.Op, found = limitOperator(e.Op), true
			}
		}
		return nil
	})
	return found
}

func limitOperator(op *hclsyntax.Operation) *hclsyntax.Operation {
	divides := op == hclsyntax.OpDivide || op == hclsyntax.OpModulo
	return &hclsyntax.Operation{Type: op.Type, Impl: function.New(&function.Spec{
		Params: op.Impl.Params(), Type: function.StaticReturnType(op.Type), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if divides && args[1].AsBigFloat().Sign() == 0 {
				return cty.NilVal, errDivision
			}
			out, err := op.Impl.Call(args)
			if err != nil {
				return cty.NilVal, err
			}
			return out, checkDigits(out.AsBigFloat())
		},
	})}
}

// jsonBody is a body in JSON whose expressions have the operators of [limitArithmetic]. HCL parses the strings
// in it anew for each evaluation.
type jsonBody struct{ hcl.Body }

func (b jsonBody) Content(s *hcl.BodySchema) (*hcl.BodyContent, hcl.Diagnostics) {
	content, diags := b.Body.Content(s)
	return jsonContent(content), diags
}

func (b jsonBody) PartialContent(s *hcl.BodySchema) (*hcl.BodyContent, hcl.Body, hcl.Diagnostics) {
	content, rest, diags := b.Body.PartialContent(s)
	return jsonContent(content), jsonBody{rest}, diags
}

func (b jsonBody) JustAttributes() (hcl.Attributes, hcl.Diagnostics) {
	attrs, diags := b.Body.JustAttributes()
	return jsonAttributes(attrs), diags
}

func jsonContent(content *hcl.BodyContent) *hcl.BodyContent {
	jsonAttributes(content.Attributes)
	for _, b := range content.Blocks {
		b.Body = jsonBody{b.Body}
	}
	return content
}

func jsonAttributes(attrs hcl.Attributes) hcl.Attributes {
	for _, attr := range attrs {
		attr.Expr = jsonExpression{attr.Expr}
	}
	return attrs
}

// jsonExpression is an expression of a jsonBody.
type jsonExpression struct{ hcl.Expression }

// UnwrapExpression lets HCL read a type, a list of references or a keyword in it.
func (e jsonExpression) UnwrapExpression() hcl.Expression { return e.Expression }

// Value evaluates what has operators a second time, for what is wrong with their numbers.
func (e jsonExpression) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	value, diags := e.Expression.Value(ctx)
	if ctx == nil || diags.HasErrors() {
		return value, diags
	}
	if diags = append(diags, jsonArithmetic(e.Expression, ctx)...); diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return value, diags
}

func jsonArithmetic(expr hcl.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	var diags hcl.Diagnostics
	if pairs, none := hcl.ExprMap(expr); !none.HasErrors() {
		for _, pair := range pairs {
			diags = append(diags, jsonArithmetic(pair.Key, ctx)...)
			diags = append(diags, jsonArithmetic(pair.Value, ctx)...)
		}
		return diags
	}
	if items, none := hcl.ExprList(expr); !none.HasErrors() {
		for _, item := range items {
			diags = append(diags, jsonArithmetic(item, ctx)...)
		}
		return diags
	}
	text, none := expr.Value(nil)
	if none.HasErrors() || text.IsNull() || text.Type() != cty.String || !strings.ContainsAny(text.AsString(), "+-*/%") {
		return nil
	}
	start := expr.Range().Start
	start.Byte++
	start.Column++
	template, none := hclsyntax.ParseTemplate([]byte(text.AsString()), expr.Range().Filename, start)
	if none.HasErrors() || !limitArithmetic(template) {
		return nil
	}
	_, diags = template.Value(ctx)
	return diags
}

// inJSON reports whether an expression is one of JSON, where strings are templates or references.
func inJSON(expr hcl.Expression) bool {
	_, own := expr.(jsonExpression)
	return own || json.IsJSONExpression(expr)
}
