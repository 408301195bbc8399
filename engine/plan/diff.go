package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// diff is how a desired object differs from the stored one.
type diff struct {
	cells    []cell
	attrs    []Attr
	replaces []string // attributes whose change cannot be made in place
	secrets  []string
	drift    []Drift
	warnings []Problem
}

// cell is one attribute or block in its four forms.
type cell struct {
	field
	written, stored, last cty.Value // last: as it was applied
	next, applied         cty.Value // to be stored
	ignored               bool
}

// compare finds out how each desired object differs from the stored one.
func (b *builder) compare() {
	telling := make([]*diff, len(b.wanted))
	parallel.Do(len(b.wanted), enoughToShare, func(first, step int) {
		var room []cell
		for i := first; i < len(b.wanted); i += step {
			p := b.wanted[i]
			if p.have == nil {
				continue
			}
			d := b.diff(p, room)
			room = d.cells
			p.keepDiff(d)
			if len(d.drift) > 0 || len(d.warnings) > 0 {
				telling[i] = d
			}
		}
	})
	for i, d := range telling {
		if d == nil {
			continue
		}
		for _, drift := range d.drift {
			b.drift = append(b.drift, drifted{b.wanted[i], drift})
		}
		for _, warning := range d.warnings {
			b.problem(b.wanted[i], warning)
		}
	}
}

// keepDiff keeps the diff of an object that has to be written.
func (p *pair) keepDiff(d *diff) {
	protected := p.want.Lifecycle.PreventDestroy != p.have.Protected
	if len(d.attrs) > 0 || p.have.Address != p.at || p.imported() || protected {
		p.diff = d
		d.cells = slices.Clone(d.cells)
	}
}

// diff is the three-way comparison of one object. A written attribute takes the written value. One
// that was applied and is no longer written returns to its default. One that was never written is left
// alone. Sets and blocks belong wholly to the configuration. The cells of the result take up the room.
func (b *builder) diff(p *pair, room []cell) *diff {
	d := &diff{cells: room[:0]}
	for _, f := range b.of(p.kind) {
		d.cells = append(d.cells, cell{})
		c := &d.cells[len(d.cells)-1]
		*c = cell{field: f, written: b.written(p.id, p.want, f), stored: p.have.Spec.GetAttr(f.name)}
		c.last = b.last(p, *c)
		if c.written.IsNull() && c.stored.IsNull() && c.last.IsNull() { // as most of an object is
			c.next, c.applied = c.written, c.written
			continue
		}
		b.settle(p, c, d)
		b.cell(p, *c, d)
	}
	return d
}

// differing returns the diff of an object that has to be written, also where nothing differs.
func (b *builder) differing(p *pair) *diff {
	if p.diff == nil {
		p.diff = b.diff(p, nil)
	}
	return p.diff
}

// values returns what is to be stored.
func (d *diff) values() (spec, applied cty.Value) {
	specs, applies := make(map[string]cty.Value, len(d.cells)), make(map[string]cty.Value, len(d.cells))
	for _, c := range d.cells {
		specs[c.name], applies[c.name] = c.next, c.applied
	}
	return cty.ObjectVal(specs), cty.ObjectVal(applies)
}

// last is what was applied. What another stack applied says nothing about this one.
func (b *builder) last(p *pair, c cell) cty.Value {
	if p.have.Applied == cty.NilVal || p.imported() {
		return cty.NullVal(c.stored.Type())
	}
	return p.have.Applied.GetAttr(c.name)
}

// settle decides what is to be stored of an attribute, and notes drift.
func (b *builder) settle(p *pair, c *cell, d *diff) {
	last := c.last
	switch names, ignored := ignores(p.want.Lifecycle, c.field); {
	case ignored:
		c.ignored = true
		c.next = b.followed(p.have.Spec, p.holds).GetAttr(c.name)
		c.applied = c.last
		if p.have.Applied != cty.NilVal && !p.imported() {
			c.applied = b.followed(p.have.Applied, b.resolved(p.kind.Refs(p.have.Applied))).GetAttr(c.name)
		}
		return
	case len(names) > 0:
		last = Overlaid(c.last, c.stored, names)
		c.next, c.applied = Overlaid(c.written, c.stored, names), Overlaid(c.written, c.last, names)
	case c.key && folded(c.written, c.stored):
		c.next, c.applied = c.stored, c.last // names that differ in case only are the same
		if absent(c.last) {
			c.applied = c.stored
		}
		return
	default:
		c.next, c.applied = c.written, c.written
		if absent(c.written) && absent(c.last) && !c.whole && !b.asked() { // a request says the whole value
			c.next = c.stored
		}
	}
	if b.secretKept(p, *c, d) {
		c.next, c.applied = c.stored, c.last
	}
	if !p.imported() && drifts(p.have, c.field, last, c.stored) {
		d.drift = append(d.drift, Drift{Addr: p.was, Address: p.at, Attr: b.attr(p.want, c.field, last, c.stored)})
	}
}

// cell adds an attribute to the diff where it differs. A reference keeps the name of the configuration also
// where it means the same object as before: the target may be renamed in this very plan.
func (b *builder) cell(p *pair, c cell, d *diff) {
	if c.ignored {
		return
	}
	if b.same(p, c.field, c.next, c.stored) {
		if !b.same(p, c.field, c.applied, c.last) && !p.imported() {
			d.attrs = append(d.attrs, b.noted(p.want, c.field, c.stored, "already so, written here from now on"))
		}
		return
	}
	if c.hasDefault() && orDefault(c.next, c.field).RawEquals(orDefault(c.stored, c.field)) {
		d.attrs = append(d.attrs, b.noted(p.want, c.field, orDefault(c.next, c.field), "the default; only recorded"))
		return
	}
	attr := b.attr(p.want, c.field, c.stored, c.next)
	if versions(p.kind, c.name) && !rises(c.stored, c.next) {
		attr.Effect = schema.Row // no secret is read again
	}
	d.attrs = append(d.attrs, attr)
	if c.effect == schema.Replace {
		d.replaces = append(d.replaces, c.name)
	}
	if c.secret() && !absent(c.next) {
		d.secrets = append(d.secrets, c.name)
	}
}

// secretKept reports whether a secret stays as it is although another value is written, since its
// version did not rise. It warns then.
func (b *builder) secretKept(p *pair, c cell, d *diff) bool {
	if !c.secret() || c.attr.Version == "" || absent(c.next) || absent(c.stored) || equal(c.next, c.stored) {
		return false
	}
	version := c.attr.Version
	want, have := p.want.Value.GetAttr(version), p.have.Spec.GetAttr(version)
	if rises(have, want) {
		return false
	}
	warning := Problem{
		Warning: true, Address: p.at, Path: cty.GetAttrPath(c.name),
		Summary: c.name + " is not read again",
		Detail: "The " + c.name + " differs from the one that was applied, but " + version + " did not rise: the old one " +
			"stays in force. Raise " + version + " to change it.",
	}
	if !absent(c.last) && equal(c.next, c.last) {
		warning.Summary = c.name + " is not set back"
		warning.Detail = "Somebody else changed the " + c.name + " since it was applied, and " + version + " did not rise: the new " +
			"one stays in force. Raise " + version + " to have the one of the configuration read again."
	}
	d.warnings = append(d.warnings, warning)
	return true
}

// rises reports whether the version of a secret has it read again.
func rises(have, want cty.Value) bool {
	return !want.IsNull() && (have.IsNull() || want.GreaterThan(have).True())
}

// versions reports whether a secret is read again when the attribute rises.
func versions(k *schema.Kind, attr string) bool {
	return slices.ContainsFunc(k.Attrs, func(a schema.Attr) bool { return a.Version == attr })
}

// drifts reports whether somebody changed an attribute after it was applied.
func drifts(have *Actual, f field, last, stored cty.Value) bool {
	if have.Applied == cty.NilVal || absent(last) && !f.whole {
		return false
	}
	if absent(last) || absent(stored) {
		return !absent(last) || !absent(stored)
	}
	return !equal(last, stored) && !(f.key && folded(last, stored))
}

// same compares a value of the configuration with a stored one. References are equal when they mean
// the same object: a renamed target is no change of those that refer to it.
func (b *builder) same(p *pair, f field, next, stored cty.Value) bool {
	if absent(next) || absent(stored) {
		return absent(next) && absent(stored)
	}
	if f.attr == nil || f.attr.Ref == "" {
		return equal(next, stored)
	}
	literals := f.attr.Literals(next)
	if !slices.Equal(literals, f.attr.Literals(stored)) {
		return false
	}
	if sameTargets(p, f.name) {
		return true
	}
	wants := targets(p.wants, f.name)
	if len(wants)+len(literals) == 0 { // it refers to nothing
		return next.RawEquals(stored)
	}
	return slices.Equal(wants, targets(p.holds, f.name))
}

// sameTargets reports whether the references of an attribute mean the same objects in the same order, as they
// do where nothing has changed.
func sameTargets(p *pair, name string) bool {
	i, some := 0, false
	for _, want := range p.wants {
		if want.Attr != name || want.to == nil {
			continue
		}
		for i < len(p.holds) && (p.holds[i].Attr != name || p.holds[i].to == nil) {
			i++
		}
		if i == len(p.holds) || p.holds[i].to.id != want.to.id {
			return false
		}
		i, some = i+1, true
	}
	for ; i < len(p.holds); i++ {
		if p.holds[i].Attr == name && p.holds[i].to != nil {
			return false
		}
	}
	return some
}

// targets returns the ids of what an attribute refers to, sorted.
func targets(links []link, name string) []string {
	var ids []string
	for _, l := range links {
		if l.Attr == name && l.to != nil {
			ids = append(ids, l.to.id)
		}
	}
	if len(ids) > 1 {
		slices.Sort(ids)
	}
	return ids
}

// written returns an attribute as its author wrote it, and a secret as its fingerprint.
func (b *builder) written(id string, want *schema.Object, f field) cty.Value {
	v := want.Value.GetAttr(f.name)
	if !f.secret() || v.IsNull() {
		return v
	}
	return cty.StringVal(b.in.Fingerprint(id, f.name, v.AsString()))
}

func (b *builder) attr(o *schema.Object, f field, before, after cty.Value) Attr {
	attr := Attr{Name: f.name, Before: before, After: after, Effect: f.effect, Default: cty.NilVal}
	attr.Sensitive = f.secret() || slices.Contains(o.Sensitive, f.name) || slices.Contains(b.in.Sensitive[o.Address], f.name)
	if f.attr != nil {
		attr.Default = f.attr.Default
	}
	return attr
}

func (b *builder) noted(o *schema.Object, f field, v cty.Value, note string) Attr {
	attr := b.attr(o, f, v, v)
	attr.Effect, attr.Note = schema.Row, note
	return attr
}

func orDefault(v cty.Value, f field) cty.Value {
	if v.IsNull() {
		return f.attr.Default
	}
	return v
}

// folded reports whether two strings differ in case only.
func folded(a, b cty.Value) bool {
	return a.Type() == cty.String && !a.IsNull() && !b.IsNull() && a.AsString() != b.AsString() &&
		schema.Fold(a.AsString()) == schema.Fold(b.AsString())
}

// equal compares two values that are not null. RawEquals is slow, and nearly all values are text.
func equal(a, b cty.Value) bool {
	if a.Type() == cty.String && b.Type() == cty.String {
		return a.AsString() == b.AsString()
	}
	return a.RawEquals(b)
}

// absent reports whether nothing is written: a null, or a set without elements.
func absent(v cty.Value) bool {
	return v == cty.NilVal || v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0
}
