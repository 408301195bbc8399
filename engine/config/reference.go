package config

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/text/unicode/norm"

	"github.com/qod-io/qod/schema"
)

// reference is a traversal that names a local value or a block, and the instance if it says which.
type reference struct {
	node node
	key  string // of an instance; only with keyed
	// keyed is true when the traversal goes on with a constant key.
	keyed bool
	rng   hcl.Range
}

// scope says which names besides local values and objects an expression may use.
type scope struct {
	each      bool // the body of a block with for_each
	onlyVars  bool // a validation: variables, nothing else
	secretive func(hcl.Range) bool
}

// references reads traversals. What names a declared variable or each is checked and left out; what is
// not declared is in the diagnostics and among the references too, see [evaluation.context].
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
	case root == "var":
		return m.referenceToVariable(t)
	case in.onlyVars:
		return unusable, failAt(t.SourceRange(), "Reference not allowed here",
			"A variable's validation can refer to variables, as in var.name, and to nothing else.")
	case root == "each" && in.each:
		return checkEach(t)
	case root == "each":
		return unusable, failAt(t.SourceRange(), "Reference to each without for_each",
			"each.key and each.value exist in the body of a block that has the argument for_each.")
	case root == "local" || isKind:
		return m.referenceTo(root, t)
	case in.secretive != nil && in.secretive(t.SourceRange()):
		return unusable, failAt(t.SourceRange(), "Invalid reference", "This is not a reference to anything declared. "+
			"A string is written in quotes, and a secret is better given through a variable with sensitive = true.")
	}
	return unusable, failAt(t.SourceRange(), "Invalid reference", "%q is not something to refer to. "+
		"References start with var, local or a kind, as in tenant.acme; a string is written in quotes.%s",
		root, schema.DidYouMean(root, roots()))
}

// roots lists what references start with.
func roots() []string {
	names := []string{"var", "local", "each"}
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
		return reference{}, nil
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

func checkEach(t hcl.Traversal) (reference, *hcl.Diagnostic) {
	name, _ := stepName(t, 1)
	if name != "key" && name != "value" {
		return reference{node: node{"each", name}}, failAt(t.SourceRange(), "Invalid reference",
			"each has two attributes: each.key and each.value.%s", schema.DidYouMean(name, []string{"key", "value"}))
	}
	return reference{}, nil
}

// referenceTo reads local.NAME or KIND.LABEL.
func (m *module) referenceTo(root string, t hcl.Traversal) (reference, *hcl.Diagnostic) {
	name, ok := stepName(t, 1)
	unusable := reference{node: node{root: root}, rng: t.SourceRange()}
	if !ok && root == "local" {
		return unusable, failAt(t.SourceRange(), "Invalid reference",
			"local is followed by a local value's name, as in local.name.")
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
	return ref, nil
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
	return isLocal || isBlock
}

// labels lists the names declared under a root: local values, or blocks of a kind.
func (m *module) labels(root string) []string {
	var labels []string
	if root == "local" {
		for _, l := range m.locals {
			labels = append(labels, l.node.name)
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
	body, diags = m.references(hcldec.Variables(b.body, b.kind.Spec()), in)
	if b.forEach != nil {
		more, problems := m.references(b.forEach.Variables(), scope{})
		body, diags = append(body, more...), append(diags, problems...)
	}
	for _, t := range b.dependsOn {
		ref, problem := m.reference(t, scope{})
		n := len(t)
		switch {
		case problem != nil:
			diags = append(diags, problem)
		case !m.declares(ref.node) && m.broken:
		case !m.declares(ref.node) || ref.node.root == "local" || n > 3 || n == 3 && !ref.keyed:
			diags = append(diags, failAt(t.SourceRange(), "Invalid depends_on",
				"depends_on lists whole objects, as in pool.bi or user.all[\"ana\"]."))
		default:
			dependsOn = append(dependsOn, ref)
		}
	}
	return body, dependsOn, diags
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
