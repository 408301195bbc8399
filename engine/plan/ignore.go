package plan

import (
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// ignores says what of an attribute or block others may change: all of it, or the named attributes of a
// single block.
func ignores(l schema.Lifecycle, f field) (names []string, all bool) {
	if l.IgnoreAll {
		return nil, true
	}
	if len(l.IgnoreChanges) == 0 {
		return nil, false
	}
	for _, path := range l.IgnoreChanges {
		step, ok := stepName(path, 0)
		if !ok || step != f.name {
			continue
		}
		inner, ok := stepName(path, 1)
		if !ok || !f.single {
			return nil, true
		}
		names = append(names, inner)
	}
	return names, false
}

func stepName(path cty.Path, i int) (string, bool) {
	if i >= len(path) {
		return "", false
	}
	switch step := path[i].(type) {
	case cty.GetAttrStep:
		return step.Name, true
	case cty.IndexStep:
		if step.Key.Type() == cty.String {
			return step.Key.AsString(), true
		}
	}
	return "", false
}

// Overlaid returns a single block with the named attributes of another. A block in which nothing is left
// is none. Either may be null.
func Overlaid(base, over cty.Value, names []string) cty.Value {
	if base.IsNull() && over.IsNull() {
		return base
	}
	attrs := map[string]cty.Value{}
	for name, t := range base.Type().AttributeTypes() {
		attrs[name] = cty.NullVal(t)
		if !base.IsNull() {
			attrs[name] = base.GetAttr(name)
		}
	}
	empty := base.IsNull()
	for _, name := range names {
		if _, ok := attrs[name]; !ok {
			continue
		}
		attrs[name] = cty.NullVal(attrs[name].Type())
		if !over.IsNull() {
			attrs[name] = over.GetAttr(name)
		}
		empty = empty && attrs[name].IsNull()
	}
	if empty {
		return base
	}
	return cty.ObjectVal(attrs)
}

// keepNames gives objects whose name is ignored the stored one, also where others refer to them, and
// notes whether any object is renamed.
func (b *builder) keepNames() {
	kept := map[schema.Addr]string{}
	for _, p := range b.wanted {
		if p.have == nil || p.addr == p.was {
			continue
		}
		want, have := p.kind.NameOf(p.want.Value), p.kind.NameOf(p.have.Spec)
		if want == have || schema.Fold(want) == schema.Fold(have) {
			continue
		}
		if _, ignored := ignores(p.want.Lifecycle, field{name: p.kind.Key[len(p.kind.Key)-1]}); ignored {
			kept[p.addr] = have
		}
		b.renames = true
	}
	if len(kept) == 0 {
		return
	}
	for _, p := range b.wanted {
		b.rename(p, kept)
	}
}

// rename writes the kept names into a desired object. It becomes a copy: the input stays as it is.
func (b *builder) rename(p *pair, kept map[schema.Addr]string) {
	var links []link
	for _, ref := range p.kind.Refs(p.want.Value) {
		if kept[ref.To] != "" {
			links = append(links, link{ref, &pair{addr: ref.To}})
		}
	}
	v := rewritten(p.want.Value, links, func(to *pair) string { return kept[to.addr] })
	if own := kept[p.addr]; own != "" {
		attrs := v.AsValueMap()
		attrs[p.kind.Key[len(p.kind.Key)-1]] = cty.StringVal(own)
		v = cty.ObjectVal(attrs)
	}
	if v.RawEquals(p.want.Value) {
		return
	}
	want := *p.want
	want.Value = v
	p.want, p.addr = &want, p.kind.Addr(v)
	b.wantAddr[p.addr] = p
}

// followed returns a stored value in which references have the names that the plan gives their targets.
func (b *builder) followed(spec cty.Value, holds []link) cty.Value {
	if !b.renames {
		return spec
	}
	return rewritten(spec, holds, func(to *pair) string {
		if to.want == nil || to.have == nil {
			return ""
		}
		return to.kind.NameOf(to.want.Value)
	})
}
