package plan

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// decide makes the change of each desired object.
func (b *builder) decide() {
	for _, p := range b.wanted {
		switch {
		case p.have == nil:
			p.change = b.create(p.id, p)
		case p.reason != "":
			b.replace(p)
		case p.diff != nil:
			p.change = b.update(p)
		}
	}
}

func (b *builder) create(id string, p *pair) *Change {
	spec, secrets := b.fresh(id, p)
	c := &Change{
		Action: Create, ID: id, Kind: p.kind, Address: p.at, Addr: p.kind.Addr(spec),
		Spec: spec, Applied: spec, Secrets: secrets, Protected: p.want.Lifecycle.PreventDestroy,
	}
	for _, f := range b.of(p.kind) {
		after := spec.GetAttr(f.name)
		if !absent(after) {
			c.Attrs = append(c.Attrs, b.attr(p.want, f, cty.NullVal(after.Type()), after))
		}
	}
	return c
}

// fresh is what a new object stores, with the secrets that have a value. A replacement keeps what is
// ignored, but for secrets: nobody can read them.
func (b *builder) fresh(id string, p *pair) (cty.Value, []string) {
	attrs := map[string]cty.Value{}
	var secrets []string
	for _, f := range b.of(p.kind) {
		v := b.written(id, p.want, f)
		if p.have != nil && !f.secret() {
			stored := b.followed(p.have.Spec, p.holds).GetAttr(f.name)
			if names, all := ignores(p.want.Lifecycle, f); all {
				v = stored
			} else if len(names) > 0 {
				v = Overlaid(v, stored, names)
			}
		}
		if f.secret() && !v.IsNull() {
			secrets = append(secrets, f.name)
		}
		attrs[f.name] = v
	}
	if p.have == nil && len(secrets) == 0 {
		return p.want.Value, nil // as it is written: thousands of copies would take their memory
	}
	return cty.ObjectVal(attrs), secrets
}

func (b *builder) replace(p *pair) {
	c := b.create(b.in.NewID(), p)
	c.Action, c.NewID, c.ID, c.Saw = Replace, c.ID, p.have.ID, p.have.Revision
	c.Attrs, c.Reason, c.Detail = p.diff.attrs, p.reason, p.detail
	c.WasProtected = p.have.Protected
	b.was(c, p)
	p.change = c
	if c.WasProtected || c.Protected {
		detail := fmt.Sprintf("%s has prevent_destroy = true, and this plan would destroy it and make it anew (%s). "+
			"To allow it, set prevent_destroy = false, apply that, and then plan again.", p.at, p.detail)
		if b.asked() {
			detail = fmt.Sprintf("This would destroy it and make it anew (%s). %s", p.detail, putFirst("protected", false))
		}
		b.problem(p, Problem{
			Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s is protected and may not be replaced", p.was), Detail: detail,
		})
	}
}

func (b *builder) update(p *pair) *Change {
	spec, applied := p.diff.values()
	c := &Change{
		Action: Update, ID: p.id, Kind: p.kind, Address: p.at, Addr: p.kind.Addr(spec), Saw: p.have.Revision,
		Spec: spec, Applied: applied, Attrs: p.diff.attrs, Secrets: p.diff.secrets,
		Protected: p.want.Lifecycle.PreventDestroy, WasProtected: p.have.Protected,
	}
	if p.imported() {
		c.Import, c.From = true, p.have.Stack
	}
	b.was(c, p)
	return c
}

// was notes the name and the block that an object had.
func (b *builder) was(c *Change, p *pair) {
	if was := p.was; was != c.Addr && (c.Action == Replace || p.kind.NameOf(c.Spec) != p.kind.NameOf(p.have.Spec)) {
		c.Was = was
	}
	if p.have.Address != p.at && !p.imported() {
		c.Moved = p.have.Address
	}
}

// leaveRest plans the end of what the stack owns and the configuration no longer has: it is destroyed, or
// forgotten where a removed block says so.
func (b *builder) leaveRest() {
	removals := make([]removal, len(b.in.Desired.Removals))
	for i, r := range b.in.Desired.Removals {
		removals[i] = removal{areaOf(r.From), r}
	}
	b.checkRemovals(removals)
	for _, p := range b.stored {
		if !p.own || p.twin != nil {
			continue
		}
		switch r := removedBy(removals, p.at); {
		case r == nil:
			reason, detail := b.absence(p.at)
			b.destroy(p, reason, detail, false)
		case r.Destroy:
			b.destroy(p, DeleteByRemoval, "a removed block destroys "+r.area.prefix, true)
		default:
			b.forget(p, "a removed block gives up "+r.area.prefix)
		}
	}
}

type removal struct {
	area
	schema.Removal
}

// removedBy returns the removed block that names an address most closely.
func removedBy(removals []removal, at string) *removal {
	var best *removal
	for i := range removals {
		if r := &removals[i]; r.holds(at) && (best == nil || len(r.prefix) > len(best.prefix)) {
			best = r
		}
	}
	return best
}

func (b *builder) checkRemovals(removals []removal) {
	for i := range removals {
		r := &removals[i]
		for _, p := range b.wanted {
			if r.holds(p.at) {
				b.problem(p, Problem{
					Address: p.at, Range: &r.Range, Summary: fmt.Sprintf("%s is still in the configuration", p.at),
					Detail: fmt.Sprintf("A removed block says that %s is gone. Remove the block of the object or the removed block.", r.prefix),
				})
				break
			}
		}
	}
}

// absence says why an object is no longer desired.
func (b *builder) absence(at string) (Reason, string) {
	if b.in.Mode == Destroy || b.asked() {
		return DeleteByRequest, ""
	}
	why := schema.NoBlock
	if address, err := schema.ParseAddress(at); err == nil && b.in.Desired.Absence != nil {
		why = b.in.Desired.Absence(address)
	}
	switch why {
	case schema.NoKey:
		return DeleteNoKey, at + " is none of the instances that for_each makes"
	case schema.WrongRepetition:
		return DeleteWrongRepetition, "the block of " + at + " gained or lost for_each"
	case schema.NoModule:
		return DeleteNoModule, "the module of " + at + " is not in the configuration"
	}
	return DeleteNoBlock, at + " is not in the configuration"
}

// destroy plans the end of an object; asked says that a removed block demands it.
func (b *builder) destroy(p *pair, reason Reason, detail string, asked bool) {
	a := p.have
	b.problems(p, asked)
	p.change = &Change{
		Action: Delete, ID: a.ID, Kind: a.Kind, Address: p.at, Addr: p.addr, Saw: a.Revision,
		Attrs: b.gone(p), Reason: reason, Detail: detail, WasProtected: a.Protected,
	}
	if a.Address != p.at {
		p.change.Moved = a.Address
	}
}

// problems says why an object may not be destroyed.
func (b *builder) problems(p *pair, asked bool) {
	if p.kind.Holds != "" && !isTrue(p.have.Spec.GetAttr(p.kind.Holds)) {
		detail := fmt.Sprintf("Destroying %s would delete its data. To allow it, set %s = true in its block, apply that, "+
			"and then remove the block or run the destroy again.", p.addr, p.kind.Holds)
		if b.asked() {
			detail = fmt.Sprintf("Destroying %s would delete its data. %s", p.addr, putFirst(p.kind.Holds, true))
		}
		b.problem(p, Problem{
			Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s holds data and may not be destroyed", p.addr), Detail: detail,
		})
	}
	if asked || !p.have.Protected && !b.protects[p.at] {
		return
	}
	detail := fmt.Sprintf("%s was written with prevent_destroy = true, which outlives its block. To destroy it, set "+
		"prevent_destroy = false and apply that first, or write in place of its block:\n\n%s", p.at, removedBlock(p.at))
	if b.asked() {
		detail = putFirst("protected", false)
	}
	b.problem(p, Problem{
		Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s is protected and may not be destroyed", p.addr), Detail: detail,
	})
}

// removedBlock writes a removed block that destroys.
func removedBlock(from string) string {
	return fmt.Sprintf("removed {\n  from = %s\n  lifecycle {\n    destroy = true\n  }\n}\n", from)
}

// forget plans that an object stays as it is, without an owner.
func (b *builder) forget(p *pair, detail string) {
	a := p.have
	spec := b.followed(a.Spec, p.holds)
	p.change = &Change{
		Action: Forget, ID: a.ID, Kind: a.Kind, Address: p.at, Addr: p.kind.Addr(spec), Saw: a.Revision,
		Spec: spec, Applied: cty.NilVal, Reason: ForgetByRemoval, Detail: detail, WasProtected: a.Protected,
	}
}

func (b *builder) gone(p *pair) []Attr {
	var attrs []Attr
	object := schema.Object{Kind: p.kind, Address: p.at}
	for _, f := range b.of(p.kind) {
		before := p.have.Spec.GetAttr(f.name)
		if !absent(before) {
			attrs = append(attrs, b.attr(&object, f, before, cty.NullVal(before.Type())))
		}
	}
	return attrs
}
