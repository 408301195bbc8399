package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Inputs are the values that variables are given from outside. A later source wins: the default, the
// environment, *.auto.qodvars.hcl and .json files of the directory in lexical order, then Given in its order.
type Inputs struct {
	Given []Given
	// Env looks up an environment variable, as os.LookupEnv does; nil stands for an empty
	// environment. A variable x is read from QOD_VAR_x; others are not looked at.
	Env func(name string) (string, bool)
	// Now is what plantimestamp() gives; without it the function fails.
	Now time.Time
}

// Given is one -var or -var-file of the command line.
type Given struct {
	File string // of -var-file; empty for -var
	// Name and Value are those of -var.
	Name, Value string
}

// inputs gathers variable values, one source after the other.
type inputs struct {
	config *Config
	files  map[string]*hcl.File
	values map[string]cty.Value // by variable; marked when it is sensitive
	diags  hcl.Diagnostics
	// incomplete is true when a var file could not be read in full: values may be missing for that.
	incomplete bool
}

// variableValues returns a value for every declared variable: an unknown one where there is no good
// one, which is an error in the diagnostics. Files it reads are added to files.
func (c *Config) variableValues(in Inputs, files map[string]*hcl.File) (map[string]cty.Value, hcl.Diagnostics) {
	g := &inputs{config: c, files: files, values: map[string]cty.Value{}, incomplete: c.autoBroken}
	for _, v := range c.root.variables {
		if v.def != cty.NilVal {
			g.values[v.name] = v.def
		}
		if in.Env == nil {
			continue
		}
		if text, ok := in.Env("QOD_VAR_" + v.name); ok {
			g.addText(v, text, "from the environment variable QOD_VAR_"+v.name)
		}
	}
	for _, file := range c.auto {
		g.addFile(file)
	}
	for _, given := range in.Given {
		if given.File != "" {
			g.readFile(given.File)
			continue
		}
		v, declared := c.root.variable(given.Name)
		if declared {
			g.addText(v, given.Value, "from -var")
			continue
		}
		if !c.root.broken {
			g.diags = append(g.diags, failure("Value for undeclared variable", fmt.Sprintf(
				"-var gives a value for %q, and no variable of that name is declared.%s",
				given.Name, schema.DidYouMean(given.Name, c.root.variableNames())))...)
		}
	}
	for _, v := range c.root.variables {
		g.finish(v)
	}
	return g.values, g.diags
}

// finish marks the variable's value, or says that it has none.
func (g *inputs) finish(v *variable) {
	value, ok := g.values[v.name]
	if ok && value.IsNull() && !v.nullable {
		value, ok = v.def, v.def != cty.NilVal
	}
	if !ok {
		value = cty.UnknownVal(v.valueType())
	}
	if !ok && !g.incomplete {
		g.diags = append(g.diags, failAt(header(v.src), "No value for variable",
			"var.%s has no default, so it needs a value: -var '%s=...', the environment variable QOD_VAR_%s, or a line in a "+
				"file given with -var-file or named *.auto.qodvars.hcl.", v.name, v.name, v.name))
	}
	if v.sensitive {
		value = value.Mark(sensitiveMark{})
	}
	if v.ephemeral {
		value = markEphemeral(value, "var."+v.name)
	}
	g.values[v.name] = value
}

// addText takes a value given as text. from says where from.
func (g *inputs) addText(v *variable, text, from string) {
	filename := fmt.Sprintf("<value for var.%s>", v.name)
	file := &hcl.File{Bytes: []byte(text)}
	all := hcl.Range{
		Filename: filename, Start: hcl.InitialPos,
		End: hcl.Pos{Line: 1, Column: 1 + len([]rune(text)), Byte: len(text)},
	}
	var masks []hcl.Range
	if v.sensitive {
		masks = []hcl.Range{all}
	}
	file.Nav = &navigation{find: func() ([]hcl.Range, []hcl.Range) { return masks, nil }}
	g.files[filename] = file

	value := cty.StringVal(text)
	if !v.verbatim() {
		expr, diags := hclsyntax.ParseExpression([]byte(text), filename, hcl.InitialPos)
		diags = append(diags, refuseNumbers([]byte(text), filename)...)
		if !diags.HasErrors() {
			g.diags = append(g.diags, v.withhold(duplicateObjectKeys(expr))...)
			limitArithmetic(expr)
			value, diags = expr.Value(nil)
		}
		if diags.HasErrors() {
			g.reject(v)
			reason := diags[0].Summary
			if reason == operationFailed && !v.sensitive {
				reason = strings.TrimSuffix(diags[0].Detail, ".")
			}
			g.diags = append(g.diags, failAt(*diags[0].Subject, "Invalid value for variable",
				"The value for var.%s (%s) is read as an expression, since its type is %s, and it is not one: %s.",
				v.name, from, typeexpr.TypeString(v.typ), reason))
			return
		}
	}
	g.set(v, value, all, from)
}

func (g *inputs) set(v *variable, value cty.Value, rng hcl.Range, from string) {
	value, err := v.convert(value)
	if err == nil {
		err = checkSize(value)
	}
	if err != nil {
		g.reject(v)
		g.diags = append(g.diags, failAt(rng, "Invalid value for variable", "The value for var.%s (%s) is not a %s: %s.",
			v.name, from, typeexpr.TypeString(v.typ), v.reason(err)))
		return
	}
	if value.IsNull() && !v.nullable && v.def == cty.NilVal {
		g.reject(v)
		g.diags = append(g.diags, failAt(rng, "Invalid value for variable",
			"The value for var.%s (%s) is null, and the variable has nullable = false and no default.", v.name, from))
		return
	}
	g.values[v.name] = value
}

func (g *inputs) reject(v *variable) { g.values[v.name] = cty.UnknownVal(v.valueType()) }

func (g *inputs) readFile(path string) {
	parser := hclparse.NewParser()
	file, diags := parse(parser, path)
	g.diags = append(g.diags, diags...)
	g.incomplete = g.incomplete || diags.HasErrors()
	if file == nil {
		return
	}
	g.files[path] = g.config.masked(path, file, diags.HasErrors())
	g.addFile(file)
}

func (g *inputs) addFile(file *hcl.File) {
	if _, native := file.Body.(*hclsyntax.Body); !native {
		keys := duplicateKeys(file)
		g.diags = append(g.diags, guard(keys, g.files, nil)...)
		if len(keys) > 0 {
			g.incomplete = true
			return
		}
	}
	attrs, diags := file.Body.JustAttributes()
	g.diags = append(g.diags, diags...)
	for _, attr := range sortedAttributes(attrs) {
		v, declared := g.config.root.variable(attr.Name)
		if !declared {
			g.undeclared(attr)
			continue
		}
		if expr, ok := attr.Expr.(hclsyntax.Expression); ok {
			g.diags = append(g.diags, v.withhold(duplicateObjectKeys(expr))...)
		}
		value, diags := attr.Expr.Value(nil)
		g.diags = append(g.diags, v.withhold(diags)...)
		if diags.HasErrors() {
			g.reject(v)
			continue
		}
		g.set(v, value, attr.Expr.Range(), "from "+attr.Range.Filename)
	}
}

func (g *inputs) undeclared(attr *hcl.Attribute) {
	if g.config.root.broken {
		return
	}
	names := g.config.root.variableNames()
	slices.Sort(names)
	g.diags = append(g.diags, failAt(attr.NameRange, "Value for undeclared variable",
		"No variable %q is declared.%s", attr.Name, schema.DidYouMean(attr.Name, names)))
}
