package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// replaceMore decides which objects are destroyed and made anew: those with a change that cannot be made in
// place, those that the user names, and those that a trigger names, until no trigger says more.
func (b *builder) replaceMore() {
	b.requested()
	for _, p := range b.wanted {
		if p.diff != nil && len(p.diff.replaces) > 0 && p.reason == "" {
			b.replaceChanged(p)
		}
	}
	b.fireTriggers()
	for _, p := range b.wanted {
		if p.reason != "" {
			b.relink(p)
		}
	}
}

func (b *builder) replaceChanged(p *pair) {
	words := listed(p.diff.replaces)
	switch {
	case p.imported():
		b.cannotImport(p)
		p.diff = nil
	case p.kind.Holds != "":
		b.problem(p, Problem{
			Address: p.at, Path: cty.GetAttrPath(p.diff.replaces[0]),
			Summary: fmt.Sprintf("%s cannot be replaced", p.was),
			Detail: fmt.Sprintf("A change of %s would destroy %s with its data and make it anew, which qod never does by itself. "+
				"Keep the value, or write a second %s beside it, move the data, and then remove this one.",
				words, p.was, p.kind.Name),
		})
		p.diff = nil
	default:
		p.reason, p.detail = ReplaceCannotUpdate, words+" cannot be changed in place"
	}
}

// requested replaces what the selection names.
func (b *builder) requested() {
	if b.in.Mode != Normal {
		return
	}
	for _, address := range b.in.Selection.Replace {
		a, key := areaOf(address), address.String()
		matches := matching(b.wanted, func(p *pair) bool { return a.holds(p.at) }, func(p *pair) bool { return p.called(key) })
		for _, p := range matches {
			b.replaceAnyway(p, ReplaceByRequest, "replacement was asked for")
		}
		if len(matches) == 0 {
			b.unknown(address, "replace")
		}
	}
}

// replaceAnyway replaces an object that need not be.
func (b *builder) replaceAnyway(p *pair, reason Reason, detail string) {
	switch {
	case p.have == nil || p.reason != "":
	case p.kind.Holds != "":
		b.problem(p, Problem{
			Address: p.at, Summary: fmt.Sprintf("%s cannot be replaced", p.was),
			Detail: fmt.Sprintf("It would be destroyed with its data and made anew (%s), which qod never does by itself. Write a second %s "+
				"beside it, move the data, and then remove this one.", detail, p.kind.Name),
		})
	case p.imported():
		b.problem(p, Problem{
			Address: p.at, Summary: fmt.Sprintf("%s cannot be imported and replaced", p.addr),
			Detail: fmt.Sprintf("An import keeps what exists, and this plan would destroy it (%s). Apply the import first.", detail),
		})
	default:
		p.reason, p.detail = reason, detail
		b.differing(p)
	}
}

// trigger is one entry of replace_triggered_by, and what it stands for.
type trigger struct {
	of    *pair
	words string
	attr  string
	by    []*pair
}

// fireTriggers replaces what a trigger names, until none says more: a replacement is a trigger too.
func (b *builder) fireTriggers() {
	var waiting []trigger
	for _, p := range b.wanted {
		for _, t := range p.want.Lifecycle.ReplaceTriggeredBy {
			waiting = append(waiting, b.trigger(p, t))
		}
	}
	refused := map[*pair]bool{}
	for again := true; again; {
		again = false
		for _, t := range waiting {
			if t.of.reason != "" || refused[t.of] || !slices.ContainsFunc(t.by, func(p *pair) bool { return fires(p, t.attr) }) {
				continue
			}
			again = true
			b.replaceAnyway(t.of, ReplaceByTriggers, "replace_triggered_by names "+t.words+", which changes")
			refused[t.of] = t.of.reason == ""
		}
	}
}

func (b *builder) trigger(p *pair, t schema.Trigger) trigger {
	a := areaOf(t.Address)
	out := trigger{of: p, words: a.prefix, attr: t.Attr}
	if t.Attr != "" {
		out.words += "." + t.Attr
	}
	if one := b.wantAt[a.prefix]; one != nil {
		out.by = append(out.by, one)
	} else {
		for _, other := range b.wanted {
			if a.holds(other.at) {
				out.by = append(out.by, other)
			}
		}
	}
	p.triggers = append(p.triggers, out.by...)
	return out
}

// fires reports whether an object, or that attribute of it, gets another value.
func fires(p *pair, attr string) bool {
	if p.have == nil {
		return attr == "" || p.kind.Type().HasAttribute(attr) && !absent(p.want.Value.GetAttr(attr))
	}
	if p.diff == nil {
		return false
	}
	return attr == "" && p.reason != "" || slices.ContainsFunc(p.diff.attrs, func(a Attr) bool {
		return a.Note == "" && (attr == "" || a.Name == attr)
	})
}

// relink writes those anew that refer to an object that is made anew: a reference means an object, not a
// name.
func (b *builder) relink(p *pair) {
	for _, user := range p.usedBy {
		if user.want == nil || user.have == nil || user.reason != "" {
			continue
		}
		for _, l := range user.wants {
			if l.to == p {
				b.relinkOne(user, l.Attr)
			}
		}
	}
}

func (b *builder) relinkOne(user *pair, attr string) {
	d := b.differing(user)
	if slices.ContainsFunc(d.attrs, func(a Attr) bool { return a.Name == attr }) {
		return
	}
	fields := b.of(user.kind)
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == attr })
	d.attrs = append(d.attrs, b.noted(user.want, fields[i], user.want.Value.GetAttr(attr), "the same name, made anew"))
}

// listed joins words: a, b and c.
func listed(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
