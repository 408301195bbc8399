package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// world is what there is after the plan.
type world struct {
	byAddr  map[schema.Addr]*pair
	byBlock map[string]*pair // of the own stack
}

// checkWorld refuses a plan after which two objects have one name, or a reference means nothing.
func (b *builder) checkWorld() {
	if b.in.Mode == RefreshOnly {
		return
	}
	all := b.all()
	w := world{make(map[schema.Addr]*pair, len(all)), make(map[string]*pair, len(all))}
	for _, p := range all {
		if p.lives() {
			b.enter(&w, p)
		}
	}
	dependants := map[*pair][]string{}
	for _, p := range all {
		switch {
		case !p.lives():
		case p.action() != "":
			b.checkWritten(&w, p)
		default:
			b.checkLeft(p, dependants)
		}
	}
	for _, p := range all {
		if users := dependants[p]; users != nil {
			b.inUse(p, users)
		}
	}
}

// lives reports whether the object is there after the plan.
func (p *pair) lives() bool {
	return p.action() != Delete && (p.have != nil || p.action() != "")
}

// enter gives an object its name and its block in the world after the plan.
func (b *builder) enter(w *world, p *pair) {
	addr, at := b.after(p)
	if other := w.byAddr[addr]; other != nil {
		b.taken(addr, p, other)
	}
	w.byAddr[addr] = p
	if at == "" || p.action() == "" && p.have.Stack != b.in.Stack {
		return
	}
	if other := w.byBlock[at]; other != nil {
		b.problem(nil, Problem{
			Address: at, Summary: fmt.Sprintf("%s would be the address of two objects", at),
			Detail: fmt.Sprintf("%s and %s would both be there.%s", other.addr, p.addr, b.partial()),
		})
	}
	w.byBlock[at] = p
}

// after returns the name and the block that an object has after the plan.
func (b *builder) after(p *pair) (schema.Addr, string) {
	switch p.action() {
	case "":
		if !b.renames {
			return p.was, p.have.Address
		}
		spec := rewritten(p.have.Spec, p.holds, func(to *pair) string {
			if to.action() != Update || to.change.Was.Kind == "" {
				return ""
			}
			return to.kind.NameOf(to.change.Spec)
		})
		addr := p.kind.Addr(spec)
		if p.was.Names(p.have.Address) {
			return addr, addr.String() // its own address follows its name
		}
		return addr, p.have.Address
	case Forget:
		return p.change.Addr, ""
	}
	return p.change.Addr, p.change.Address
}

// taken says that two objects would have one name.
func (b *builder) taken(addr schema.Addr, p, other *pair) {
	if p.action() == "" || !p.own {
		p, other = other, p
	}
	if other.own {
		b.problem(p, Problem{
			Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s would be the name of two objects", addr),
			Detail: fmt.Sprintf("%s and %s would both have that name.%s", p.at, other.at, b.otherName()),
		})
		return
	}
	by := "with an import block"
	if b.asked() {
		by = "with take_over"
	}
	owner, way := fmt.Sprintf("belongs to stack %q", other.have.Stack), ", remove that one there first, or take it over "+by
	switch other.have.Stack {
	case "":
		owner, way = "exists already", ", or take that one over "+by
	case SystemStack:
		way = ""
	case b.in.Stack:
		owner, way = "exists already", ""
	}
	b.problem(p, Problem{
		Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s %s", addr, owner),
		Detail: fmt.Sprintf("An object of that name exists, %s. A plan changes only what its own stack owns: "+
			"give this one another name%s.", author(other.have), way),
	})
}

func (b *builder) otherName() string {
	if b.plan.Partial {
		return b.partial()
	}
	return " Give one of them another."
}

func author(a *Actual) string {
	switch {
	case a.Stack == "":
		return "which nobody owns"
	case a.Address == "":
		return fmt.Sprintf("which belongs to stack %q and to no block of it", a.Stack)
	}
	return fmt.Sprintf("written by %s of stack %q", a.Address, a.Stack)
}

// checkWritten refuses references to nothing. One that nobody writes means the object that it meant before,
// and no other that comes to have the name.
func (b *builder) checkWritten(w *world, p *pair) {
	for _, ref := range p.kind.Refs(p.change.Spec) {
		to := w.byAddr[ref.To]
		if to == nil || b.leaves(p, ref.Attr) && !p.means(ref.Attr, to) {
			b.dangling(p, ref)
		}
	}
}

// leaves reports whether a change takes over an attribute as it is stored.
func (b *builder) leaves(p *pair, attr string) bool {
	if p.have == nil || p.want == nil {
		return p.change.Action == Forget
	}
	a, _ := p.kind.Attr(attr)
	_, ignored := ignores(p.want.Lifecycle, field{name: attr, attr: a})
	return ignored
}

// means reports whether the stored object refers to that one.
func (p *pair) means(attr string, to *pair) bool {
	return slices.ContainsFunc(p.holds, func(l link) bool { return l.Attr == attr && l.to != nil && l.to.whole() == to.whole() })
}

// checkLeft looks for references to what the plan destroys, in an object that it leaves as it is.
func (b *builder) checkLeft(p *pair, dependants map[*pair][]string) {
	for _, l := range p.holds {
		switch {
		case l.to == nil || l.to.action() != Delete && l.to.action() != Replace:
		case p.want != nil && p.kept && l.to.action() == Delete:
			b.dangling(p, l.Ref)
		default:
			dependants[l.to] = append(dependants[l.to], fmt.Sprintf("%s (%s)", p.was, owner(p.have)))
		}
	}
}

func owner(a *Actual) string {
	if a.Stack == "" {
		return "without owner"
	}
	return fmt.Sprintf("stack %q", a.Stack)
}

func (b *builder) inUse(p *pair, users []string) {
	slices.Sort(users)
	b.problem(p, Problem{
		Address: p.at, Conflict: true, Summary: fmt.Sprintf("%s is still in use", p.was),
		Detail: fmt.Sprintf("It cannot be destroyed while others refer to it: %s. Remove those first.%s",
			strings.Join(slices.Compact(users), ", "), b.partial()),
	})
}

func (b *builder) dangling(p *pair, ref schema.Ref) {
	attr, _ := p.kind.Attr(ref.Attr)
	known := append(slices.Clone(attr.Literal), b.siblings(ref.To)...)
	nowhere := "which neither this configuration nor another stack has"
	if b.asked() {
		nowhere = "which does not exist"
	}
	problem := Problem{
		Address: p.at, Path: cty.GetAttrPath(ref.Attr),
		Summary: fmt.Sprintf("%s does not exist", ref.To),
		Detail:  fmt.Sprintf("%s refers to %s, %s.%s", p.addr, ref.To, nowhere, schema.DidYouMean(ref.To.Name(), known)),
	}
	switch {
	case b.byAddr[ref.To] != nil:
		problem.Detail = fmt.Sprintf("%s refers to %s, which this plan destroys or renames.%s", p.addr, ref.To, b.partial())
	case b.wantAddr[ref.To] != nil:
		problem.Detail = fmt.Sprintf("%s refers to %s, which this plan does not make.%s", p.addr, ref.To, b.partial())
	}
	b.problem(p, problem)
}

// partial is a way out of problems that come from a selection.
func (b *builder) partial() string {
	if !b.plan.Partial {
		return ""
	}
	return " The plan is partial: name the other one with -target too, or plan everything."
}

// siblings lists the names of the kind beside addr: of the same tenant, where the kind has tenants.
func (b *builder) siblings(addr schema.Addr) []string {
	if b.names == nil {
		b.names = map[schema.Addr]map[string]bool{}
		for a := range b.wantAddr {
			b.addName(a)
		}
		for a := range b.byAddr {
			b.addName(a)
		}
	}
	return sortedKeys(b.names[outer(addr)])
}

func (b *builder) addName(a schema.Addr) {
	at := outer(a)
	if b.names[at] == nil {
		b.names[at] = map[string]bool{}
	}
	b.names[at][a.Name()] = true
}

// outer is an address without its innermost part.
func outer(a schema.Addr) schema.Addr {
	return schema.Addr{Kind: a.Kind, Path: a.Path[:strings.LastIndex(a.Path, "/")+1]}
}
