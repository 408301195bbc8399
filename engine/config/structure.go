package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// node names what is evaluated in order: a local value or a block of objects.
type node struct {
	root string // "local" or a kind
	name string
}

func (n node) String() string { return n.root + "." + n.name }

// local is one argument of a locals block.
type local struct {
	node node
	attr *hcl.Attribute
}

// block is a block of a kind. With for_each it stands for any number of objects.
type block struct {
	node      node
	kind      *schema.Kind
	src       *hclsyntax.Block
	body      hcl.Body       // without the arguments below
	forEach   hcl.Expression // nil without it
	dependsOn []hcl.Traversal
}

func topSchema() *hcl.BodySchema {
	s := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "qod"}, {Type: "variable", LabelNames: []string{"name"}}, {Type: "locals"},
	}}
	for _, k := range schema.Kinds() {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: k.Name, LabelNames: []string{"label"}})
	}
	return s
}

// later lists the block types that the language knows by name only.
func later() []string {
	return []string{"output", "module", "import", "moved", "removed", "check", "lifecycle"}
}

// collect sorts the blocks of one file into c.
func (c *Config) collect(body *hclsyntax.Body) hcl.Diagnostics {
	known, diags := withoutLater(body)
	content, more := known.Content(topSchema())
	diags = append(diags, more...)
	for _, b := range content.Blocks {
		src := sourceOf(body, b)
		switch b.Type {
		case "qod":
			diags = append(diags, c.addStack(b)...)
		case "variable":
			diags = append(diags, c.addVariable(src)...)
		case "locals":
			diags = append(diags, c.addLocals(b)...)
		default:
			diags = append(diags, c.addBlock(src)...)
		}
	}
	return diags
}

// withoutLater takes out blocks of types that are not supported yet, so that they are reported as that
// and not as misspellings.
func withoutLater(body *hclsyntax.Body) (*hclsyntax.Body, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	known := *body
	known.Blocks = nil
	for _, b := range body.Blocks {
		if !slices.Contains(later(), b.Type) {
			known.Blocks = append(known.Blocks, b)
			continue
		}
		diags = append(diags, failAt(b.TypeRange, "Unsupported block type",
			"Blocks of type %q are not supported in this version.", b.Type))
	}
	return &known, diags
}

func sourceOf(body *hclsyntax.Body, b *hcl.Block) *hclsyntax.Block {
	i := slices.IndexFunc(body.Blocks, func(s *hclsyntax.Block) bool { return s.TypeRange == b.TypeRange })
	return body.Blocks[i]
}

func (c *Config) addStack(b *hcl.Block) hcl.Diagnostics {
	if c.stackRange.Filename != "" {
		return hcl.Diagnostics{failAt(b.DefRange, "Duplicate qod block",
			"A configuration has one qod block, and the one at %s is it: remove this one.", c.stackRange.String())}
	}
	c.stackRange = b.DefRange
	content, diags := b.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "stack", Required: true}}})
	attr, ok := content.Attributes["stack"]
	if !ok {
		return diags
	}
	c.stackRange = attr.Expr.Range()
	v, more := attr.Expr.Value(nil)
	diags = append(diags, more...)
	if more.HasErrors() {
		return diags
	}
	if v.IsNull() || v.Type() != cty.String {
		return append(diags, failAt(c.stackRange, "Invalid stack name",
			"The stack's name is a string in quotes, as in stack = \"core\"."))
	}
	c.stack = v.AsString()
	if err := schema.CheckName(c.stack); err != nil {
		diags = append(diags, failAt(c.stackRange, "Invalid stack name", "%s.", err.Error()))
	}
	return diags
}

func (c *Config) checkStack() hcl.Diagnostics {
	if c.stackRange.Filename != "" || c.broken {
		return nil
	}
	return failure("No stack", fmt.Sprintf("No file in %s says which stack its objects belong to. "+
		"`qod init` writes it, or write:\n\n  qod {\n    stack = \"core\"\n  }", c.dir))
}

func (c *Config) addLocals(b *hcl.Block) hcl.Diagnostics {
	attrs, diags := b.Body.JustAttributes()
	for _, attr := range sortedAttributes(attrs) {
		n := node{"local", norm.NFC.String(attr.Name)}
		first := slices.IndexFunc(c.locals, func(l *local) bool { return l.node == n })
		if first >= 0 {
			diags = append(diags, failAt(attr.NameRange, "Duplicate local value",
				"%s is defined already at %s.", n.String(), c.locals[first].attr.NameRange.String()))
			continue
		}
		c.locals = append(c.locals, &local{n, attr})
	}
	return diags
}

func sortedAttributes(attrs hcl.Attributes) []*hcl.Attribute {
	var out []*hcl.Attribute
	for _, attr := range attrs {
		out = append(out, attr)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return out
}

func (c *Config) addBlock(src *hclsyntax.Block) hcl.Diagnostics {
	kind, _ := schema.Lookup(src.Type)
	label := norm.NFC.String(src.Labels[0])
	b := &block{node: node{kind.Name, label}, kind: kind, src: src}
	if !hclsyntax.ValidIdentifier(label) {
		return hcl.Diagnostics{failAt(src.LabelRanges[0], "Invalid label", "A label is how other blocks refer to this "+
			"one: a letter first, then letters, digits, _ and -. If the %s is called something else, say so "+
			"with name = \"...\".", kind.Name)}
	}
	if first, taken := c.byNode[b.node]; taken {
		return hcl.Diagnostics{failAt(src.DefRange(), "Duplicate "+kind.Name,
			"%s is declared already at %s: give one of them another label.", b.node.String(), first.src.DefRange().String())}
	}
	diags := b.decodeHeader()
	c.byNode[b.node] = b
	c.blocks = append(c.blocks, b)
	return diags
}

func (b *block) decodeHeader() hcl.Diagnostics {
	known, diags := withoutLater(b.src.Body)
	content, rest, more := known.PartialContent(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "depends_on"}},
	})
	diags = append(diags, more...)
	b.body = rest
	if attr, ok := content.Attributes["for_each"]; ok {
		b.forEach = attr.Expr
	}
	attr, ok := content.Attributes["depends_on"]
	if !ok {
		return diags
	}
	exprs, more := hcl.ExprList(attr.Expr)
	diags = append(diags, more...)
	for _, expr := range exprs {
		t, more := hcl.AbsTraversalForExpr(expr)
		diags = append(diags, more...)
		if !more.HasErrors() {
			b.dependsOn = append(b.dependsOn, t)
		}
	}
	return diags
}

// variableNames lists the declared variables in order of declaration.
func (c *Config) variableNames() []string {
	var names []string
	for _, v := range c.variables {
		names = append(names, v.name)
	}
	return names
}

func (c *Config) variable(name string) (*variable, bool) {
	i := slices.IndexFunc(c.variables, func(v *variable) bool { return v.name == name })
	if i < 0 {
		return nil, false
	}
	return c.variables[i], true
}
