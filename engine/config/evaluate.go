package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/qod-io/qod/engine/graph"
	"github.com/qod-io/qod/schema"
)

// evaluation is one run of Evaluate.
type evaluation struct {
	config    *Config
	files     map[string]*hcl.File
	functions map[string]function.Function
	variables map[string]cty.Value // marked when sensitive
	values    map[node]cty.Value   // of locals and blocks, once evaluated
	uses      map[node][]reference // what a local or block refers to, but for depends_on
	dependsOn map[node][]reference // depends_on of a block
	instances map[string]*instance // by address
	byBlock   map[node][]*instance // in order of keys
	objects   []*instance          // those without errors, in order of evaluation
	diags     hcl.Diagnostics
}

// Evaluate says what the configuration asks for. Desired is never nil; it has objects only when neither
// Load nor Evaluate met an error.
func (c *Config) Evaluate(in Inputs) (*Desired, hcl.Diagnostics) {
	d := &Desired{Stack: c.stack, StackRange: c.stackRange, files: c.Files()}
	e := &evaluation{
		config:    c,
		files:     d.files,
		functions: functions(c.dir),
		values:    map[node]cty.Value{},
		uses:      map[node][]reference{},
		dependsOn: map[node][]reference{},
		instances: map[string]*instance{},
		byBlock:   map[node][]*instance{},
	}
	values, diags := c.variableValues(in, d.files)
	e.report(diags)
	e.variables = values
	e.validate()
	e.collectUses()
	for _, n := range e.order() {
		if l := e.local(n); l != nil {
			e.evaluateLocal(l)
			continue
		}
		e.evaluateBlock(c.byNode[n])
	}
	e.refuseSameKey()
	d.instances = e.instances
	if !e.diags.HasErrors() && !c.failed {
		d.Objects = e.ordered()
	}
	if e.diags.HasErrors() {
		d.Objects = nil
	}
	return d, sorted(e.diags)
}

func (e *evaluation) report(diags hcl.Diagnostics) { e.diags = append(e.diags, diags...) }

func (e *evaluation) local(n node) *local {
	i := slices.IndexFunc(e.config.locals, func(l *local) bool { return l.node == n })
	if i < 0 {
		return nil
	}
	return e.config.locals[i]
}

// validate runs the rules of the variables. Sensitive values are marked already, so that no rule's
// message can show one.
func (e *evaluation) validate() {
	ctx := e.context(nil)
	for _, v := range e.config.variables {
		if !e.variables[v.name].IsWhollyKnown() {
			continue
		}
		for _, rule := range v.validations {
			traversals := append(rule.condition.Variables(), rule.message.Variables()...)
			if _, diags := e.config.references(traversals, scope{onlyVars: true}); diags.HasErrors() {
				e.report(diags)
				continue
			}
			e.report(e.check(v, rule, ctx))
		}
	}
}

func (e *evaluation) check(v *variable, rule validation, ctx *hcl.EvalContext) hcl.Diagnostics {
	result, diags := e.value(rule.condition, ctx)
	if diags.HasErrors() || !result.IsKnown() {
		return diags
	}
	result, _ = result.Unmark()
	if result.IsNull() || result.Type() != cty.Bool {
		return append(diags, failAt(rule.condition.Range(), "Invalid validation",
			"The condition of var.%s is neither true nor false.", v.name))
	}
	if result.True() {
		return diags
	}
	message, more := e.value(rule.message, ctx)
	diags = append(diags, more...)
	if more.HasErrors() || !message.IsKnown() {
		return diags
	}
	text := withheld + " (The rule's error_message refers to it.)"
	if !containsSensitive(message) {
		message, _ = message.UnmarkDeep()
		if message.IsNull() || message.Type() != cty.String {
			return append(diags, failAt(rule.message.Range(), "Invalid validation", "error_message is a string."))
		}
		text = message.AsString()
	}
	return append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Invalid value for var." + v.name,
		Detail:  text + "\n\nThis is what the rule at " + rule.condition.Range().String() + " says.",
		Subject: v.src.DefRange().Ptr(), Expression: rule.condition, EvalContext: ctx,
	})
}

// collectUses finds what refers to what, and reports references to nothing.
func (e *evaluation) collectUses() {
	for _, l := range e.config.locals {
		refs, diags := e.config.references(l.attr.Expr.Variables(), scope{})
		e.report(diags)
		e.uses[l.node] = refs
	}
	for _, b := range e.config.blocks {
		refs, dependsOn, diags := e.config.uses(b)
		e.report(diags)
		e.uses[b.node], e.dependsOn[b.node] = refs, dependsOn
	}
}

// order returns locals and blocks so that each comes after what it refers to.
func (e *evaluation) order() []node {
	g := graph.New[node]()
	for _, l := range e.config.locals {
		g.Add(l.node)
	}
	for _, b := range e.config.blocks {
		g.Add(b.node)
	}
	for from, refs := range e.allUses() {
		for _, ref := range refs {
			if e.config.declares(ref.node) {
				g.Connect(from, ref.node)
			}
		}
	}
	order, err := g.Order()
	var cycle *graph.CycleError[node]
	if errors.As(err, &cycle) {
		e.reportCycle(cycle.Path)
	}
	return order
}

// allUses yields each node with all it refers to, in order of files.
func (e *evaluation) allUses() func(func(node, []reference) bool) {
	return func(yield func(node, []reference) bool) {
		for _, l := range e.config.locals {
			if !yield(l.node, e.uses[l.node]) {
				return
			}
		}
		for _, b := range e.config.blocks {
			if !yield(b.node, append(slices.Clone(e.uses[b.node]), e.dependsOn[b.node]...)) {
				return
			}
		}
	}
}

func (e *evaluation) reportCycle(path []node) {
	var lines []string
	var first hcl.Range
	for i, from := range path[:len(path)-1] {
		refs := append(slices.Clone(e.uses[from]), e.dependsOn[from]...)
		at := slices.IndexFunc(refs, func(r reference) bool { return r.node == path[i+1] })
		if i == 0 {
			first = refs[at].rng
		}
		lines = append(lines, fmt.Sprintf("  %s refers to %s at %s", from, path[i+1], refs[at].rng))
	}
	detail := "These need each other, so none can come first:\n\n"
	if len(lines) == 1 {
		detail = "A block cannot refer to itself:\n\n"
	}
	e.report(hcl.Diagnostics{failAt(first, "Reference cycle", "%s", detail+strings.Join(lines, "\n"))})
}

// context returns what expressions see that refer to refs. What is not declared, or could not be
// evaluated, is unknown there: it has been reported, and HCL must not report it again.
func (e *evaluation) context(refs []reference) *hcl.EvalContext {
	roots := map[string]map[string]cty.Value{"var": e.variables}
	vars := map[string]cty.Value{}
	for _, ref := range refs {
		root, name := ref.node.root, ref.node.name
		if name == "" {
			vars[root] = cty.DynamicVal
			continue
		}
		if roots[root] == nil {
			roots[root] = map[string]cty.Value{}
		}
		value, ok := e.values[ref.node]
		if !ok {
			value = cty.DynamicVal
		}
		if root == "var" {
			roots[root] = maps.Clone(roots[root])
		}
		roots[root][name] = value
	}
	for root, values := range roots {
		if _, unusable := vars[root]; !unusable {
			vars[root] = cty.ObjectVal(values)
		}
	}
	return &hcl.EvalContext{Variables: vars, Functions: e.functions}
}

// value is Value with suggestions in its diagnostics and without sensitive values.
func (e *evaluation) value(expr hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	value, diags := expr.Value(ctx)
	return value, guard(addHints(diags), e.files, ctx, expr)
}

func (e *evaluation) evaluateLocal(l *local) {
	value, diags := e.value(l.attr.Expr, e.context(e.uses[l.node]))
	e.report(diags)
	if diags.HasErrors() {
		value = cty.DynamicVal
	}
	e.values[l.node] = value
}

// refuseSameKey finds two blocks that describe one object.
func (e *evaluation) refuseSameKey() {
	first := map[schema.Addr]*instance{}
	for _, inst := range e.objects {
		addr := inst.object.Addr()
		before, taken := first[addr]
		if !taken {
			first[addr] = inst
			continue
		}
		e.report(hcl.Diagnostics{failAt(inst.keyRange(), "Object declared twice",
			"%s and %s (at %s) are both %s: an object has one block. Give one of them another name, or remove it.",
			inst.object.Address, before.object.Address, before.keyRange(), addr)})
	}
}

// ordered returns the objects in order of dependency, with DependsOn filled in.
func (e *evaluation) ordered() []schema.Object {
	byAddr := map[schema.Addr]string{}
	for _, inst := range e.objects {
		byAddr[inst.object.Addr()] = inst.object.Address
	}
	g := graph.New[string]()
	for _, inst := range e.objects {
		g.Add(inst.object.Address)
	}
	for _, inst := range e.objects {
		needs := e.needs(inst)
		for _, ref := range inst.object.Kind.Refs(inst.object.Value) {
			if address, here := byAddr[ref.To]; here {
				needs[address] = true
			}
		}
		delete(needs, inst.object.Address)
		inst.object.DependsOn = slices.Sorted(maps.Keys(needs))
		for _, address := range inst.object.DependsOn {
			g.Connect(inst.object.Address, address)
		}
	}
	order, err := g.Order()
	var cycle *graph.CycleError[string]
	if errors.As(err, &cycle) {
		inst := e.instances[cycle.Path[0]]
		e.report(hcl.Diagnostics{failAt(inst.header(), "Reference cycle",
			"These need each other, by reference, by name or by depends_on, so none can come first: %s.",
			strings.Join(cycle.Path, " -> "))})
	}
	objects := make([]schema.Object, 0, len(order))
	for _, address := range order {
		objects = append(objects, e.instances[address].object)
	}
	return objects
}
