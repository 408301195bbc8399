package store

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// followRenames rewrites the names of renamed objects in those that refer to them and are not written
// themselves. The name is the innermost part of a key, so one level is enough: whoever refers to an
// object by its outer parts too has the attribute that refers to the outer object. An object whose address is
// its own name keeps it so.
func (d *draft) followRenames() {
	renamed := d.renamed()
	if len(renamed) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(d.rows.objects)) {
		if d.written[id] {
			continue
		}
		old := d.rows.objects[id]
		o := old
		o.Spec = d.namesIn(id, renamed).Apply(old.Spec)
		if old.Applied != cty.NilVal {
			o.Applied = d.namesInValue(old.Kind, old.Applied, renamed).Apply(old.Applied)
		}
		if sameValue(o.Spec, old.Spec) && sameValue(o.Applied, old.Applied) {
			continue
		}
		if old.Addr().Names(old.Address) {
			o.Address = o.Addr().String()
		}
		if !sameValue(o.Spec, old.Spec) {
			o.Generation++
		}
		o.Revision = d.next
		d.after[id] = o
		d.order = append(d.order, id)
	}
}

// renamed returns the new names of the objects that the change gives one, by id.
func (d *draft) renamed() map[string]string {
	out := map[string]string{}
	for id, o := range d.after {
		old, existed := d.rows.objects[id]
		if !existed || o.Tombstone {
			continue
		}
		if now := o.Kind.NameOf(o.Spec); old.Kind.NameOf(old.Spec) != now {
			out[id] = now
		}
	}
	return out
}

// name is how the object with that id was called.
func (d *draft) name(id string) string {
	o := d.rows.objects[id]
	return o.Kind.NameOf(o.Spec)
}

// namesIn lists what changes in the value of the object with that id.
func (d *draft) namesIn(id string, renamed map[string]string) schema.Renames {
	names := schema.Renames{}
	for _, ref := range d.rows.refs[id] {
		if now, ok := renamed[ref.To]; ok {
			names.Add(ref.Attr, d.name(ref.To), now)
		}
	}
	return names
}

// namesInValue does the same for what was applied, whose references are not kept resolved.
func (d *draft) namesInValue(kind *schema.Kind, v cty.Value, renamed map[string]string) schema.Renames {
	names := schema.Renames{}
	for _, ref := range kind.Refs(v) {
		to, ok := d.rows.live[ref.To]
		if now, changed := renamed[to]; ok && changed {
			names.Add(ref.Attr, d.name(to), now)
		}
	}
	return names
}
