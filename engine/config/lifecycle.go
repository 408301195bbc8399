package config

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

// lifecycle is the lifecycle block of a block of objects.
type lifecycle struct {
	prevent   hcl.Expression // nil: false
	ignore    []cty.Path
	ignoreAll bool
	triggers  []staticRef
}

func lifecycleSchema() *hcl.BodySchema {
	return &hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{
			{Name: "prevent_destroy"}, {Name: "ignore_changes"}, {Name: "replace_triggered_by"}, {Name: "create_before_destroy"},
		},
		Blocks: []hcl.BlockHeaderSchema{{Type: "precondition"}, {Type: "postcondition"}},
	}
}

// decodeLifecycle reads the lifecycle blocks of b, of which there is one at most.
func (b *block) decodeLifecycle(blocks hcl.Blocks) hcl.Diagnostics {
	src, diags := oneBlock(blocks, "An object's block")
	if src == nil {
		return diags
	}
	content, more := src.Body.Content(lifecycleSchema())
	diags = append(diags, more...)
	if attr, ok := content.Attributes["prevent_destroy"]; ok {
		b.lifecycle.prevent = attr.Expr
	}
	if attr, ok := content.Attributes["ignore_changes"]; ok {
		diags = append(diags, b.decodeIgnored(attr)...)
	}
	if attr, ok := content.Attributes["replace_triggered_by"]; ok {
		diags = append(diags, b.decodeTriggers(attr)...)
	}
	if attr, ok := content.Attributes["create_before_destroy"]; ok {
		diags = append(diags, failAt(attr.NameRange, "Unsupported argument",
			"create_before_destroy is not needed: new nodes always take over before old ones go. Remove it."))
	}
	for _, rule := range content.Blocks {
		diags = append(diags, failAt(header(rule), "Unsupported block type", "A %s is written elsewhere: rules for "+
			"what goes in are a validation block of the variable, and rules for the whole are check blocks with assert blocks.",
			rule.Type))
	}
	return diags
}

// decodeIgnored reads ignore_changes: all, or a list of attributes and blocks.
func (b *block) decodeIgnored(attr *hcl.Attribute) hcl.Diagnostics {
	if hcl.ExprAsKeyword(attr.Expr) == "all" {
		b.lifecycle.ignoreAll = true
		return nil
	}
	exprs, diags := hcl.ExprList(attr.Expr)
	if diags.HasErrors() {
		return hcl.Diagnostics{failAt(attr.Expr.Range(), "Invalid ignore_changes",
			"It is a list of arguments and blocks, as in [%s], or all.", b.kind.Names()[0])}
	}
	for _, expr := range exprs {
		ref, more := readStatic(expr, wantArgument)
		if !more.HasErrors() && len(ref.keys) > 0 {
			more = hcl.Diagnostics{failAt(ref.rng, "Invalid ignore_changes", "Elements cannot be chosen by a computed key.")}
		}
		diags = append(diags, more...)
		if more.HasErrors() {
			continue
		}
		path, problem := b.ignored(ref)
		if problem != nil {
			diags = append(diags, problem)
			continue
		}
		if !slices.ContainsFunc(b.lifecycle.ignore, path.Equals) {
			b.lifecycle.ignore = append(b.lifecycle.ignore, path)
		}
	}
	return diags
}

// ignored returns the path of one element of ignore_changes.
func (b *block) ignored(ref staticRef) (cty.Path, *hcl.Diagnostic) {
	refuse := func(format string, args ...any) (cty.Path, *hcl.Diagnostic) {
		return nil, failAt(ref.rng, "Invalid ignore_changes", format, args...)
	}
	name := ref.steps.RootName()
	path := cty.GetAttrPath(name)
	nested, isBlock := b.kind.Block(name)
	_, isAttr := b.kind.Attr(name)
	switch {
	case name == "all":
		return refuse("all stands alone: ignore_changes = all.")
	case !isAttr && !isBlock:
		return refuse("%s has no argument or block %q.%s", article(b.kind.Name), name, schema.DidYouMean(name, b.kind.Names()))
	case isAttr && len(ref.steps) > 1:
		return refuse("%s has no parts: ignore it as a whole.", name)
	case isAttr && b.kind.Identifies(name):
		return refuse("%s identifies the object, so nobody changes it: an object with another %s is another object.", name, name)
	case isAttr || len(ref.steps) == 1:
		return path, nil
	case !nested.Single:
		return refuse("Blocks %s have no order and no names, so one of them cannot be chosen: ignore %s as a whole.", name, name)
	}
	inner, _ := stepName(ref.steps, 1)
	known := attrNames(nested.Attrs)
	if inner == "" {
		return refuse("%s is a single block: write %s, or one of its arguments, as in %s.%s.", name, name, name, known[0])
	}
	if !slices.Contains(known, inner) {
		return refuse("The block %s has no argument %q.%s", name, inner, schema.DidYouMean(inner, known))
	}
	if len(ref.steps) > 2 {
		return refuse("%s.%s has no parts: ignore it as a whole.", name, inner)
	}
	return path.GetAttr(inner), nil
}

func attrNames(attrs []schema.Attr) []string {
	names := make([]string, 0, len(attrs))
	for _, a := range attrs {
		names = append(names, a.Name)
	}
	return names
}

// article puts "A" or "An" before a name.
func article(name string) string {
	if strings.ContainsRune("aeio", rune(name[0])) {
		return "An " + name
	}
	return "A " + name
}

func (b *block) decodeTriggers(attr *hcl.Attribute) hcl.Diagnostics {
	if b.kind.Holds != "" {
		return hcl.Diagnostics{failAt(attr.NameRange, "Invalid replace_triggered_by", "%s holds data, so it is never replaced. "+
			"Remove replace_triggered_by.", article(b.kind.Name))}
	}
	exprs, diags := hcl.ExprList(attr.Expr)
	for _, expr := range exprs {
		ref, more := readStatic(expr, wantObject)
		diags = append(diags, more...)
		if !more.HasErrors() {
			b.lifecycle.triggers = append(b.lifecycle.triggers, ref)
		}
	}
	return diags
}

// triggerUses lists the blocks that replace_triggered_by names, which come first, and what the keys
// refer to.
func (m *module) triggerUses(b *block) (blocks, keys []reference, diags hcl.Diagnostics) {
	for _, t := range b.lifecycle.triggers {
		more, problems := m.references(t.variables(), scope{each: b.forEach != nil})
		keys, diags = append(keys, more...), append(diags, problems...)
		if _, isKind := schema.Lookup(t.steps.RootName()); !isKind {
			diags = append(diags, failAt(t.rng, "Invalid replace_triggered_by",
				"It lists objects of this module or their arguments, as in pool.bi or pool.bi.memory."))
			continue
		}
		ref, problem := m.triggerUse(b, t)
		if problem != nil {
			diags = append(diags, problem)
		} else if ref.node != (node{}) {
			blocks = append(blocks, ref)
		}
	}
	return blocks, keys, diags
}

// triggerUse checks one trigger of b. The reference is empty when a broken file may declare the block.
func (m *module) triggerUse(b *block, t staticRef) (reference, *hcl.Diagnostic) {
	name, _ := stepName(t.steps, 1)
	at := node{t.steps.RootName(), name}
	target, declared := m.blockOf[at]
	switch {
	case name != "" && !declared && m.broken:
		return reference{}, nil
	case name != "" && !declared:
		return reference{}, m.nothingAt(at, t.rng)
	case target == b:
		return reference{}, failAt(t.rng, "Invalid replace_triggered_by", "%s is this block itself.", at)
	}
	ref, problem := m.reference(t.steps, scope{})
	if problem == nil {
		problem = target.checkTrigger(t)
	}
	return ref, problem
}

// part splits the steps of a reference to an object after the object.
func (r staticRef) part() hcl.Traversal {
	rest := r.steps[2:]
	if len(rest) > 0 {
		if _, index := rest[0].(hcl.TraverseIndex); index {
			return rest[1:]
		}
	}
	return rest
}

// checkTrigger looks at the part of b's objects that a trigger names.
func (b *block) checkTrigger(t staticRef) *hcl.Diagnostic {
	rest := t.part()
	if len(rest) == 0 {
		return nil
	}
	name, _ := stepName(rest, 0)
	attr, isAttr := b.kind.Attr(name)
	switch {
	case !slices.Contains(b.kind.Names(), name):
		return failAt(t.rng, "Invalid replace_triggered_by", "%s has no argument or block %q.%s",
			article(b.kind.Name), name, schema.DidYouMean(name, b.kind.Names()))
	case len(rest) > 1:
		return failAt(t.rng, "Invalid replace_triggered_by", "It goes by whole arguments and blocks: write %s.%s.", b.node, name)
	case isAttr && attr.Secret && attr.Version != "":
		return failAt(t.rng, "Invalid replace_triggered_by", "Changes of %s are seen by its version: write %s.%s.",
			name, b.node, attr.Version)
	}
	return nil
}

// setLifecycle fills in what the lifecycle block says of the instance.
func (inst *instance) setLifecycle(e *evaluation) {
	l := &inst.block.lifecycle
	out := schema.Lifecycle{IgnoreChanges: l.ignore, IgnoreAll: l.ignoreAll}
	if l.prevent != nil {
		out.PreventDestroy = inst.preventDestroy(e, l.prevent)
	}
	for _, t := range l.triggers {
		if trigger, ok := inst.trigger(e, t); ok {
			out.ReplaceTriggeredBy = append(out.ReplaceTriggeredBy, trigger)
		}
	}
	inst.object.Lifecycle = out
}

func (inst *instance) preventDestroy(e *evaluation, expr hcl.Expression) bool {
	v, diags := e.value(expr, inst.ctx)
	inst.diags = append(inst.diags, diags...)
	if diags.HasErrors() {
		return false
	}
	refuse := func(format string, args ...any) bool {
		d := failAt(expr.Range(), "Invalid prevent_destroy", format, args...)
		d.Expression, d.EvalContext = expr, inst.ctx
		inst.diags = append(inst.diags, d)
		return false
	}
	if ephemeral := failEphemeral(expr, inst.ctx, "prevent_destroy", v); ephemeral != nil {
		inst.diags = append(inst.diags, ephemeral...)
		return false
	}
	if containsSensitive(v) {
		return refuse("It is shown, and it is computed from a sensitive value. If it is no secret, use nonsensitive(...).")
	}
	v, _ = v.UnmarkDeep()
	v, err := convert.Convert(v, cty.Bool)
	switch {
	case err != nil:
		return refuse("It is true or false.")
	case !v.IsKnown() && e.clean():
		return refuse("It cannot be computed from this configuration.")
	case !v.IsKnown() || v.IsNull():
		return false
	}
	return v.True()
}

// trigger returns one element of replace_triggered_by for the instance. Its part has been checked.
func (inst *instance) trigger(e *evaluation, t staticRef) (schema.Trigger, bool) {
	if _, isKind := schema.Lookup(t.steps.RootName()); !isKind {
		return schema.Trigger{}, false
	}
	ref, known, diags := t.withKeys(e, inst.ctx)
	inst.diags = append(inst.diags, diags...)
	if !known {
		return schema.Trigger{}, false
	}
	a, _, diags := ref.address()
	inst.diags = append(inst.diags, diags...)
	if diags.HasErrors() {
		return schema.Trigger{}, false
	}
	if _, declared := e.module.blockOf[node{a.Kind, a.Name}]; !declared {
		return schema.Trigger{}, false
	}
	if problem := e.checkKey(a, ref.rng, false); problem != nil {
		inst.diags = append(inst.diags, problem)
		return schema.Trigger{}, false
	}
	name, _ := stepName(ref.part(), 0)
	return schema.Trigger{Address: a.In(e.path), Attr: name}, true
}

// checkKey looks at whether the objects of a declared block have the key of the address, or none; one
// asks for an address of a single object.
func (e *evaluation) checkKey(a schema.Address, rng hcl.Range, one bool) *hcl.Diagnostic {
	b := e.module.blockOf[node{a.Kind, a.Name}]
	switch {
	case a.Keyed && b.forEach == nil:
		return noKey(b.node, rng)
	case !a.Keyed && b.forEach != nil && one:
		return wantKey(b.node, rng)
	case !a.Keyed || e.values[b.node] == cty.DynamicVal:
		return nil
	}
	var keys []string
	for _, inst := range e.byBlock[b.node] {
		keys = append(keys, inst.key)
	}
	if slices.Contains(keys, a.Key) {
		return nil
	}
	return unknownKey(b.node, a.Key, keys, rng)
}

func unknownKey(n node, key string, keys []string, rng hcl.Range) *hcl.Diagnostic {
	return failAt(rng, "Unknown key", "The for_each of %s has no element %q.%s", n, key, schema.DidYouMean(key, keys))
}
