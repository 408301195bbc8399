package plan

import "github.com/zclconf/go-cty/cty"

// refresh takes what others changed as applied, and plans nothing else. What the configuration ignores is
// no drift.
func (b *builder) refresh() {
	for _, p := range b.all() {
		if p.have == nil || !p.own || p.imported() || p.have.Applied == cty.NilVal {
			continue
		}
		b.take(p)
	}
}

func (b *builder) take(p *pair) {
	object := p.object()
	applied := map[string]cty.Value{}
	var attrs []Attr
	for _, f := range b.of(p.kind) {
		stored, last := p.have.Spec.GetAttr(f.name), p.have.Applied.GetAttr(f.name)
		applied[f.name] = last
		names, all := ignores(object.Lifecycle, f)
		if all {
			continue
		}
		base := last
		if len(names) > 0 {
			base = Overlaid(last, stored, names)
		}
		if !drifts(p.have, f, base, stored) {
			continue
		}
		applied[f.name] = stored
		attr := b.attr(&object, f, base, stored)
		b.drift = append(b.drift, drifted{p, Drift{Addr: p.was, Address: p.at, Attr: attr}})
		attr.Note = "taken as applied"
		attrs = append(attrs, attr)
	}
	if len(attrs) == 0 {
		return
	}
	a := p.have
	p.change = &Change{
		Action: Update, ID: a.ID, Kind: a.Kind, Address: a.Address, Addr: p.was, Saw: a.Revision,
		Spec: a.Spec, Applied: cty.ObjectVal(applied), Attrs: attrs, Protected: a.Protected, WasProtected: a.Protected,
	}
}
