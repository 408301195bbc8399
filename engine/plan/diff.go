package plan

import (
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

type diff struct {
	changed       bool
	spec, applied cty.Value
	attrs         []Attr
	drift         []Drift
	replaces      []string // attributes whose change cannot be made in place
	secrets       []string
}

// diff is the three-way comparison of one object. A written attribute takes the written value. One
// that was applied and is no longer written returns to its default. One that was never written is left
// alone. Sets and blocks belong wholly to the configuration.
func (b *builder) diff(id string, want *schema.Object, have *Actual) diff {
	d := diff{}
	concealed, _ := b.conceal(id, want)
	spec, applied := map[string]cty.Value{}, map[string]cty.Value{}
	for _, name := range want.Kind.Names() {
		written, stored := concealed.GetAttr(name), have.Spec.GetAttr(name)
		last := cty.NullVal(written.Type())
		if have.Applied != cty.NilVal {
			last = have.Applied.GetAttr(name)
		}
		b.addDrift(&d, want, name, last, stored, have)
		next := stored
		if !absent(written) || !absent(last) || whole(want.Kind, name) {
			next = written
		}
		if b.secretKept(want, name, have, written, stored) {
			next, written = stored, last
		}
		// A reference keeps the name of the configuration also where it means the same object as before:
		// the target may be renamed in this very plan.
		spec[name], applied[name] = next, written
		if b.same(want, have, name, next, stored) {
			if !b.same(want, have, name, written, last) {
				d.changed = true
				d.attrs = append(d.attrs, b.noted(want, name, stored, "already so, written here from now on"))
			}
			continue
		}
		d.changed = true
		if a, ok := want.Kind.Attr(name); ok && a.Default != cty.NilVal && orDefault(next, a).RawEquals(orDefault(stored, a)) {
			d.attrs = append(d.attrs, b.noted(want, name, orDefault(next, a), "the default; only recorded"))
			continue
		}
		d.attrs = append(d.attrs, b.attr(want, name, stored, next))
		if want.Kind.EffectOf(name) == schema.Replace {
			d.replaces = append(d.replaces, name)
		}
		if a, ok := want.Kind.Attr(name); ok && a.Secret && !absent(next) {
			d.secrets = append(d.secrets, name)
		}
	}
	if have.Address != want.Address || have.Stack != b.in.Stack {
		d.changed = true
	}
	d.spec, d.applied = cty.ObjectVal(spec), cty.ObjectVal(applied)
	return d
}

// secretKept reports whether a secret stays as it is although another value is written, since its
// version did not rise. It warns then.
func (b *builder) secretKept(want *schema.Object, name string, have *Actual, written, stored cty.Value) bool {
	a, ok := want.Kind.Attr(name)
	if !ok || !a.Secret || a.Version == "" || absent(written) || absent(stored) || written.RawEquals(stored) {
		return false
	}
	wantVersion, haveVersion := want.Value.GetAttr(a.Version), have.Spec.GetAttr(a.Version)
	if !wantVersion.IsNull() && (haveVersion.IsNull() || wantVersion.GreaterThan(haveVersion).True()) {
		return false
	}
	b.plan.Problems = append(b.plan.Problems, Problem{
		Warning: true, Address: want.Address, Path: cty.GetAttrPath(name),
		Summary: name + " is not read again",
		Detail:  "The " + name + " differs from the one that was applied, but " + a.Version + " did not rise: the old one stays in force. Raise " + a.Version + " to change it.",
	})
	return true
}

func (b *builder) addDrift(d *diff, want *schema.Object, name string, last, stored cty.Value, have *Actual) {
	if have.Applied == cty.NilVal || absent(last) && !whole(want.Kind, name) || sameStored(last, stored) {
		return
	}
	d.drift = append(d.drift, Drift{Addr: have.Addr(), Address: want.Address, Attr: b.attr(want, name, last, stored)})
}

// same compares a value of the configuration with a stored one. References are equal when they mean
// the same object: a renamed target is no change of those that refer to it.
func (b *builder) same(want *schema.Object, have *Actual, name string, next, stored cty.Value) bool {
	if absent(next) || absent(stored) {
		return absent(next) && absent(stored)
	}
	a, ok := want.Kind.Attr(name)
	if !ok || a.Ref == "" {
		return next.RawEquals(stored)
	}
	targets := b.desiredTargets(want, name)
	if len(targets) == 0 { // only literals, such as "*"
		return next.RawEquals(stored)
	}
	return slices.Equal(targets, b.storedTargets(have, name))
}

func sameStored(last, stored cty.Value) bool {
	if absent(last) || absent(stored) {
		return absent(last) && absent(stored)
	}
	return last.RawEquals(stored)
}

// desiredTargets returns the ids of what an attribute of a desired object refers to, sorted.
func (b *builder) desiredTargets(o *schema.Object, name string) []string {
	var ids []string
	for _, ref := range o.Kind.Refs(o.Value) {
		if ref.Attr != name {
			continue
		}
		if address, ok := b.desired[ref.To]; ok {
			ids = append(ids, b.ids[address])
		} else if a := b.byAddr[ref.To]; a != nil {
			ids = append(ids, a.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

func (b *builder) storedTargets(a *Actual, name string) []string {
	var ids []string
	for _, ref := range a.Kind.Refs(a.Spec) {
		if target := b.byAddr[ref.To]; ref.Attr == name && target != nil {
			ids = append(ids, target.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// conceal replaces secrets by their fingerprints and names the secrets that have a value.
func (b *builder) conceal(id string, want *schema.Object) (cty.Value, []string) {
	attrs := want.Value.AsValueMap()
	var secrets []string
	for _, a := range want.Kind.Attrs {
		if !a.Secret || attrs[a.Name].IsNull() {
			continue
		}
		attrs[a.Name] = cty.StringVal(b.in.Fingerprint(id, a.Name, attrs[a.Name].AsString()))
		secrets = append(secrets, a.Name)
	}
	return cty.ObjectVal(attrs), secrets
}

func (b *builder) attr(o *schema.Object, name string, before, after cty.Value) Attr {
	attr := Attr{Name: name, Before: before, After: after, Effect: o.Kind.EffectOf(name), Default: cty.NilVal}
	attr.Sensitive = slices.Contains(o.Sensitive, name) || slices.Contains(b.in.Sensitive[o.Address], name)
	if a, ok := o.Kind.Attr(name); ok {
		attr.Default = a.Default
		attr.Sensitive = attr.Sensitive || a.Secret
	}
	return attr
}

func orDefault(v cty.Value, a *schema.Attr) cty.Value {
	if v.IsNull() {
		return a.Default
	}
	return v
}

func (b *builder) noted(o *schema.Object, name string, v cty.Value, note string) Attr {
	attr := b.attr(o, name, v, v)
	attr.Effect, attr.Note = schema.Row, note
	return attr
}

// whole reports whether the configuration owns the attribute even where it does not write it.
func whole(k *schema.Kind, name string) bool {
	a, ok := k.Attr(name)
	return !ok || a.Set()
}

// absent reports whether nothing is written: a null, or a set without elements.
func absent(v cty.Value) bool {
	return v == cty.NilVal || v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0
}
