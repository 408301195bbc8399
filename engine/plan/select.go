package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/qod-io/qod/schema"
)

// narrow leaves out what the selection leaves out. What stays in the plan has all that it needs: a change
// needs what it refers to, and the end of an object needs the changes of those that still refer to it.
// Nothing is destroyed only because a target no longer needs it.
func (b *builder) narrow() {
	s := b.in.Selection
	if !s.Partial() {
		return
	}
	all, known := b.all(), len(b.found)
	targets, excluded := b.named(s.Targets, all, "target"), b.named(s.Exclude, all, "exclude")
	if len(s.Targets) > 0 {
		for _, p := range all {
			p.kept = false
		}
		for _, p := range targets {
			b.keep(p)
		}
	}
	if len(excluded) > 0 {
		b.drop(all, excluded)
	}
	if len(b.found) > known {
		return // an address that there is not: no part of it is planned
	}
	b.problem(nil, Problem{
		Warning: true, Summary: "The plan is partial",
		Detail: "-target or -exclude leaves objects out, and outputs stay as they are. Run qod plan without them afterwards " +
			"to see what remains.",
	})
}

// named returns what the addresses of a flag name: by place in the configuration, or else by key.
func (b *builder) named(list []schema.Address, all []*pair, flag string) []*pair {
	var found []*pair
	for _, address := range list {
		a, key := areaOf(address), address.String()
		at := func(p *pair) bool {
			return p.own && (a.holds(p.at) || p.have != nil && p.have.Address != p.at && a.holds(p.have.Address))
		}
		matches := matching(all, at, func(p *pair) bool { return p.own && p.called(key) })
		found = append(found, matches...)
		if len(matches) == 0 && !slices.ContainsFunc(b.configured, func(o schema.Object) bool {
			return a.holds(o.Address) || o.Addr().String() == key
		}) {
			b.unknown(address, flag)
		}
	}
	return found
}

// matching returns what is at an address, or, where nothing is, what is called so.
func matching(all []*pair, at, called func(*pair) bool) []*pair {
	for _, is := range []func(*pair) bool{at, called} {
		var found []*pair
		for _, p := range all {
			if is(p) {
				found = append(found, p)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// called reports whether the object has, or is to have, that name by kind and key.
func (p *pair) called(name string) bool {
	return p.addr.String() == name || p.have != nil && p.was.String() == name
}

// unknown says that a flag names an address that there is not.
func (b *builder) unknown(address schema.Address, flag string) {
	b.problem(nil, Problem{
		Address: address.String(), Summary: fmt.Sprintf("There is no %s", address),
		Detail: fmt.Sprintf("-%s names %s, which is neither in the configuration nor in stack %q.%s",
			flag, address, b.in.Stack, schema.DidYouMean(address.String(), b.addresses(strings.Contains(address.Name, "/")))),
	})
}

// keep takes an object into the plan, with what it needs.
func (b *builder) keep(p *pair) {
	if p.kept {
		return
	}
	p.kept = true
	for _, q := range append(b.needs(p), b.namesake(p)...) {
		b.keep(q)
	}
	if !p.ends() {
		return
	}
	for _, user := range p.usedBy {
		if user.change != nil {
			b.keep(user)
		}
	}
}

// ends reports whether the stored object goes, to be made anew or not.
func (p *pair) ends() bool {
	return p.change != nil && (p.change.Action == Delete || p.change.Action == Replace)
}

// needs lists the desired objects that must be as desired before p can be.
func (b *builder) needs(p *pair) []*pair {
	list := append([]*pair(nil), p.triggers...)
	links := p.wants
	if p.change != nil && (p.change.Action == Forget || p.want != nil && len(p.want.Lifecycle.IgnoreChanges) > 0 || p.want != nil && p.want.Lifecycle.IgnoreAll) {
		links = append(append([]link(nil), links...), p.holds...)
	}
	for _, l := range links {
		if l.to != nil && l.to.want != nil {
			list = append(list, l.to)
		}
	}
	if p.want == nil {
		return list
	}
	for _, address := range p.want.DependsOn {
		if q := b.wantAt[address]; q != nil {
			list = append(list, q)
		}
	}
	return list
}

// namesake returns the object that has the name which p gets, if it gets another name itself.
func (b *builder) namesake(p *pair) []*pair {
	owner := b.byAddr[p.addr]
	if p.want == nil || owner == nil || owner.whole() == p || owner.twin == nil || owner.twin.change == nil {
		return nil
	}
	return []*pair{owner.twin}
}

// drop takes objects out of the plan, with what needs them. What an object that stays as it is refers to
// stays too.
func (b *builder) drop(all, excluded []*pair) {
	needed := map[*pair][]*pair{}
	for _, p := range all {
		for _, q := range append(b.needs(p), b.namesake(p)...) {
			needed[q] = append(needed[q], p)
		}
	}
	seen := map[*pair]bool{}
	for len(excluded) > 0 {
		p := excluded[0]
		excluded = excluded[1:]
		if seen[p] {
			continue
		}
		seen[p] = true
		p.kept = false
		excluded = append(excluded, needed[p]...)
		for _, l := range p.holds {
			if l.to != nil && l.to.ends() {
				excluded = append(excluded, l.to)
			}
		}
	}
}
