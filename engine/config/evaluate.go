package config

import (
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// run is one run of Evaluate, over all modules.
type run struct {
	config    *Config
	now       time.Time // of Inputs
	files     map[string]*hcl.File
	analyses  map[*module]*analysis
	instances map[string]*instance // by address
	objects   []*instance          // those without errors, in order of evaluation
	moves     []schema.Move
	removals  []schema.Removal
	imports   []schema.Import
	diags     hcl.Diagnostics
}

// evaluation is that of the root, or of a module for one of its calls.
type evaluation struct {
	*run
	module *module
	*analysis
	variables map[string]cty.Value // marked when sensitive
	fixed     map[string]cty.Value // what expressions see whatever they refer to
	values    map[node]cty.Value   // of locals, blocks and calls, once evaluated
	alone     map[node]cty.Value   // see under: objects with nothing but that value
	outputs   map[string]cty.Value
	byBlock   map[node][]*instance // in order of keys
	flat      map[node][]scoped    // see through
	// children are the modules that are called, by key; "" is that of a call without for_each.
	children map[node]map[string]*evaluation

	// parent is nil for the root. call and path say how the module was called, and path from where.
	parent *evaluation
	call   *call
	path   []schema.Step
	prefix string // of addresses: "module.eu."
}

// Evaluate says what the configuration asks for. Desired is never nil; it has objects only when neither
// Load nor Evaluate met an error.
func (c *Config) Evaluate(in Inputs) (*Desired, hcl.Diagnostics) {
	d := &Desired{Stack: c.stack, StackRange: c.stackRange, files: c.Files()}
	r := &run{config: c, now: in.Now, files: d.files, analyses: map[*module]*analysis{}, instances: map[string]*instance{}}
	values, diags := c.variableValues(in, d.files)
	r.report(diags)
	for _, m := range c.modules {
		r.analyses[m] = r.analyse(m)
	}
	root := r.evaluation(c.root, values)
	root.walk()
	r.refuseSameKey()
	d.root, d.instances = root, r.instances
	r.checkRelocations()
	if !r.diags.HasErrors() && !c.failed {
		d.Objects, d.Outputs = r.ordered(), root.results()
		d.Moves, d.Removals, d.Imports = r.moves, r.removals, r.imports
	}
	if r.diags.HasErrors() {
		d.Desired = schema.Desired{}
	}
	d.Declared = root.declared()
	d.Absence = d.Declared.Absence(func(address string) bool { return r.instances[address] != nil })
	return d, sorted(r.diags)
}

func (r *run) report(diags hcl.Diagnostics) { r.diags = append(r.diags, diags...) }

func (r *run) evaluation(m *module, variables map[string]cty.Value) *evaluation {
	return &evaluation{
		run: r, module: m, analysis: r.analyses[m], variables: variables,
		fixed:  map[string]cty.Value{"var": cty.ObjectVal(variables), "path": m.path()},
		values: map[node]cty.Value{}, alone: map[node]cty.Value{}, byBlock: map[node][]*instance{},
		flat: map[node][]scoped{}, children: map[node]map[string]*evaluation{},
	}
}

// walk evaluates everything in the module.
func (e *evaluation) walk() {
	e.validate()
	for rest := e.order; len(rest) > 0; {
		n := 1
		switch rest[0].root {
		case "local":
			e.evaluateLocal(e.module.localOf[rest[0]])
		case "module":
			e.evaluateCall(e.module.callOf[rest[0]])
		default:
			n = e.independent(rest)
			e.evaluateBlocks(rest[:n])
		}
		rest = rest[n:]
	}
	e.evaluateOutputs()
	e.relocate()
	e.adopt()
	e.assert()
}

// validate runs the rules of the variables. Sensitive values are marked already, so that no rule's
// message can show one.
func (e *evaluation) validate() {
	ctx := e.context(nil)
	for _, v := range e.module.variables {
		if !e.variables[v.name].IsWhollyKnown() {
			continue
		}
		for _, rule := range v.validations {
			traversals := append(rule.condition.Variables(), rule.message.Variables()...)
			if _, diags := e.module.references(traversals, scope{onlyVars: true}); diags.HasErrors() {
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
	text, problem := ruleText(rule, message)
	if problem != nil {
		return append(diags, problem)
	}
	return append(diags, &hcl.Diagnostic{
		Severity: hcl.DiagError, Summary: "Invalid value for var." + v.name,
		Detail:  text + "\n\nThis is what the rule at " + rule.condition.Range().String() + " says.",
		Subject: e.inputRange(v).Ptr(), Expression: rule.condition, EvalContext: ctx,
	})
}

// context returns what expressions see that refer to refs. What is not declared, or could not be
// evaluated, is unknown there: it has been reported, and HCL must not report it again.
func (e *evaluation) context(refs []reference) *hcl.EvalContext {
	vars := maps.Clone(e.fixed)
	var done []string
	for i, ref := range refs {
		if root := ref.node.root; !slices.Contains(done, root) {
			done = append(done, root)
			vars[root] = e.under(root, refs[i:])
		}
	}
	return &hcl.EvalContext{Variables: vars, Functions: e.functions}
}

// under returns what expressions see under a root, such as tenant, that refer to refs.
func (e *evaluation) under(root string, refs []reference) cty.Value {
	var nodes []node
	for _, ref := range refs {
		_, given := e.variables[ref.node.name]
		switch {
		case ref.node.root != root:
		case ref.node.name == "":
			return cty.DynamicVal
		case !(given && root == "var"):
			nodes = append(nodes, ref.node)
		}
	}
	fixed, isFixed := e.fixed[root]
	if isFixed && len(nodes) == 0 {
		return fixed
	}
	if known, ok := e.alone[nodes[0]]; ok && len(nodes) == 1 {
		return known
	}
	values := make(map[string]cty.Value, len(nodes))
	if isFixed {
		maps.Copy(values, fixed.AsValueMap())
	}
	evaluated := !isFixed
	for _, n := range nodes {
		value, ok := e.values[n]
		if !ok {
			value, evaluated = cty.DynamicVal, false
		}
		values[n.name] = value
	}
	object := cty.ObjectVal(values)
	if evaluated && len(nodes) == 1 {
		e.alone[nodes[0]] = object
	}
	return object
}

// value is Value with suggestions in its diagnostics and without sensitive values.
func (e *evaluation) value(expr hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	value, diags := expr.Value(ctx)
	return value, guard(addHints(diags), e.files, ctx, expr)
}

func (e *evaluation) evaluateLocal(l *local) {
	value, diags := e.value(l.attr.Expr, e.context(e.uses[l.node]))
	if !diags.HasErrors() {
		if wrong := failNumbers(value, l.attr.Expr.Range()); wrong.HasErrors() {
			diags = append(diags, wrong...)
		} else if err := checkLocal(value); err != nil {
			diags = append(diags, failAt(l.attr.Expr.Range(), "Value too large", "%s is too large: %s. Keep what is computed "+
				"smaller, or refer to its parts where they are needed.", l.node, err))
		}
	}
	e.report(diags)
	if diags.HasErrors() {
		value = cty.DynamicVal
	}
	e.values[l.node] = value
}
