package store

import (
	"cmp"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// ObjectRef is a resolved reference: the attribute Attr of the object From names the object To.
type ObjectRef struct{ From, Attr, To string }

// Rows are the stored objects that a change is applied to. They hold at least every object the change
// writes, whatever has the key or the address of one, what those refer to, and, of the ones that are
// renamed or deleted, whoever refers to them and what those refer to in turn.
type Rows struct {
	objects   map[string]Object
	live      map[schema.Addr]string
	buried    map[schema.Addr]string
	blocks    map[block]string
	refs      map[string][]ObjectRef // by From
	referrers map[string][]ObjectRef // by To
}

// block is where a configuration has an object.
type block struct{ stack, address string }

// NewRows indexes objects and the references among them.
func NewRows(objects []Object, refs []ObjectRef) *Rows {
	r := &Rows{
		objects:   make(map[string]Object, len(objects)),
		live:      make(map[schema.Addr]string, len(objects)),
		buried:    map[schema.Addr]string{},
		blocks:    make(map[block]string, len(objects)),
		refs:      map[string][]ObjectRef{},
		referrers: map[string][]ObjectRef{},
	}
	for _, o := range objects {
		r.objects[o.ID] = o
		if o.Tombstone {
			r.buried[o.Addr()] = o.ID
			continue
		}
		r.live[o.Addr()] = o.ID
		if o.Address != "" {
			r.blocks[block{o.Stack, o.Address}] = o.ID
		}
	}
	for _, ref := range refs {
		r.refs[ref.From] = append(r.refs[ref.From], ref)
		r.referrers[ref.To] = append(r.referrers[ref.To], ref)
	}
	return r
}

// Moved returns the first write of the change whose object is not as the writer saw it.
func (r *Rows) Moved(c Change) (Write, bool) {
	for _, w := range c.Writes {
		now, exists := r.objects[w.ID]
		if exists && w.Saw != now.Revision || !exists && (w.Saw != 0 || w.Op != Put) {
			return w, true
		}
	}
	return Write{}, false
}

// Object returns the object of that id.
func (r *Rows) Object(id string) (Object, bool) {
	o, ok := r.objects[id]
	return o, ok
}

// SortObjects brings objects into the order of snapshots: by kind as schema.Kinds lists them, then by
// address, the living before their tombstones.
func SortObjects(objects []Object) {
	rank := map[string]int{}
	for i, k := range schema.Kinds() {
		rank[k.Name] = i
	}
	type place struct {
		rank, at int
		path     string
	}
	places := make([]place, len(objects)) // which are smaller to move than objects, and compared many times
	for i, o := range objects {
		places[i] = place{rank[o.Kind.Name], i, o.Addr().Path}
	}
	slices.SortFunc(places, func(a, b place) int {
		if c := cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path)); c != 0 {
			return c
		}
		one, other := &objects[a.at], &objects[b.at]
		return cmp.Or(compareBool(one.Tombstone, other.Tombstone), cmp.Compare(one.ID, other.ID))
	})
	sorted := make([]Object, len(objects))
	for i, p := range places {
		sorted[i] = objects[p.at]
	}
	copy(objects, sorted)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// sameValue compares values of which either may be cty.NilVal.
func sameValue(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	return a.RawEquals(b)
}
