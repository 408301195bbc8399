package config

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// instance is one object of a block.
type instance struct {
	evaluation *evaluation
	block      *block
	key        string // of for_each
	object     schema.Object
	marks      []objectMark // the objects its value was computed from
	ctx        *hcl.EvalContext
	// body and blocks are those of the block, with dynamic blocks expanded.
	body   hcl.Body
	blocks hcl.Blocks
	// secret lists attributes and blocks that hold a sensitive value.
	secret map[string]bool
	// ephemeral has the marks of what comes from ephemeral variables. It may be nil.
	ephemeral map[string]cty.ValueMarks
	// shown is the value that others see, and plain the same without marks; NilVal when something is wrong.
	shown, plain cty.Value
	addr         schema.Addr
	diags        hcl.Diagnostics
}

// instanceNote is the Extra of diagnostics about one instance of a block with for_each.
type instanceNote struct {
	address string
	wrapped any
}

// UnwrapDiagnosticExtra gives way to what HCL itself noted.
func (n instanceNote) UnwrapDiagnosticExtra() any { return n.wrapped }

// objectsAtOnce is how many objects are worth a processor of their own.
const objectsAtOnce = 16

// independent returns how many of the nodes, from the first one on, are blocks that do not refer to each other.
func (e *evaluation) independent(nodes []node) int {
	among := map[node]bool{}
	for i, n := range nodes {
		_, isBlock := e.module.blockOf[n]
		refers := func(ref reference) bool { return among[ref.node] }
		if !isBlock || slices.ContainsFunc(e.uses[n], refers) || slices.ContainsFunc(e.dependsOn[n], refers) {
			return i
		}
		among[n] = true
	}
	return len(nodes)
}

// evaluateBlocks evaluates the objects of blocks that do not refer to each other, and leaves their values for
// others to refer to. What is told of them is told in their order.
func (e *evaluation) evaluateBlocks(nodes []node) {
	var instances []*instance
	for _, n := range nodes {
		instances = append(instances, e.declare(e.module.blockOf[n])...)
	}
	parallel.Each(len(instances), objectsAtOnce, func(i int) {
		instances[i].finish()
	})
	for _, inst := range instances {
		e.report(inst.noted())
		if inst.shown != cty.NilVal {
			e.objects = append(e.objects, inst)
		}
	}
	for _, n := range nodes {
		e.values[n] = e.blockValue(e.module.blockOf[n])
	}
}

// declare makes the instances of a block, which are to be evaluated.
func (e *evaluation) declare(b *block) []*instance {
	ctx := e.context(e.uses[b.node])
	if b.forEach == nil {
		return []*instance{e.newInstance(b, "", ctx)}
	}
	items, diags := e.expand(b.forEach, ctx)
	e.report(diags)
	if items == nil {
		return nil
	}
	e.byBlock[b.node] = make([]*instance, 0, len(items))
	for _, key := range slices.Sorted(maps.Keys(items)) {
		e.newInstance(b, key, e.each(ctx, b.node, key, items[key]))
	}
	return e.byBlock[b.node]
}

func (e *evaluation) newInstance(b *block, key string, ctx *hcl.EvalContext) *instance {
	inst := &instance{evaluation: e, block: b, key: key, ctx: ctx, secret: map[string]bool{}}
	inst.object = schema.Object{Kind: b.kind, Address: e.address(b, key, b.forEach != nil)}
	e.instances[inst.object.Address] = inst
	e.byBlock[b.node] = append(e.byBlock[b.node], inst)
	return inst
}

// blockValue is what others see of a block that was evaluated: unknown where something is wrong.
func (e *evaluation) blockValue(b *block) cty.Value {
	instances, expanded := e.byBlock[b.node]
	switch {
	case b.forEach == nil:
		return instances[0].value()
	case !expanded:
		return cty.DynamicVal
	}
	values := make(map[string]cty.Value, len(instances))
	for _, inst := range instances {
		values[inst.key] = inst.value()
	}
	return cty.ObjectVal(values)
}

// each returns what the expressions of one instance of n see.
func (e *evaluation) each(ctx *hcl.EvalContext, n node, key string, value cty.Value) *hcl.EvalContext {
	child := ctx.NewChild()
	child.Functions = e.functions
	each := map[string]cty.Value{"key": cty.StringVal(key), "value": value}
	for _, ref := range e.uses[n] {
		if ref.node.root == "each" {
			each[ref.node.name] = cty.DynamicVal
		}
	}
	child.Variables = map[string]cty.Value{"each": cty.ObjectVal(each)}
	return child
}

// address is that of an instance, or without a key of the block as a whole.
func (e *evaluation) address(b *block, key string, keyed bool) string {
	return e.prefix + b.kind.Name + "." + schema.Step{Name: b.node.name, Key: key, Keyed: keyed}.String()
}

// expand returns the elements of for_each by key, or nil when there is no good answer.
func (e *evaluation) expand(forEach hcl.Expression, ctx *hcl.EvalContext) (map[string]cty.Value, hcl.Diagnostics) {
	value, diags := e.value(forEach, ctx)
	if diags.HasErrors() {
		return nil, diags
	}
	refuse := func(format string, args ...any) (map[string]cty.Value, hcl.Diagnostics) {
		d := failAt(forEach.Range(), "Invalid for_each", format, args...)
		d.Expression, d.EvalContext = forEach, ctx
		return nil, append(diags, d)
	}
	ephemeral := ephemeralSelf(value)
	if value.Type().IsSetType() {
		ephemeral = ephemeralNames(value)
	}
	value, marks := value.Unmark()
	_, secret := marks[sensitiveMark{}]
	t := value.Type()
	switch {
	case len(ephemeral) > 0:
		return refuse("%s", ephemeralDetail("It", ephemeral, nil))
	case secret || t.IsSetType() && containsSensitive(value):
		return refuse("Its keys become part of addresses, which are shown, and they are computed from a sensitive value. " +
			"If the keys themselves are no secret, use nonsensitive(...).")
	case value.IsNull():
		return refuse("It is null; for no objects, use an empty set: toset([]).")
	case !value.IsKnown() || t.IsSetType() && !value.IsWhollyKnown():
		return nil, diags
	case t.IsTupleType() || t.IsListType():
		return refuse("It is a list, whose elements have no keys of their own. For a set of strings, use toset(...).")
	case !t.IsSetType() && !t.IsMapType() && !t.IsObjectType():
		return refuse("It takes a set of strings, a map or an object, and this is a %s.", t.FriendlyName())
	case t.IsSetType() && value.LengthInt() > 0 && t.ElementType() != cty.String:
		return refuse("It takes a set of strings, and this is a set of %s.", t.ElementType().FriendlyName())
	}
	delete(marks, sensitiveMark{})
	items := map[string]cty.Value{}
	for it := value.ElementIterator(); it.Next(); {
		key, item := it.Element()
		key, _ = key.Unmark()
		if key.IsNull() {
			return refuse("The set holds a null.")
		}
		items[key.AsString()] = item.WithMarks(marks)
	}
	return items, diags
}

// finish decodes the object. It changes nothing but the instance.
func (inst *instance) finish() {
	e := inst.evaluation
	complete := inst.evaluate(e)
	inst.setLifecycle(e)
	if complete != cty.NilVal {
		inst.addr = inst.block.kind.Addr(inst.object.Value)
		inst.plain, inst.shown = complete, inst.visible(complete)
	}
}

// value is the object for others to refer to: an unknown one when something is wrong with it.
func (inst *instance) value() cty.Value {
	b, e := inst.block, inst.evaluation
	if inst.shown == cty.NilVal {
		return cty.UnknownVal(b.form.typ)
	}
	return inst.shown.Mark(objectMark{b.kind.Name, e.address(b, "", false), inst.object.Address})
}

// noted returns the instance's diagnostics; those of one of many, or in a module, say which.
func (inst *instance) noted() hcl.Diagnostics {
	if inst.block.forEach == nil && inst.evaluation.parent == nil {
		return inst.diags
	}
	for _, d := range inst.diags {
		d.Extra = instanceNote{inst.object.Address, d.Extra}
	}
	return inst.diags
}

// visible is the value that others see: with defaults, and with marks on what must not be shown.
func (inst *instance) visible(complete cty.Value) cty.Value {
	if len(inst.block.form.secret) == 0 && len(inst.secret) == 0 {
		return complete
	}
	attrs := complete.AsValueMap()
	for _, name := range inst.block.form.secret {
		attrs[name] = attrs[name].Mark(sensitiveMark{}).WithMarks(inst.ephemeral[name])
	}
	for name := range inst.secret {
		attrs[name] = attrs[name].Mark(sensitiveMark{})
	}
	return inst.block.kind.Shared(cty.ObjectVal(attrs))
}

// hides reports whether the value of the attribute or block must not be shown.
func (inst *instance) hides(name string) bool {
	return inst.secret[name] || slices.Contains(inst.block.form.secret, name)
}
