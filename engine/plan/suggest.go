package plan

import (
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// proposeMoves looks for an object that is destroyed and one of equal content that is made: likely one
// object under a new name. It proposes the moved block that keeps it, where there is no doubt which one is
// meant.
func (b *builder) proposeMoves() {
	if b.in.Mode != Normal {
		return
	}
	// What refers to a renamed object is renamed content too, so referenced kinds come first.
	means := map[*pair]*pair{}
	for _, k := range schema.Kinds() {
		olds, news := map[string][]*pair{}, map[string][]*pair{}
		for _, p := range b.stored {
			if p.kind == k && p.twin == nil && p.action() == Delete && p.change.Reason != DeleteByRemoval {
				key := b.content(p, p.have.Spec, p.holds, means)
				olds[key] = append(olds[key], p)
			}
		}
		if len(olds) == 0 {
			continue
		}
		for _, p := range b.wanted {
			if p.kind == k && p.action() == Create {
				key := b.content(p, p.want.Value, p.wants, means)
				news[key] = append(news[key], p)
			}
		}
		for _, key := range sortedKeys(olds) {
			if len(olds[key]) == 1 && len(news[key]) == 1 && b.sameSecrets(olds[key][0], news[key][0]) {
				means[news[key][0]] = olds[key][0]
				b.proposeMove(olds[key][0], news[key][0])
			}
		}
	}
}

// content is everything of an object but its name, in a form to compare. References are what they mean.
func (b *builder) content(p *pair, v cty.Value, links []link, means map[*pair]*pair) string {
	out := &strings.Builder{}
	for _, f := range b.of(p.kind) {
		switch av := v.GetAttr(f.name); {
		case f.name == p.kind.Key[len(p.kind.Key)-1] || f.secret():
		case f.attr != nil && f.attr.Ref != "" && len(targets(links, f.name)) > 0:
			var meant []link
			for _, l := range links {
				if old := means[l.to]; old != nil {
					l.to = old
				}
				meant = append(meant, l)
			}
			fmt.Fprintf(out, "%s=%q %q\n", f.name, targets(meant, f.name), f.attr.Literals(av))
		case f.hasDefault():
			fmt.Fprintf(out, "%s=%#v\n", f.name, orDefault(av, f))
		case !absent(av):
			fmt.Fprintf(out, "%s=%#v\n", f.name, av)
		}
	}
	return out.String()
}

func (b *builder) sameSecrets(old, now *pair) bool {
	for _, f := range b.of(old.kind) {
		if f.secret() && !b.written(old.id, now.want, f).RawEquals(old.have.Spec.GetAttr(f.name)) {
			return false
		}
	}
	return true
}

func (b *builder) proposeMove(old, now *pair) {
	block := movedBlock(old.at, now.at)
	if i := b.dataProblem(old); i >= 0 {
		b.found[i].Detail += fmt.Sprintf(" If %s is the same object under a new name, keep it with:\n\n%s", now.addr, block)
		return
	}
	b.problem(now, Problem{
		Warning: true, Address: now.at,
		Summary: fmt.Sprintf("%s looks like %s under a new name", now.addr, old.addr),
		Detail: fmt.Sprintf("This plan destroys %s and makes %s with the same content. If it is the same object, keep it with:\n\n%s",
			old.at, now.at, block),
	})
}

// dataProblem returns the place of the error that refuses to destroy an object, or -1.
func (b *builder) dataProblem(old *pair) int {
	for i := range b.found {
		if b.found[i].of == old && !b.found[i].Warning {
			return i
		}
	}
	return -1
}
