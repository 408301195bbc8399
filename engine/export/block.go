package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

const hidden = "(sensitive value)"

// write adds the block of a group.
func (w *writer) write(g *group) {
	b := block{kind: g.kind.Name, labels: []string{g.label}}
	if w.Shown && g.moved() {
		b.comment = g.from.String()
	}
	if w.Import {
		for _, m := range g.members {
			w.add(block{kind: "import", body: body{attrs: []attr{
				{"to", address(g.address(m))}, {"id", literal{cty.StringVal(g.kind.Addr(m.Value).Path)}},
			}}})
		}
	}
	f := fields{group: g, of: make([]object, len(g.members))}
	for i := range g.kind.Attrs {
		w.writeAttr(&b, &f, &g.kind.Attrs[i])
	}
	for i := range g.kind.Blocks {
		w.writeBlocks(&b, &f, &g.kind.Blocks[i])
	}
	b.notes = slices.Compact(b.notes)
	if g.keyed {
		b.attrs = append([]attr{{"for_each", f.forEach()}}, b.attrs...)
	}
	w.writeLifecycle(&b, g)
	w.add(b)
}

// fields are what differs between the objects of a block, by object.
type fields struct {
	group *group
	of    []object
}

// merge returns the one expression for all objects, or adds the different ones as a field and returns the
// reference to it. A nil expression is nothing written; the result is nil when that is so for all.
func (f *fields) merge(name string, exprs []expr) expr {
	same := true
	for _, e := range exprs {
		same = same && (e == nil) == (exprs[0] == nil) && (e == nil || e.json() == exprs[0].json())
	}
	if same {
		return exprs[0]
	}
	for i, e := range exprs {
		if e == nil {
			e = literal{cty.NullVal(cty.DynamicPseudoType)}
		}
		f.of[i] = append(f.of[i], field{name: name, value: e})
	}
	return names("each", "value", name)
}

// forEach is the set of keys, or the object of what differs.
func (f *fields) forEach() expr {
	var keys list
	var byKey object
	for i, m := range f.group.members {
		keys = append(keys, literal{cty.StringVal(m.key)})
		byKey = append(byKey, field{m.key, true, f.of[i]})
	}
	if len(f.of[0]) == 0 {
		return call{"toset", keys}
	}
	return byKey
}

// hides reports whether a value must not be written.
func (m member) hides(k *schema.Kind, name string) bool {
	return k.Secret(name) || slices.Contains(m.Sensitive, name)
}

func (w *writer) writeAttr(b *block, f *fields, a *schema.Attr) {
	g := f.group
	exprs := make([]expr, len(g.members))
	byDefault := true // the name, for all
	for i, m := range g.members {
		v := m.Value.GetAttr(a.Name)
		switch {
		case v.IsNull():
		case m.hides(g.kind, a.Name):
			b.notes = append(b.notes, w.withheld(a))
		default:
			exprs[i] = w.value(m.Object, a, v)
			byDefault = byDefault && v.Type() == cty.String && v.AsString() == g.defaultName(m)
		}
	}
	if name, ok := nameAttr(g.kind); ok && name == a.Name && byDefault {
		return
	}
	if e := f.merge(a.Name, exprs); e != nil {
		b.attrs = append(b.attrs, attr{a.Name, e})
	}
}

func (w *writer) withheld(a *schema.Attr) string {
	if w.Shown || !a.Secret {
		return a.Name + ": " + hidden
	}
	return fmt.Sprintf("The %s is a secret and is not exported: it stays as it is, since ignore_changes names it.", a.Name)
}

func (g *group) defaultName(m member) string {
	if g.keyed {
		return m.key
	}
	return g.label
}

// value is what an attribute of an object is written as: names of objects in the document as references.
func (w *writer) value(o Object, a *schema.Attr, v cty.Value) expr {
	to := map[string]schema.Addr{}
	for _, ref := range o.Kind.Refs(o.Value) {
		if ref.Attr == a.Name {
			to[ref.To.Name()] = ref.To
		}
	}
	one := func(v cty.Value) expr {
		if v.Type() != cty.String || v.IsNull() {
			return literal{v}
		}
		t, ok := w.targets[to[schema.Fold(v.AsString())]]
		if !ok || t.name != v.AsString() {
			return literal{v}
		}
		return reference(t.address)
	}
	if !a.Set() {
		return one(v)
	}
	return sortedList(v, one)
}

func sortedList(v cty.Value, one func(cty.Value) expr) list {
	values := v.AsValueSlice()
	slices.SortFunc(values, func(a, b cty.Value) int { return cmp.Compare(text(a), text(b)) })
	items := make(list, len(values))
	for i, item := range values {
		items[i] = one(item)
	}
	return items
}

func text(v cty.Value) string {
	if v.Type() == cty.String && !v.IsNull() {
		return v.AsString()
	}
	return literal{v}.json()
}

// writeBlocks writes nested blocks: as they are where all objects have the same, else as a dynamic block.
func (w *writer) writeBlocks(b *block, f *fields, nested *schema.Block) {
	g := f.group
	exprs := make([]expr, len(g.members))
	any := false
	for i, m := range g.members {
		v := m.Value.GetAttr(nested.Name)
		if !v.IsNull() && m.hides(g.kind, nested.Name) {
			b.notes = append(b.notes, nested.Name+": "+hidden)
			v = cty.NullVal(v.Type())
		}
		items := blockItems(nested, v)
		exprs[i], any = items, any || len(items) > 0
	}
	if !any {
		return
	}
	e := f.merge(nested.Name, exprs)
	if items, same := e.(list); same {
		for _, item := range items {
			b.blocks = append(b.blocks, staticBlock(nested, item.(object)))
		}
		return
	}
	content := block{kind: "content"}
	for _, a := range nested.Attrs {
		if f.everWritten(nested.Name, a.Name) {
			content.attrs = append(content.attrs, attr{a.Name, names(nested.Name, "value", a.Name)})
		}
	}
	b.blocks = append(b.blocks, block{kind: "dynamic", labels: []string{nested.Name}, body: body{
		attrs: []attr{{"for_each", e}}, blocks: []block{content},
	}})
	f.fill(nested, content.attrs)
}

// blockItems is the nested blocks of one object as objects of what is written in them, sorted.
func blockItems(nested *schema.Block, v cty.Value) list {
	if v.IsNull() {
		return list{}
	}
	values := []cty.Value{v}
	if !nested.Single {
		values = v.AsValueSlice()
	}
	items := make(list, len(values))
	for i, item := range values {
		var written object
		for _, a := range nested.Attrs {
			av := item.GetAttr(a.Name)
			switch {
			case av.IsNull():
			case a.Set():
				written = append(written, field{name: a.Name, value: sortedList(av, func(v cty.Value) expr { return literal{v} })})
			default:
				written = append(written, field{name: a.Name, value: literal{av}})
			}
		}
		items[i] = written
	}
	slices.SortFunc(items, func(a, b expr) int { return strings.Compare(a.json(), b.json()) })
	return items
}

func staticBlock(nested *schema.Block, item object) block {
	b := block{kind: nested.Name}
	for _, f := range item {
		b.attrs = append(b.attrs, attr{f.name, f.value})
	}
	return b
}

// lists returns the list that each object has in a field.
func (f *fields) lists(name string) []list {
	var out []list
	for _, o := range f.of {
		for _, field := range o {
			if items, ok := field.value.(list); ok && field.name == name {
				out = append(out, items)
			}
		}
	}
	return out
}

// everWritten reports whether any nested block writes the attribute.
func (f *fields) everWritten(nested, name string) bool {
	for _, items := range f.lists(nested) {
		for _, item := range items {
			if slices.ContainsFunc(item.(object), func(f field) bool { return f.name == name }) {
				return true
			}
		}
	}
	return false
}

// fill gives each item of a field every attribute that the content of a dynamic block reads.
func (f *fields) fill(nested *schema.Block, content []attr) {
	for _, items := range f.lists(nested.Name) {
		for i, item := range items {
			full := make(object, len(content))
			for j, a := range content {
				full[j] = field{name: a.name, value: literal{cty.NullVal(cty.DynamicPseudoType)}}
				for _, have := range item.(object) {
					if have.name == a.name {
						full[j] = have
					}
				}
			}
			items[i] = full
		}
	}
}
