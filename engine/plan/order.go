package plan

import (
	"cmp"
	"slices"

	"github.com/qod-io/qod/engine/graph"
)

// order sorts the changes: what is referred to is made before what refers to it, and ends after that
// ends or refers to something else.
func (b *builder) order() {
	for _, frees := range []bool{true, false} {
		g := graph.New[string]()
		changes := map[string]*pair{}
		list := b.all()
		for _, p := range list {
			if p.action() != "" {
				changes[p.change.ID] = p
				g.Add(p.change.ID)
			}
		}
		for _, p := range list {
			if p.action() != "" {
				b.connect(g, p, frees)
			}
		}
		order, err := g.Order()
		if err != nil {
			continue // two that replace each other's targets: one commit does both, so making comes first
		}
		b.plan.Changes = b.plan.Changes[:0]
		for _, id := range order {
			b.plan.Changes = append(b.plan.Changes, *changes[id].change)
		}
		return
	}
}

// connect says what a change waits for, and what waits for it.
func (b *builder) connect(g *graph.Graph[string], p *pair, frees bool) {
	after := map[*pair]bool{}
	if p.want != nil {
		for _, q := range b.needs(p) {
			after[q] = true
			if q != p && q.action() != "" {
				g.Connect(p.change.ID, q.change.ID)
			}
		}
	}
	if p.have == nil || p.action() == Forget {
		return
	}
	for _, l := range p.holds {
		q := l.to
		if q == nil || q == p || after[q] || q.action() != Delete && (!frees || q.action() != Replace) {
			continue
		}
		g.Connect(q.change.ID, p.change.ID)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, cmp.Compare)
	return keys
}
