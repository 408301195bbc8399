package export

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// writeLifecycle says what the objects of a block are protected from: to be destroyed, and to lose what the
// document does not say of them.
func (w *writer) writeLifecycle(b *block, g *group) {
	l := block{kind: "lifecycle"}
	if g.protected(w) {
		l.attrs = append(l.attrs, attr{"prevent_destroy", literal{cty.True}})
	}
	if ignored := w.ignored(g); ignored != nil {
		l.attrs = append(l.attrs, attr{"ignore_changes", ignored})
	}
	if triggers := w.triggers(g); len(triggers) > 0 {
		l.attrs = append(l.attrs, attr{"replace_triggered_by", triggers})
	}
	if len(l.attrs) > 0 {
		b.blocks = append(b.blocks, l)
	}
}

func (g *group) protected(w *writer) bool {
	count := 0
	for _, m := range g.members {
		if m.Lifecycle.PreventDestroy {
			count++
		}
	}
	if count > 0 && count < len(g.members) {
		w.warn("%s.%s: only some of its objects have prevent_destroy, and a block has it for all or none: all have it here.",
			g.kind.Name, g.label)
	}
	return count > 0
}

// ignored is the value of ignore_changes, or nil.
func (w *writer) ignored(g *group) expr {
	var items list
	add := func(e static) {
		if !slices.ContainsFunc(items, func(have expr) bool { return have.json() == e.json() }) {
			items = append(items, e)
		}
	}
	for _, m := range g.members {
		if m.Lifecycle.IgnoreAll {
			return keyword("all")
		}
		for _, path := range m.Lifecycle.IgnoreChanges {
			if t, ok := pathTraversal(path); ok {
				add(static{t})
			}
		}
	}
	for _, a := range g.kind.Attrs {
		for _, m := range g.members {
			if a.Secret && !w.Shown && !m.Value.GetAttr(a.Name).IsNull() {
				add(static{names(a.Name)})
			}
		}
	}
	if len(items) == 0 {
		return nil
	}
	return items
}

func pathTraversal(path cty.Path) (traversal, bool) {
	var parts []string
	for _, step := range path {
		s, ok := step.(cty.GetAttrStep)
		if !ok {
			return nil, false
		}
		parts = append(parts, s.Name)
	}
	if len(parts) == 0 {
		return nil, false
	}
	return names(parts...), true
}

// triggers is the value of replace_triggered_by: what is in the document.
func (w *writer) triggers(g *group) list {
	var items list
	for _, t := range g.members[0].Lifecycle.ReplaceTriggeredBy {
		to, ok := w.addresses[t.Address.String()]
		if !ok {
			continue
		}
		r := reference(to)
		if t.Attr != "" {
			r = append(r, hcl.TraverseAttr{Name: t.Attr})
		}
		items = append(items, static{r})
	}
	return items
}
