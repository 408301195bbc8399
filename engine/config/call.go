package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// call is a module block.
type call struct {
	node      node
	src       *hcl.Block
	header    hcl.Range
	source    string    // "" when it is not a good one
	sourceAt  hcl.Range // of the expression
	module    *module   // nil when it could not be read
	args      hcl.Attributes
	forEach   hcl.Expression // nil without it
	dependsOn []hcl.Traversal
}

func (m *module) addCall(src *hcl.Block) hcl.Diagnostics {
	c := &call{node: node{"module", norm.NFC.String(src.Labels[0])}, src: src, header: header(src)}
	if !hclsyntax.ValidIdentifier(c.node.name) {
		return hcl.Diagnostics{failAt(src.LabelRanges[0], "Invalid module name",
			"A module's name has a letter first, then letters, digits, _ and -.")}
	}
	if first, taken := m.callOf[c.node]; taken {
		return hcl.Diagnostics{failAt(c.header, "Duplicate module",
			"%s is called already at %s: give one of them another name.", c.node.String(), first.header.String())}
	}
	diags := c.decode()
	m.callOf[c.node] = c
	m.calls = append(m.calls, c)
	return diags
}

// refusedInCall says of arguments that other tools have why there are none here.
func refusedInCall(name string) string {
	switch name {
	case "count":
		return "For several calls of a module, use for_each."
	case "providers":
		return "There are no providers to hand on: every object is of the one stack."
	case "version":
		return "A module is a directory beside this one and has no version of its own."
	}
	return ""
}

// reservedNames are arguments of a module block that are not inputs of the module.
func reservedNames() []string {
	return []string{"source", "for_each", "depends_on", "count", "providers", "version", "lifecycle"}
}

func (c *call) decode() hcl.Diagnostics {
	body := &hcl.BodySchema{}
	for _, name := range reservedNames() {
		body.Attributes = append(body.Attributes, hcl.AttributeSchema{Name: name, Required: name == "source"})
	}
	content, rest, diags := c.src.Body.PartialContent(body)
	for _, name := range reservedNames() {
		if attr, ok := content.Attributes[name]; ok && refusedInCall(name) != "" {
			diags = append(diags, failAt(attr.NameRange, "Unsupported argument",
				"A module block has no %s. %s", name, refusedInCall(name)))
		}
	}
	args, more := rest.JustAttributes()
	c.args = args
	diags = append(diags, more...)
	if attr, ok := content.Attributes["for_each"]; ok {
		c.forEach = attr.Expr
	}
	c.dependsOn, more = traversals(content.Attributes["depends_on"])
	diags = append(diags, more...)
	if attr, ok := content.Attributes["source"]; ok {
		diags = append(diags, c.decodeSource(attr)...)
	}
	return diags
}

func (c *call) decodeSource(attr *hcl.Attribute) hcl.Diagnostics {
	c.sourceAt = attr.Expr.Range()
	v, diags := literal(attr, cty.String)
	if diags.HasErrors() {
		return diags
	}
	if v.IsNull() || !strings.HasPrefix(v.AsString(), "./") && !strings.HasPrefix(v.AsString(), "../") {
		return append(diags, failAt(c.sourceAt, "Invalid module source",
			"A module is a directory of this configuration: its source starts with ./ or ../, as in \"./modules/eu\"."))
	}
	c.source = filepath.FromSlash(v.AsString())
	return diags
}

// readCalled reads all modules.
func (l *loader) readCalled() hcl.Diagnostics {
	root := place{shown: l.config.dir}
	root.real, _ = filepath.EvalSymlinks(l.config.dir) // it was read before
	diags := l.callModules(l.config.root, []place{root})
	for _, m := range l.config.modules[1:] {
		for _, v := range m.variables {
			if slices.Contains(reservedNames(), v.name) {
				diags = append(diags, failAt(header(v.src), "Reserved variable name", "%s is an argument of every module "+
					"block, so a module cannot have a variable of that name.", v.name))
			}
		}
	}
	return diags
}

// callModules reads the modules that m calls, and those that they call. chain has the directories from
// the root to m.
func (l *loader) callModules(m *module, chain []place) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, c := range m.calls {
		if c.source == "" {
			continue
		}
		at := place{shown: filepath.Join(m.dir, c.source)}
		real, problem := l.confined(c, at.shown)
		if problem != nil {
			diags = append(diags, problem)
			continue
		}
		at.real = real
		if i := slices.IndexFunc(chain, func(p place) bool { return p.real == real }); i >= 0 {
			diags = append(diags, failAt(c.sourceAt, "Module calls itself",
				"A module cannot be inside itself: %s.", chainString(append(chain[i:len(chain):len(chain)], at))))
			continue
		}
		if known, ok := l.modules[real]; ok {
			c.module = known
			continue
		}
		diags = append(diags, l.readModule(c, at, chain)...)
	}
	return diags
}

// place is a directory: as ranges show it, and without symbolic links.
type place struct{ shown, real string }

func chainString(chain []place) string {
	var names []string
	for _, p := range chain {
		name := filepath.ToSlash(p.shown)
		if !filepath.IsAbs(p.shown) {
			name = "./" + strings.TrimPrefix(name, ".")
		}
		names = append(names, name)
	}
	return strings.Join(names, " -> ")
}

func (l *loader) readModule(c *call, at place, chain []place) hcl.Diagnostics {
	names, _, err := list(at.shown, IsConfig)
	if err != nil || len(names) == 0 {
		return hcl.Diagnostics{failAt(c.sourceAt, "No such module",
			"%s is not a directory with files named *%s or *%s.", filepath.ToSlash(at.shown), hclSuffix, jsonSuffix)}
	}
	m := newModule(l.config, at.shown)
	l.modules[at.real] = m
	l.config.modules = append(l.config.modules, m)
	c.module = m
	diags := l.read(m, names)
	return append(diags, l.callModules(m, append(chain[:len(chain):len(chain)], at))...)
}

// confined returns the directory without symbolic links, which must be that of the configuration or one
// inside it.
func (l *loader) confined(c *call, dir string) (string, *hcl.Diagnostic) {
	outside := failAt(c.sourceAt, "Module outside of the configuration", "%s is not inside the directory of the "+
		"configuration, so whoever gets that directory would not get all of it. Move the module there; a symbolic "+
		"link does not do.", filepath.ToSlash(dir))
	if rel, err := filepath.Rel(l.config.dir, dir); err != nil || !filepath.IsLocal(rel) {
		return "", outside
	}
	root, err := filepath.EvalSymlinks(l.config.dir)
	if err != nil {
		return "", failAt(c.sourceAt, "No such module", "The directory of the configuration cannot be read.")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", failAt(c.sourceAt, "No such module", "There is no directory %s.", filepath.ToSlash(dir))
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", outside
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", failAt(c.sourceAt, "No such module", "%s is not a directory.", filepath.ToSlash(dir))
	}
	return real, nil
}

// check compares the arguments of a call with the variables of the module.
func (c *call) check() hcl.Diagnostics {
	if c.module == nil || c.module.broken {
		return nil
	}
	var diags hcl.Diagnostics
	for _, attr := range sortedAttributes(c.args) {
		if _, declared := c.module.variable(attr.Name); declared {
			continue
		}
		names := append(c.module.variableNames(), reservedNames()...)
		diags = append(diags, failAt(attr.NameRange, "Unsupported argument", "The module in %s has no variable %q.%s",
			filepath.ToSlash(c.module.dir), attr.Name, schema.DidYouMean(attr.Name, names)))
	}
	for _, v := range c.module.variables {
		if _, given := c.args[v.name]; !given && v.def == cty.NilVal {
			diags = append(diags, failAt(c.header, "Missing argument", "%s needs the argument %s: the variable at %s has "+
				"no default.", c.node.String(), v.name, header(v.src).String()))
		}
	}
	return diags
}
