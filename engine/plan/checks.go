package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// checkKeys refuses a plan after which two objects would have one key.
func (b *builder) checkKeys() {
	for _, p := range b.pairs {
		owner := b.byAddr[p.want.Addr()]
		if owner == nil || owner.ID == p.id || b.deleting[owner.ID] {
			continue
		}
		if renamed := b.matched[owner.ID]; renamed != nil && renamed.Addr() != p.want.Addr() {
			continue
		}
		b.plan.Problems = append(b.plan.Problems, Problem{
			Address: p.want.Address,
			Summary: fmt.Sprintf("%s belongs to stack %q", p.want.Addr(), owner.Stack),
			Detail: fmt.Sprintf("An object of that name exists, written by %s of stack %q. A plan changes only what its own stack owns: "+
				"give this one another name, or remove it there first.", written(owner), owner.Stack),
		})
	}
}

func written(a *Actual) string {
	if a.Address == "" {
		return "no block"
	}
	return a.Address
}

// checkReferences refuses references to nothing, and deletes of what others refer to.
func (b *builder) checkReferences() {
	for _, p := range b.pairs {
		for _, ref := range p.want.Kind.Refs(p.want.Value) {
			if _, ok := b.desired[ref.To]; ok {
				continue
			}
			if target := b.byAddr[ref.To]; target != nil && !b.deleting[target.ID] && b.matched[target.ID] == nil {
				continue
			}
			b.plan.Problems = append(b.plan.Problems, b.dangling(p.want, ref))
		}
	}
	dependants := map[string][]string{}
	for _, a := range b.byID {
		if b.deleting[a.ID] || b.matched[a.ID] != nil {
			continue
		}
		for _, ref := range a.Kind.Refs(a.Spec) {
			if target := b.byAddr[ref.To]; target != nil && b.deleting[target.ID] {
				dependants[target.ID] = append(dependants[target.ID], fmt.Sprintf("%s (stack %q)", a.Addr(), a.Stack))
			}
		}
	}
	for _, id := range sortedKeys(dependants) {
		slices.Sort(dependants[id])
		b.plan.Problems = append(b.plan.Problems, Problem{
			Address: b.byID[id].Address,
			Summary: fmt.Sprintf("%s is still in use", b.byID[id].Addr()),
			Detail: fmt.Sprintf("It cannot be destroyed while others refer to it: %s. Remove those first.",
				strings.Join(slices.Compact(dependants[id]), ", ")),
		})
	}
}

func (b *builder) dangling(o *schema.Object, ref schema.Ref) Problem {
	p := Problem{
		Address: o.Address, Path: cty.GetAttrPath(ref.Attr),
		Summary: fmt.Sprintf("%s does not exist", ref.To),
		Detail: fmt.Sprintf("%s refers to %s, which neither this configuration nor another stack has.",
			o.Addr(), ref.To),
	}
	if target := b.byAddr[ref.To]; target != nil {
		p.Detail = fmt.Sprintf("%s refers to %s, which this plan destroys or renames.", o.Addr(), ref.To)
		return p
	}
	p.Detail += schema.DidYouMean(ref.To.Name(), b.siblings(ref.To))
	return p
}

// siblings lists the names of the kind beside addr: of the same tenant, where the kind has tenants.
func (b *builder) siblings(addr schema.Addr) []string {
	outer := strings.TrimSuffix(addr.Path, addr.Name())
	names := map[string]bool{}
	add := func(a schema.Addr) {
		if a.Kind == addr.Kind && strings.TrimSuffix(a.Path, a.Name()) == outer {
			names[a.Name()] = true
		}
	}
	for a := range b.desired {
		add(a)
	}
	for a := range b.byAddr {
		add(a)
	}
	return sortedKeys(names)
}
