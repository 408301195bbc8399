package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/schema"
)

func (inst *instance) fail(rng hcl.Range, summary, format string, args ...any) {
	inst.diags = append(inst.diags, failAt(rng, summary, format, args...))
}

// failAttr reports an error about an argument, with the values its expression refers to.
func (inst *instance) failAttr(name, summary, format string, args ...any) {
	d := failAt(inst.attrRange(name), summary, format, args...)
	if attr, ok := inst.block.attrs[name]; ok {
		d.Expression, d.EvalContext = attr.Expr, inst.ctx
	}
	inst.diags = append(inst.diags, d)
}

// evaluate sets the object's value and returns the one with defaults in place, or NilVal when
// something is wrong.
func (inst *instance) evaluate(e *evaluation) cty.Value {
	kind := inst.block.kind
	inst.expandDynamic()
	written, diags := inst.decode()
	if len(diags) > 0 {
		inst.diags = guard(addHints(diags), e.files, inst.ctx, inst.expressions()...)
	}
	if inst.diags.HasErrors() {
		return cty.NilVal
	}
	inst.marks = objectMarks(written)
	r := &resolver{inst: inst, evaluation: e}
	attrs := maps.Clone(inst.block.form.nulls)
	for i := range kind.Attrs {
		if v, ok := written[kind.Attrs[i].Name]; ok {
			attrs[kind.Attrs[i].Name] = inst.attribute(r, &kind.Attrs[i], v)
		}
	}
	for i := range kind.Blocks {
		if v, ok := written[kind.Blocks[i].Name]; ok {
			attrs[kind.Blocks[i].Name] = inst.nested(&kind.Blocks[i], v)
		}
	}
	if inst.diags.HasErrors() {
		return cty.NilVal
	}
	r.imply(attrs)
	inst.nameByDefault(attrs)
	inst.refuseSensitiveKey()
	value := cty.ObjectVal(attrs)
	if !allKnown(attrs) {
		inst.checkKnown(value)
		inst.failUnknown(e, value)
		return cty.NilVal
	}
	complete, problems := kind.CompleteMap(attrs)
	for _, p := range problems {
		inst.reportProblem(value, p)
	}
	if inst.diags.HasErrors() {
		return cty.NilVal
	}
	inst.object.Value = kind.Shared(value)
	inst.object.Sensitive = inst.sensitiveNames()
	return complete
}

func allKnown(values map[string]cty.Value) bool {
	for _, v := range values {
		if !v.IsWhollyKnown() {
			return false
		}
	}
	return true
}

// expressions lists the expressions of the block, in nested blocks too.
func (inst *instance) expressions() []hcl.Expression {
	out := inst.block.dynamicExpressions()
	for _, attr := range inst.block.attrs {
		out = append(out, attr.Expr)
	}
	for _, nested := range inst.blocks {
		for _, attr := range inst.arguments(nested) {
			out = append(out, attr.Expr)
		}
	}
	return out
}

// note remembers that an attribute or block holds a sensitive or ephemeral value.
func (inst *instance) note(name string, v cty.Value) {
	if !containsSensitive(v) {
		return
	}
	inst.secret[name] = true
	if marks := ephemeralMarks(v); len(marks) > 0 {
		if inst.ephemeral == nil {
			inst.ephemeral = map[string]cty.ValueMarks{}
		}
		inst.ephemeral[name] = marks
	}
}

// attribute returns the value of an attribute in its type and without marks; references become names.
func (inst *instance) attribute(r *resolver, a *schema.Attr, v cty.Value) cty.Value {
	if a.Ref != "" {
		return r.resolve(a, v)
	}
	inst.note(a.Name, v)
	if !a.Secret {
		inst.refuseEphemeral(a.Name, inst.ephemeral[a.Name])
	}
	v, _ = v.UnmarkDeep()
	return v
}

// nested returns the value of a nested block or set of blocks; null when none is written.
func (inst *instance) nested(b *schema.Block, v cty.Value) cty.Value {
	inst.note(b.Name, v)
	inst.refuseEphemeral(b.Name, inst.ephemeral[b.Name])
	v, _ = v.UnmarkDeep()
	want := inst.block.form.typ.AttributeType(b.Name)
	written := slices.ContainsFunc(inst.blocks, func(s *hcl.Block) bool { return s.Type == b.Name })
	if !written {
		return cty.NullVal(want)
	}
	v, err := convert.Convert(v, want)
	if err != nil {
		inst.fail(inst.header(), "Invalid "+b.Name, "%s.", err.Error())
	}
	return v
}

// nameByDefault takes the block's label, or for_each's key, where no name is written.
func (inst *instance) nameByDefault(attrs map[string]cty.Value) {
	if v, ok := attrs["name"]; !ok || !v.IsNull() {
		return
	}
	attrs["name"] = cty.StringVal(inst.defaultName())
}

func (inst *instance) defaultName() string {
	if inst.block.forEach != nil {
		return inst.key
	}
	return inst.block.node.name
}

// refuseSensitiveKey keeps secrets out of addresses.
func (inst *instance) refuseSensitiveKey() {
	for name := range inst.secret {
		if a, ok := inst.block.kind.Attr(name); ok && (name == "name" || a.Ref != "") {
			inst.failAttr(a.Name, "Sensitive "+a.Name, "%s is computed from a sensitive value, and names of "+
				"objects are shown. If it is no secret, use nonsensitive(...).", a.Name)
		}
	}
}

// checkKnown reports what is wrong with the arguments that could be computed, where others could not.
func (inst *instance) checkKnown(value cty.Value) {
	attrs := value.AsValueMap()
	for name, v := range attrs {
		if !v.IsWhollyKnown() {
			attrs[name] = cty.NullVal(v.Type())
		}
	}
	known := cty.ObjectVal(attrs)
	_, problems := inst.block.kind.Complete(known)
	for _, p := range problems {
		if len(p.Path) == 0 {
			continue
		}
		if step, ok := p.Path[0].(cty.GetAttrStep); ok && !attrs[step.Name].IsNull() {
			inst.reportProblem(known, p)
		}
	}
}

// failUnknown reports a value that could not be computed, unless that follows from an error reported
// before.
func (inst *instance) failUnknown(e *evaluation, value cty.Value) {
	if e.diags.HasErrors() || e.module.config.failed || inst.diags.HasErrors() {
		return
	}
	for name, v := range value.AsValueMap() {
		if !v.IsWhollyKnown() {
			inst.failAttr(name, "Value not known",
				"The value of %s cannot be computed from this configuration.", name)
		}
	}
}

func (inst *instance) sensitiveNames() []string {
	if len(inst.secret) == 0 {
		return nil
	}
	var names []string
	for _, name := range inst.block.kind.Names() {
		a, ok := inst.block.kind.Attr(name)
		if inst.secret[name] && (!ok || !a.Secret) {
			names = append(names, name)
		}
	}
	return names
}

// reportProblem places a problem that the kind found.
func (inst *instance) reportProblem(value cty.Value, p schema.Problem) {
	name := ""
	if len(p.Path) > 0 {
		if step, ok := p.Path[0].(cty.GetAttrStep); ok {
			name = step.Name
		}
	}
	message := p.Message
	if inst.secret[name] || inst.quotesHidden(value, message) {
		message = fmt.Sprintf("The value of %s is not a valid one. %s", name, withheld)
	}
	message = inst.sentence(message)
	_, written := inst.block.attrs[name]
	switch {
	case written:
		inst.failAttr(name, "Invalid "+name, "%s", message)
	case name == "name":
		inst.fail(inst.keyRange(), "Invalid name", "%s The name is %s unless name = \"...\" says otherwise.",
			message, inst.nameSource())
	case name == "tenant" && value.GetAttr(name).IsNull():
		inst.fail(inst.header(), "Missing tenant", "%s Write tenant = tenant.LABEL, or give one of the other "+
			"references as an object, which implies it.", message)
	default:
		inst.fail(inst.rangeOf(value, p.Path), "Invalid "+inst.block.kind.Name, "%s", message)
	}
}

// quotesHidden reports whether a message repeats a value that must not be shown.
func (inst *instance) quotesHidden(value cty.Value, message string) bool {
	for name, v := range value.AsValueMap() {
		if !inst.hides(name) || v.IsNull() || v.Type() != cty.String {
			continue
		}
		if text := v.AsString(); text != "" && strings.Contains(message, text) {
			return true
		}
	}
	return false
}

func (inst *instance) nameSource() string {
	if inst.block.forEach != nil {
		return "the key of for_each"
	}
	return "the label"
}

// sentence gives a message a full stop, and a capital unless it starts with the name of an argument.
func (inst *instance) sentence(message string) string {
	if message == "" {
		return message
	}
	first, _, _ := strings.Cut(message, " ")
	if !slices.Contains(inst.argumentNames(), first) {
		message = strings.ToUpper(message[:1]) + message[1:]
	}
	if last := message[len(message)-1]; last != '.' && last != '?' {
		message += "."
	}
	return message
}

func (inst *instance) argumentNames() []string {
	names := inst.block.kind.Names()
	for _, b := range inst.block.kind.Blocks {
		for _, a := range b.Attrs {
			names = append(names, a.Name)
		}
	}
	return names
}
