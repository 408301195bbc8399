package config

import (
	"bytes"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// reference is a traversal that names a variable, a local value, a block or a module, and the instance if
// it says which.
type reference struct {
	node node
	key  string // of an instance; only with keyed
	// keyed is true when the traversal goes on with a constant key.
	keyed bool
	// output is the name that follows a module; empty for a module as a whole.
	output string
	rng    hcl.Range
}

// scope says which names besides local values and objects an expression may use.
type scope struct {
	each      bool // the body of a block with for_each
	onlyVars  bool // a validation: variables, nothing else
	secretive func(hcl.Range) bool
}

// references reads traversals. What names each or path is checked and left out; what is not declared is
// in the diagnostics and among the references too, see [evaluation.context].
func (m *module) references(traversals []hcl.Traversal, in scope) ([]reference, hcl.Diagnostics) {
	var refs []reference
	var diags hcl.Diagnostics
	for _, t := range traversals {
		ref, problem := m.reference(t, in)
		if problem != nil {
			diags = append(diags, problem)
		}
		if ref.node != (node{}) {
			refs = append(refs, ref)
		}
	}
	return refs, diags
}

func (m *module) reference(t hcl.Traversal, in scope) (reference, *hcl.Diagnostic) {
	root := norm.NFC.String(t.RootName())
	unusable := reference{node: node{root: root}, rng: t.SourceRange()}
	_, isKind := schema.Lookup(root)
	switch {
	case m.policy && !slices.Contains(policyRoots(), root):
		return unusable, failAt(t.SourceRange(), "Invalid reference", "%q is not something that a policy refers to. "+
			"It sees what is planned, as in plan.resource_changes, its own local values, path, and with for_each each.key and each.value.%s",
			root, schema.DidYouMean(root, policyRoots()))
	case m.policy && root == "plan":
		return reference{}, nil
	case root == "var":
		return m.referenceToVariable(t)
	case in.onlyVars:
		return unusable, failAt(t.SourceRange(), "Reference not allowed here",
			"A variable's validation can refer to variables, as in var.name, and to nothing else.")
	case root == "each" && in.each:
		return checkNames(t, "each", "key", "value")
	case root == "path":
		return checkNames(t, "path", "module", "root")
	case root == "each":
		return unusable, failAt(t.SourceRange(), "Reference to each without for_each",
			"each.key and each.value exist in the body of a block that has the argument for_each.")
	case root == "local" || root == "module" || isKind:
		return m.referenceTo(root, t)
	case in.secretive != nil && in.secretive(t.SourceRange()):
		return unusable, failAt(t.SourceRange(), "Invalid reference", "This is not a reference to anything declared. "+
			"A string is written in quotes, and a secret is better given through a variable with sensitive = true.")
	}
	return unusable, failAt(t.SourceRange(), "Invalid reference", "%q is not something to refer to. "+
		"References start with var, local, module or a kind, as in tenant.acme; a string is written in quotes.%s",
		root, schema.DidYouMean(root, roots()))
}

// roots lists what references start with.
func roots() []string {
	names := []string{"var", "local", "each", "module", "path"}
	for _, k := range schema.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// stepName returns the name or constant string key of a step.
func stepName(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	switch step := t[i].(type) {
	case hcl.TraverseAttr:
		return norm.NFC.String(step.Name), true
	case hcl.TraverseIndex:
		if step.Key.Type() == cty.String && step.Key.IsKnown() && !step.Key.IsNull() {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

func (m *module) referenceToVariable(t hcl.Traversal) (reference, *hcl.Diagnostic) {
	name, ok := stepName(t, 1)
	if !ok {
		return reference{node: node{root: "var"}}, failAt(t.SourceRange(), "Invalid reference",
			"var is followed by a variable's name, as in var.name.")
	}
	if _, declared := m.variable(name); declared {
		return reference{node: node{"var", name}, rng: t.SourceRange()}, nil
	}
	missing := reference{node: node{"var", name}, rng: t.SourceRange()}
	if m.broken {
		return missing, nil
	}
	return missing, failAt(t[:2].SourceRange(), "Reference to undeclared variable", "There is no variable %q.%s",
		name, orDeclare(schema.DidYouMean(name, m.variableNames()), " Declare it with: variable \""+name+"\" {}"))
}

func orDeclare(suggestion, otherwise string) string {
	if suggestion != "" {
		return suggestion
	}
	return otherwise
}

// checkNames checks a reference to something that has two attributes.
func checkNames(t hcl.Traversal, root, one, other string) (reference, *hcl.Diagnostic) {
	name, _ := stepName(t, 1)
	if name != one && name != other {
		return reference{node: node{root, name}}, failAt(t.SourceRange(), "Invalid reference",
			"%s has two attributes: %s.%s and %s.%s.%s", root, root, one, root, other,
			schema.DidYouMean(name, []string{one, other}))
	}
	return reference{}, nil
}

// referenceTo reads local.NAME, module.NAME or KIND.LABEL.
func (m *module) referenceTo(root string, t hcl.Traversal) (reference, *hcl.Diagnostic) {
	name, ok := stepName(t, 1)
	unusable := reference{node: node{root: root}, rng: t.SourceRange()}
	if !ok && root == "local" {
		return unusable, failAt(t.SourceRange(), "Invalid reference",
			"local is followed by a local value's name, as in local.name.")
	}
	if !ok && root == "module" {
		return unusable, failAt(t.SourceRange(), "Invalid reference",
			"module is followed by a module's name, as in module.name.output.")
	}
	if !ok {
		return unusable, failAt(t.SourceRange(), "Invalid reference",
			"%s is a kind. It is followed by the label of a block, as in %s.%s.", root, root, exampleLabel(m.labels(root)))
	}
	ref := reference{node: node{root, name}, rng: t.SourceRange()}
	if !m.declares(ref.node) {
		if m.broken {
			return ref, nil
		}
		return ref, m.undeclared(ref.node, t[:2].SourceRange())
	}
	if b, isBlock := m.blockOf[ref.node]; isBlock && b.forEach != nil {
		ref.key, ref.keyed = stepName(t, 2)
	}
	if c, isCall := m.callOf[ref.node]; isCall {
		return c.reference(ref, t)
	}
	return ref, nil
}

// reference completes a reference to a module with the instance and the output.
func (c *call) reference(ref reference, t hcl.Traversal) (reference, *hcl.Diagnostic) {
	next := 2
	if c.forEach != nil {
		ref.key, ref.keyed = stepName(t, next)
		next++
	}
	if _, isName := stepName(t, next); !isName || c.module == nil {
		return ref, nil
	}
	ref.output, _ = stepName(t, next)
	if _, declared := c.module.outputOf[ref.output]; declared || c.module.broken {
		return ref, nil
	}
	unusable := reference{node: node{root: "module"}, rng: t.SourceRange()}
	return unusable, failAt(t.SourceRange(), "Reference to undeclared output", "The module in %s has no output %q.%s",
		filepath.ToSlash(c.module.dir), ref.output, schema.DidYouMean(ref.output, c.module.outputNames()))
}

func exampleLabel(labels []string) string {
	if len(labels) == 0 {
		return "LABEL"
	}
	return labels[0]
}

func (m *module) declares(n node) bool {
	_, isLocal := m.localOf[n]
	_, isBlock := m.blockOf[n]
	_, isCall := m.callOf[n]
	return isLocal || isBlock || isCall
}

// labels lists the names declared under a root: local values, modules, or blocks of a kind.
func (m *module) labels(root string) []string {
	var labels []string
	if root == "local" {
		for _, l := range m.locals {
			labels = append(labels, l.node.name)
		}
	}
	for _, c := range m.calls {
		if root == c.node.root {
			labels = append(labels, c.node.name)
		}
	}
	for _, b := range m.blocks {
		if b.kind.Name == root {
			labels = append(labels, b.node.name)
		}
	}
	return labels
}

func (m *module) undeclared(n node, rng hcl.Range) *hcl.Diagnostic {
	suggestion := schema.DidYouMean(n.name, m.labels(n.root))
	if n.root == "local" {
		return failAt(rng, "Reference to undeclared local value", "There is no local value %q.%s", n.name, suggestion)
	}
	if n.root == "module" {
		return failAt(rng, "Reference to undeclared module", "No block module %q is declared.%s", n.name, suggestion)
	}
	if near := schema.Nearest(n.name, m.labels(n.root)); near != "" {
		suggestion = " Did you mean " + n.root + "." + near + "?"
	}
	for _, b := range m.blocks {
		if suggestion == "" && b.node.name == n.name {
			suggestion = " There is " + b.node.String() + "."
		}
	}
	return failAt(rng, "Reference to undeclared "+n.root, "No block %s %q is declared.%s "+
		"If the object belongs to another stack, name it with a string: %q.", n.root, n.name, suggestion, n.name)
}

// uses lists what a block refers to: from its body and for_each, and from depends_on.
func (m *module) uses(b *block) (body, dependsOn []reference, diags hcl.Diagnostics) {
	in := scope{each: b.forEach != nil, secretive: b.inSecret}
	body, diags = m.references(b.variables(), in)
	if b.forEach != nil {
		more, problems := m.references(b.forEach.Variables(), scope{})
		body, diags = append(body, more...), append(diags, problems...)
	}
	if b.lifecycle.prevent != nil {
		more, problems := m.references(b.lifecycle.prevent.Variables(), in)
		body, diags = append(body, more...), append(diags, problems...)
	}
	dependsOn, keys, problems := m.triggerUses(b)
	body, diags = append(body, keys...), append(diags, problems...)
	listed, problems := m.wholes(b.dependsOn)
	return body, append(dependsOn, listed...), append(diags, problems...)
}

// callUses does for a module call what uses does for a block.
func (m *module) callUses(c *call) (args, dependsOn []reference, diags hcl.Diagnostics) {
	for _, attr := range sortedAttributes(c.args) {
		more, problems := m.references(attr.Expr.Variables(), c.scope(attr.Name))
		args, diags = append(args, more...), append(diags, problems...)
	}
	if c.forEach != nil {
		more, problems := m.references(c.forEach.Variables(), scope{})
		args, diags = append(args, more...), append(diags, problems...)
	}
	dependsOn, problems := m.wholes(c.dependsOn)
	return args, dependsOn, append(diags, problems...)
}

func (c *call) scope(arg string) scope {
	secretive := func(hcl.Range) bool {
		if c.module == nil {
			return true
		}
		v, declared := c.module.variable(arg)
		return !declared || v.sensitive
	}
	return scope{each: c.forEach != nil, secretive: secretive}
}

// wholes reads references to whole objects, blocks or modules.
func (m *module) wholes(list []hcl.Traversal) (refs []reference, diags hcl.Diagnostics) {
	for _, t := range list {
		ref, problem := m.reference(t, scope{})
		_, isBlock := m.blockOf[ref.node]
		_, isCall := m.callOf[ref.node]
		n := len(t)
		switch {
		case problem != nil:
			diags = append(diags, problem)
		case !m.declares(ref.node) && m.broken:
		case !isBlock && !isCall || n > 3 || n == 3 && !ref.keyed:
			diags = append(diags, failAt(t.SourceRange(), "Invalid depends_on",
				"depends_on lists whole objects and modules, as in pool.bi, user.all[\"ana\"] or module.eu."))
		default:
			refs = append(refs, ref)
		}
	}
	return refs, diags
}

// inSecret reports whether a range is in the expression of a secret argument.
func (b *block) inSecret(rng hcl.Range) bool {
	for _, attr := range b.attrs {
		if a, ok := b.kind.Attr(attr.Name); ok && a.Secret && attr.Expr.Range().Overlaps(rng) {
			return true
		}
	}
	return false
}

// callsSensitive reports whether the expression calls sensitive() itself; in JSON, whether it may.
func callsSensitive(expr hcl.Expression, files map[string]*hcl.File) bool {
	root, ok := hcl.UnwrapExpressionUntil(expr, func(e hcl.Expression) bool {
		_, native := e.(hclsyntax.Node)
		return native
	}).(hclsyntax.Node)
	if !ok {
		file := files[expr.Range().Filename]
		return file != nil && expr.Range().CanSliceBytes(file.Bytes) &&
			bytes.Contains(expr.Range().SliceBytes(file.Bytes), []byte("sensitive"))
	}
	found := false
	hclsyntax.VisitAll(root, func(n hclsyntax.Node) hcl.Diagnostics {
		call, ok := n.(*hclsyntax.FunctionCallExpr)
		found = found || ok && call.Name == "sensitive"
		return nil
	})
	return found
}
