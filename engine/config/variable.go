package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"golang.org/x/text/unicode/norm"
)

// variable is a variable block.
type variable struct {
	name        string
	src         *hcl.Block
	typ         cty.Type // DynamicPseudoType when the block names none
	defaults    *typeexpr.Defaults
	def         cty.Value // cty.NilVal: none
	sensitive   bool      // ephemeral ones are
	ephemeral   bool
	nullable    bool
	validations []validation
}

// validation is a rule for a variable's value.
type validation struct {
	condition, message hcl.Expression
}

func (m *module) addVariable(src *hcl.Block) hcl.Diagnostics {
	v := &variable{name: norm.NFC.String(src.Labels[0]), src: src, typ: cty.DynamicPseudoType, nullable: true}
	diags := v.decode()
	v.sensitive = v.sensitive || v.ephemeral || diags.HasErrors() // sensitive itself may be what is misspelt
	if problem := m.checkVariable(v); problem != nil {
		m.misnamed = append(m.misnamed, v)
		return hcl.Diagnostics{problem}
	}
	m.variables = append(m.variables, v)
	m.variableOf[v.name] = v
	return diags
}

func (m *module) checkVariable(v *variable) *hcl.Diagnostic {
	if !hclsyntax.ValidIdentifier(v.name) {
		return failAt(v.src.LabelRanges[0], "Invalid variable name",
			"A variable's name has a letter first, then letters, digits, _ and -.")
	}
	if first, taken := m.variable(v.name); taken {
		return failAt(header(v.src), "Duplicate variable",
			"var.%s is declared already at %s.", v.name, header(first.src).String())
	}
	return nil
}

func (v *variable) decode() hcl.Diagnostics {
	content, diags := v.src.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{
			{Name: "type"}, {Name: "default"}, {Name: "description"}, {Name: "sensitive"}, {Name: "ephemeral"},
			{Name: "nullable"},
		},
		Blocks: []hcl.BlockHeaderSchema{{Type: "validation"}},
	})
	if attr, ok := content.Attributes["description"]; ok {
		_, more := literal(attr, cty.String)
		diags = append(diags, more...)
	}
	for name, into := range map[string]*bool{"sensitive": &v.sensitive, "ephemeral": &v.ephemeral, "nullable": &v.nullable} {
		attr, ok := content.Attributes[name]
		if !ok {
			continue
		}
		value, more := literal(attr, cty.Bool)
		diags = append(diags, more...)
		if !more.HasErrors() && !value.IsNull() {
			*into = value.True()
		}
	}
	if attr, ok := content.Attributes["type"]; ok {
		typ, defaults, more := typeexpr.TypeConstraintWithDefaults(attr.Expr)
		diags = append(diags, more...)
		if !more.HasErrors() {
			v.typ, v.defaults = typ, defaults
		}
	}
	if attr, ok := content.Attributes["default"]; ok {
		diags = append(diags, v.decodeDefault(attr)...)
	}
	for _, b := range content.Blocks {
		rule, more := decodeRule(b)
		diags = append(diags, more...)
		if !more.HasErrors() {
			v.validations = append(v.validations, rule)
		}
	}
	return diags
}

func (v *variable) decodeDefault(attr *hcl.Attribute) hcl.Diagnostics {
	value, diags := attr.Expr.Value(constantContext(attr.Expr))
	if diags.HasErrors() {
		v.def = cty.UnknownVal(v.valueType())
		return v.withhold(diags)
	}
	value, err := v.convert(value)
	if err != nil {
		v.def = cty.UnknownVal(v.valueType())
		return append(diags, failAt(attr.Expr.Range(), "Invalid default value",
			"The default of var.%s is not a %s: %s.", v.name, typeexpr.TypeString(v.typ), v.reason(err)))
	}
	if value.IsNull() && !v.nullable {
		return append(diags, failAt(attr.Expr.Range(), "Invalid default value",
			"var.%s has nullable = false, so its default cannot be null.", v.name))
	}
	v.def = value
	return diags
}

// valueType is the type that every value of the variable has.
func (v *variable) valueType() cty.Type { return v.typ.WithoutOptionalAttributesDeep() }

// convert gives a value the variable's type, with the defaults of optional attributes in place.
func (v *variable) convert(value cty.Value) (cty.Value, error) {
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	value, err := convert.Convert(value, v.typ)
	if err != nil || v.typ == cty.DynamicPseudoType {
		return value, err
	}
	return value, checkNumbers(value) // "inf" is one to cty
}

// verbatim reports whether a value given as text is that text, and not an expression.
func (v *variable) verbatim() bool {
	return v.typ.IsPrimitiveType() || v.typ == cty.DynamicPseudoType
}

func literal(attr *hcl.Attribute, want cty.Type) (cty.Value, hcl.Diagnostics) {
	value, diags := attr.Expr.Value(constantContext(attr.Expr))
	if diags.HasErrors() {
		return value, diags
	}
	value, err := convert.Convert(value, want)
	if err != nil {
		return value, append(diags, failAt(attr.Expr.Range(), "Invalid "+attr.Name, "%s.", err.Error()))
	}
	return value, diags
}

// reason prints a conversion error; for a sensitive variable without the path, which has keys of the
// value.
func (v *variable) reason(err error) string {
	if v.sensitive {
		return err.Error()
	}
	return pathMessage(err)
}

// withhold takes out the details of what is wrong with a sensitive value.
func (v *variable) withhold(diags hcl.Diagnostics) hcl.Diagnostics {
	if v.sensitive {
		for _, d := range diags {
			d.Detail = withheld
		}
	}
	return diags
}

// pathMessage prints a conversion error with the place in the value that it is about.
func pathMessage(err error) string {
	pathErr, ok := err.(cty.PathError)
	if !ok || len(pathErr.Path) == 0 {
		return err.Error()
	}
	return pathString(pathErr.Path) + ": " + err.Error()
}

func pathString(path cty.Path) string {
	out := ""
	for _, step := range path {
		switch s := step.(type) {
		case cty.GetAttrStep:
			out += "." + s.Name
		case cty.IndexStep:
			out += "[...]"
			if s.Key.IsKnown() && !s.Key.IsMarked() && slices.Contains([]cty.Type{cty.String, cty.Number}, s.Key.Type()) {
				out = out[:len(out)-len("[...]")] + "[" + valueString(s.Key) + "]"
			}
		}
	}
	return out
}
