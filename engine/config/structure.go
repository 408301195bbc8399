package config

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// node names what is evaluated in order: a local value, a block of objects or a module call.
type node struct {
	root string // "local", "module" or a kind
	name string
}

func (n node) String() string { return n.root + "." + n.name }

// module is the blocks of one directory.
type module struct {
	config *Config
	dir    string // the start of its files' names
	// broken is true when a file did not parse: what is missing may be declared there.
	broken bool
	policy bool // it has rules for plans, and no objects

	variables []*variable
	misnamed  []*variable // not among variables: their names are taken, or none
	locals    []*local
	blocks    []*block
	calls     []*call
	outputs   []*output
	moves     []*movedBlock
	removals  []*removedBlock
	imports   []*importBlock
	checks    []*checkBlock
	rules     []*policyCheck

	variableOf map[string]*variable
	localOf    map[node]*local
	blockOf    map[node]*block
	callOf     map[node]*call
	outputOf   map[string]*output
}

func newModule(c *Config, dir string) *module {
	return &module{
		config: c, dir: dir,
		variableOf: map[string]*variable{}, localOf: map[node]*local{}, blockOf: map[node]*block{},
		callOf: map[node]*call{}, outputOf: map[string]*output{},
	}
}

// local is one argument of a locals block.
type local struct {
	node node
	attr *hcl.Attribute
}

// block is a block of a kind. With for_each it stands for any number of objects.
type block struct {
	node      node
	kind      *schema.Kind
	src       *hcl.Block
	header    hcl.Range
	body      hcl.Body       // without the arguments below
	forEach   hcl.Expression // nil without it
	dependsOn []hcl.Traversal
	lifecycle lifecycle
	// attrs and nested are what is written in body. A dynamic block is among nested as that.
	attrs   hcl.Attributes
	nested  hcl.Blocks
	dynamic bool
	form    *form
	sound   bool // nothing is wrong with what is written, as far as that shows before it is evaluated
	// spec is that of the kind for what is written, or all of it where something is wrong or dynamic.
	spec hcldec.ObjectSpec
}

func topSchema() *hcl.BodySchema {
	s := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "qod"}, {Type: "variable", LabelNames: []string{"name"}}, {Type: "locals"},
		{Type: "output", LabelNames: []string{"name"}}, {Type: "module", LabelNames: []string{"name"}},
	}}
	for _, k := range schema.Kinds() {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: k.Name, LabelNames: []string{"label"}})
	}
	s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: "moved"}, hcl.BlockHeaderSchema{Type: "removed"},
		hcl.BlockHeaderSchema{Type: "import"}, hcl.BlockHeaderSchema{Type: "check", LabelNames: []string{"name"}})
	return s
}

// collect sorts the blocks of one file into m.
func (m *module) collect(body hcl.Body) hcl.Diagnostics {
	content, diags := body.Content(topSchema())
	for _, b := range content.Blocks {
		_, isKind := schema.Lookup(b.Type)
		switch {
		case isKind:
			diags = append(diags, m.addBlock(b)...)
		case b.Type == "qod":
			diags = append(diags, m.addStack(b)...)
		case b.Type == "variable":
			diags = append(diags, m.addVariable(b)...)
		case b.Type == "locals":
			diags = append(diags, m.addLocals(b)...)
		case b.Type == "output":
			diags = append(diags, m.addOutput(b)...)
		case b.Type == "module":
			diags = append(diags, m.addCall(b)...)
		case b.Type == "moved":
			diags = append(diags, m.addMoved(b)...)
		case b.Type == "removed":
			diags = append(diags, m.addRemoved(b)...)
		case b.Type == "import":
			diags = append(diags, m.addImport(b)...)
		case b.Type == "check":
			diags = append(diags, m.addCheck(b)...)
		}
	}
	return diags
}

func (m *module) addStack(b *hcl.Block) hcl.Diagnostics {
	c := m.config
	if m != c.root {
		return hcl.Diagnostics{failAt(header(b), "Stack in a module", "The objects of a module belong to the stack of "+
			"the configuration that calls it, so a module has no qod block.")}
	}
	if c.stackRange.Filename != "" {
		return hcl.Diagnostics{failAt(header(b), "Duplicate qod block",
			"A configuration has one qod block, and the one at %s is it: remove this one.", c.stackRange.String())}
	}
	c.stackRange = header(b)
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
	if c.stackRange.Filename != "" || c.root.broken {
		return nil
	}
	return failure("No stack", fmt.Sprintf("%s has no file that says which stack its objects belong to. "+
		"`qod init` writes it, or write:\n\n  qod {\n    stack = \"core\"\n  }", inWords(c.dir)))
}

func (m *module) addLocals(b *hcl.Block) hcl.Diagnostics {
	attrs, diags := b.Body.JustAttributes()
	for _, attr := range sortedAttributes(attrs) {
		n := node{"local", norm.NFC.String(attr.Name)}
		if first, taken := m.localOf[n]; taken {
			diags = append(diags, failAt(attr.NameRange, "Duplicate local value",
				"%s is defined already at %s.", n.String(), first.attr.NameRange.String()))
			continue
		}
		m.localOf[n] = &local{n, attr}
		m.locals = append(m.locals, m.localOf[n])
	}
	return diags
}

func (m *module) addBlock(src *hcl.Block) hcl.Diagnostics {
	kind, _ := schema.Lookup(src.Type)
	label := norm.NFC.String(src.Labels[0])
	b := &block{node: node{kind.Name, label}, kind: kind, src: src, header: header(src), form: m.config.form(kind)}
	if !hclsyntax.ValidIdentifier(label) {
		return hcl.Diagnostics{failAt(src.LabelRanges[0], "Invalid label", "A label is how other blocks refer to this "+
			"one: a letter first, then letters, digits, _ and -. If the %s is called something else, say so "+
			"with name = \"...\".", kind.Name)}
	}
	if first, taken := m.blockOf[b.node]; taken {
		return hcl.Diagnostics{failAt(b.header, "Duplicate "+kind.Name,
			"%s is declared already at %s: give one of them another label.", b.node.String(), first.header.String())}
	}
	m.blockOf[b.node] = b
	m.blocks = append(m.blocks, b)
	return nil
}

// blocksAtOnce is how many blocks are worth a processor of their own.
const blocksAtOnce = 64

// decodeBlocks reads the blocks of objects that were collected.
func (m *module) decodeBlocks() hcl.Diagnostics {
	found := make([]hcl.Diagnostics, len(m.blocks))
	parallel.Each(len(m.blocks), blocksAtOnce, func(i int) {
		found[i] = m.blocks[i].decodeHeader()
	})
	return slices.Concat(found...)
}

// form is what evaluation needs to know of a kind, made once.
type form struct {
	spec   hcldec.ObjectSpec
	body   *hcl.BodySchema // of spec, and of dynamic blocks
	nested map[string]*hcl.BodySchema
	typ    cty.Type
	nulls  map[string]cty.Value // the value where nothing is written
	secret []string             // attributes that are never shown
}

func (c *Config) form(k *schema.Kind) *form {
	if known, ok := c.forms[k]; ok {
		return known
	}
	f := &form{spec: k.Spec(), typ: k.Type(), nulls: map[string]cty.Value{}, nested: map[string]*hcl.BodySchema{}}
	for i := range k.Blocks {
		f.nested[k.Blocks[i].Name] = hcldec.ImpliedSchema(f.nestedSpec(k.Blocks[i].Name))
	}
	for name, t := range f.typ.AttributeTypes() {
		f.nulls[name] = cty.NullVal(t)
	}
	for i := range k.Attrs {
		if k.Attrs[i].Secret {
			f.secret = append(f.secret, k.Attrs[i].Name)
		}
	}
	f.body = withDynamic(hcldec.ImpliedSchema(f.spec))
	c.forms[k] = f
	return f
}

// nestedSpec is that of the nested blocks of a type.
func (f *form) nestedSpec(name string) hcldec.ObjectSpec {
	switch spec := f.spec[name].(type) {
	case *hcldec.BlockSetSpec:
		return spec.Nested.(hcldec.ObjectSpec)
	case *hcldec.BlockSpec:
		return spec.Nested.(hcldec.ObjectSpec)
	}
	return hcldec.ObjectSpec{}
}

// headerSchema is what a block of any kind may have beside the kind's own arguments.
func headerSchema() *hcl.BodySchema {
	return &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "for_each"}, {Name: "depends_on"}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "lifecycle"}},
	}
}

func (b *block) decodeHeader() hcl.Diagnostics {
	content, rest, diags := b.src.Body.PartialContent(headerSchema())
	b.body = rest
	b.decodeWritten()
	diags = append(diags, b.decodeLifecycle(content.Blocks)...)
	if attr, ok := content.Attributes["for_each"]; ok {
		b.forEach = attr.Expr
	}
	dependsOn, more := traversals(content.Attributes["depends_on"])
	b.dependsOn = dependsOn
	return append(diags, more...)
}

// decodeWritten finds what is written in the body. What is wrong with it is reported when it is evaluated.
func (b *block) decodeWritten() {
	written, problems := b.body.Content(b.form.body)
	b.attrs, b.nested = written.Attributes, written.Blocks
	b.dynamic = slices.ContainsFunc(b.nested, func(n *hcl.Block) bool { return n.Type == dynamicType })
	b.spec = b.form.spec
	if b.dynamic || problems.HasErrors() {
		return
	}
	b.sound = true
	b.spec = hcldec.ObjectSpec{}
	for name := range b.attrs {
		b.spec[name] = b.form.spec[name]
	}
	for _, nested := range b.nested {
		b.spec[nested.Type] = b.form.spec[nested.Type]
	}
}

// traversals reads a list of references that say what they mean without being evaluated. In JSON they are
// strings. The attribute may be nil.
func traversals(attr *hcl.Attribute) ([]hcl.Traversal, hcl.Diagnostics) {
	if attr == nil {
		return nil, nil
	}
	exprs, diags := hcl.ExprList(attr.Expr)
	var out []hcl.Traversal
	for _, expr := range exprs {
		t, more := hcl.AbsTraversalForExpr(expr)
		if more.HasErrors() && inJSON(expr) {
			more = hcl.Diagnostics{failAt(expr.Range(), "Invalid reference",
				"This is a list of references that are not evaluated: in JSON, strings such as \"tenant.acme\".")}
		}
		diags = append(diags, more...)
		if !more.HasErrors() {
			out = append(out, t)
		}
	}
	return out, diags
}

// variableNames lists the declared variables in order of declaration.
func (m *module) variableNames() []string {
	var names []string
	for _, v := range m.variables {
		names = append(names, v.name)
	}
	return names
}

func (m *module) variable(name string) (*variable, bool) {
	v, ok := m.variableOf[name]
	return v, ok
}
