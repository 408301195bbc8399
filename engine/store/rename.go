package store

import (
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// renames are new names by attribute and folded old name: two objects may swap theirs.
type renames map[string]map[string]string

func (n renames) add(attr, old, now string) {
	if n[attr] == nil {
		n[attr] = map[string]string{}
	}
	n[attr][schema.Fold(old)] = now
}

// followRenames rewrites the names of renamed objects in those that refer to them and are not written
// themselves. The name is the innermost part of a key, so one level is enough: whoever refers to an
// object by its outer parts too has the attribute that refers to the outer object.
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
		o.Spec = rewrite(old.Spec, d.namesIn(id, renamed))
		if old.Applied != cty.NilVal {
			o.Applied = rewrite(old.Applied, d.namesInValue(old.Kind, old.Applied, renamed))
		}
		if sameValue(o.Spec, old.Spec) && sameValue(o.Applied, old.Applied) {
			continue
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
		if now := name(o); name(old) != now {
			out[id] = now
		}
	}
	return out
}

// name returns the innermost key part as it is written, or "" for a kind that nothing can refer to.
func name(o Object) string {
	last := o.Kind.Key[len(o.Kind.Key)-1]
	if !o.Spec.Type().HasAttribute(last) || o.Spec.GetAttr(last).IsNull() {
		return ""
	}
	return o.Spec.GetAttr(last).AsString()
}

// namesIn lists what changes in the value of the object with that id.
func (d *draft) namesIn(id string, renamed map[string]string) renames {
	names := renames{}
	for _, ref := range d.rows.refs[id] {
		if now, ok := renamed[ref.To]; ok {
			names.add(ref.Attr, name(d.rows.objects[ref.To]), now)
		}
	}
	return names
}

// namesInValue does the same for what was applied, whose references are not kept resolved.
func (d *draft) namesInValue(kind *schema.Kind, v cty.Value, renamed map[string]string) renames {
	names := renames{}
	for _, ref := range kind.Refs(v) {
		to, ok := d.rows.live[ref.To]
		if now, changed := renamed[to]; ok && changed {
			names.add(ref.Attr, name(d.rows.objects[to]), now)
		}
	}
	return names
}

func rewrite(v cty.Value, names renames) cty.Value {
	if len(names) == 0 {
		return v
	}
	attrs := v.AsValueMap()
	for attr, by := range names {
		if !attrs[attr].Type().IsSetType() {
			attrs[attr] = renameOne(attrs[attr], by)
			continue
		}
		items := attrs[attr].AsValueSlice()
		for i := range items {
			items[i] = renameOne(items[i], by)
		}
		attrs[attr] = cty.SetVal(items)
	}
	return cty.ObjectVal(attrs)
}

func renameOne(v cty.Value, by map[string]string) cty.Value {
	if now, ok := by[schema.Fold(v.AsString())]; ok {
		return cty.StringVal(now)
	}
	return v
}
