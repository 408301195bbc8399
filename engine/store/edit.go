package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/schema"
)

// Edit is what a change comes to: the rows that differ afterwards, those that follow a rename included.
type Edit struct {
	Put     []Object               // new or changed
	Removed []string               // ids whose rows go, with secrets and references
	Before  map[string]*Object     // what Put and Removed replace; nil for a new object
	Refs    map[string][]ObjectRef // the references of each written object, by its id
	Forget  []SecretKey            // secrets whose attribute was left out now and had a value before
}

// Apply works out what a change does to the rows, or why it must not happen: then the error is a
// ConflictError. The caller has made sure that nothing has Moved. Rows stay as they are.
func (r *Rows) Apply(c Change, next Revision) (*Edit, error) {
	d := &draft{
		rows: r, next: next,
		after: map[string]Object{}, gone: map[string]bool{}, written: map[string]bool{},
		live: map[schema.Addr]string{}, blocks: map[block]string{}, refs: map[string][]ObjectRef{},
	}
	for _, w := range c.Writes {
		if err := d.write(w); err != nil {
			return nil, err
		}
	}
	d.followRenames()
	for _, check := range []func() error{d.index, d.resolveWritten, d.keepReferrers, d.keepDependants} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return d.edit(), nil
}

// draft is a change half applied.
type draft struct {
	rows    *Rows
	next    Revision
	order   []string          // touched ids, as first touched
	after   map[string]Object // touched objects that stay
	gone    map[string]bool   // touched objects whose rows go
	written map[string]bool   // ids named by the change; the other touched ones follow a rename
	live    map[schema.Addr]string
	blocks  map[block]string
	refs    map[string][]ObjectRef // of objects put by the change
	forget  []SecretKey
}

func (d *draft) write(w Write) error {
	if id, err := uuid.Parse(w.ID); err != nil || id.String() != w.ID {
		return fmt.Errorf("commit: %q is not the id of an object", w.ID)
	}
	if d.written[w.ID] {
		return fmt.Errorf("commit: object %s is written twice", w.ID)
	}
	d.written[w.ID] = true
	d.order = append(d.order, w.ID)
	old, exists := d.rows.objects[w.ID]
	if !exists && w.Op != Put {
		return fmt.Errorf("commit: there is no object %s", w.ID)
	}
	switch w.Op {
	case Put:
		return d.put(w, old, exists)
	case Bury:
		if !old.Tombstone {
			old.Tombstone, old.Revision = true, d.next
		}
		d.after[w.ID] = old
		return nil
	case Remove:
		d.gone[w.ID] = true
		return nil
	}
	return fmt.Errorf("commit: unknown operation %d on object %s", w.Op, w.ID)
}

func (d *draft) put(w Write, old Object, exists bool) error {
	if w.Kind == nil || w.Spec == cty.NilVal {
		return fmt.Errorf("commit: object %s is put without kind or value", w.ID)
	}
	o := Object{
		ID: w.ID, Kind: w.Kind, Spec: w.Spec, Applied: w.Applied, Address: w.Address, Stack: w.Stack,
		Generation: 1, Revision: d.next, Protected: w.Protected, Sensitive: sorted(w.Sensitive),
	}
	if exists && w.Address == old.Address && old.Addr().Names(old.Address) {
		o.Address = o.Addr().String()
	}
	if w.Stack == "" && w.Address == "" {
		o.Applied, o.Protected = cty.NilVal, false
	}
	if !exists {
		d.after[w.ID] = o
		return nil
	}
	if old.Kind.Name != w.Kind.Name {
		return fmt.Errorf("commit: object %s is a %s, not a %s", w.ID, old.Kind.Name, w.Kind.Name)
	}
	if old.Tombstone {
		return &ConflictError{old.Addr(), fmt.Sprintf("it is being deleted (%s)", author(old.Stack, "", old.Revision))}
	}
	same := sameValue(old.Spec, w.Spec)
	o.Generation, o.Status = old.Generation, old.Status
	if !same {
		o.Generation++
		d.forget = append(d.forget, dropped(w, old)...)
	}
	if same && len(w.Secrets) == 0 && sameOwner(old, o) {
		o.Revision = old.Revision
	}
	d.after[w.ID] = o
	return nil
}

// sameOwner compares all that the owner of an object has written beside its value.
func sameOwner(a, b Object) bool {
	return sameValue(a.Applied, b.Applied) && a.Address == b.Address && a.Stack == b.Stack &&
		a.Protected == b.Protected && slices.Equal(a.Sensitive, b.Sensitive)
}

// sorted returns nil for an empty list.
func sorted(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	return slices.Compact(names)
}

// dropped lists the secrets that the new value no longer has: a password that was taken out must not
// go on working.
func dropped(w Write, old Object) []SecretKey {
	var keys []SecretKey
	kept := map[string]bool{}
	for _, a := range w.Kind.Attrs {
		if a.Secret && !w.Spec.GetAttr(a.Name).IsNull() {
			kept[storedAs(a)] = true
		}
	}
	for _, a := range w.Kind.Attrs {
		name := storedAs(a)
		_, given := w.Secrets[name]
		if a.Secret && !given && !kept[name] && !old.Spec.GetAttr(a.Name).IsNull() {
			keys = append(keys, SecretKey{w.ID, name})
		}
	}
	return keys
}

// storedAs is the attribute under which a secret is kept.
func storedAs(a schema.Attr) string { return cmp.Or(a.StoredAs, a.Name) }

// index refuses two live objects of one key or one address.
func (d *draft) index() error {
	for _, id := range d.order {
		o, stays := d.after[id]
		if !stays || o.Tombstone {
			continue
		}
		addr := o.Addr()
		if _, twice := d.live[addr]; twice {
			return &ConflictError{addr, "one commit makes two objects of this name"}
		}
		if other, ok := d.resolve(addr); ok && other != id {
			now := d.rows.objects[other]
			return &ConflictError{addr, fmt.Sprintf("it exists already (%s)", author(now.Stack, "", now.Revision))}
		}
		d.live[addr] = id
		if o.Address == "" {
			continue
		}
		b := block{o.Stack, o.Address}
		other, taken := d.blocks[b]
		if !taken {
			other, taken = d.rows.blocks[b]
			taken = taken && !d.touched(other)
		}
		if taken {
			return &ConflictError{addr, fmt.Sprintf("%s of stack %q is the address of %s already", o.Address, o.Stack, d.object(other).Addr())}
		}
		d.blocks[b] = id
	}
	return nil
}

func (d *draft) touched(id string) bool {
	_, stays := d.after[id]
	return stays || d.gone[id]
}

// object returns an object as it is after the change.
func (d *draft) object(id string) Object {
	if o, ok := d.after[id]; ok {
		return o
	}
	return d.rows.objects[id]
}

// resolve returns the live object of that address after the change.
func (d *draft) resolve(a schema.Addr) (string, bool) {
	if id, ok := d.live[a]; ok {
		return id, true
	}
	id, ok := d.rows.live[a]
	return id, ok && !d.touched(id)
}

// resolveWritten looks up what the written objects refer to. A name that means another object than before is
// a change, also in a value that is the same.
func (d *draft) resolveWritten() error {
	for _, id := range d.order {
		o, stays := d.after[id]
		if !stays || o.Tombstone || !d.written[id] {
			continue
		}
		refs := []ObjectRef{}
		for _, ref := range o.Kind.Refs(o.Spec) {
			to, ok := d.resolve(ref.To)
			if !ok {
				return d.dangling(o, ref)
			}
			refs = append(refs, ObjectRef{From: id, Attr: ref.Attr, To: to})
		}
		d.refs[id] = refs
		if o.Revision != d.next && !sameRefs(refs, d.rows.refs[id]) {
			o.Revision = d.next
			d.after[id] = o
		}
	}
	return nil
}

// sameRefs compares references in any order: those of a set are in that of the names, which may change.
func sameRefs(a, b []ObjectRef) bool {
	order := func(refs []ObjectRef) []ObjectRef {
		return slices.SortedFunc(slices.Values(refs), func(a, b ObjectRef) int {
			return cmp.Or(cmp.Compare(a.Attr, b.Attr), cmp.Compare(a.To, b.To))
		})
	}
	return slices.Equal(order(a), order(b))
}

// keepReferrers makes sure that objects which the change does not name still refer to what they did,
// after one they refer to got another address.
func (d *draft) keepReferrers() error {
	var check []string
	for _, id := range d.order {
		o, stays := d.after[id]
		old, existed := d.rows.objects[id]
		if !stays || !existed || o.Addr() == old.Addr() {
			continue
		}
		for _, ref := range d.rows.referrers[id] {
			if !d.written[ref.From] {
				check = append(check, ref.From)
			}
		}
	}
	slices.Sort(check)
	for _, id := range slices.Compact(check) {
		o := d.object(id)
		if o.Tombstone {
			continue
		}
		for _, ref := range o.Kind.Refs(o.Spec) {
			to, ok := d.resolve(ref.To)
			if !ok || !slices.Contains(d.rows.refs[id], ObjectRef{From: id, Attr: ref.Attr, To: to}) {
				return d.dangling(o, ref)
			}
		}
	}
	return nil
}

// keepDependants refuses to delete what a live object refers to. A tombstone holds nothing: what it
// refers to may go first.
func (d *draft) keepDependants() error {
	for _, id := range d.order {
		if o, stays := d.after[id]; stays && !o.Tombstone {
			continue
		}
		var dependants []string
		for _, ref := range d.rows.referrers[id] {
			if from := d.object(ref.From); !d.gone[ref.From] && !from.Tombstone && !d.written[ref.From] {
				dependants = append(dependants, from.Addr().String())
			}
		}
		if len(dependants) > 0 {
			slices.Sort(dependants)
			return &ConflictError{d.rows.objects[id].Addr(), "it cannot be deleted: " + listed(slices.Compact(dependants)) + " would be left without it"}
		}
	}
	return nil
}

func (d *draft) edit() *Edit {
	e := &Edit{Before: map[string]*Object{}, Refs: map[string][]ObjectRef{}, Forget: d.forget}
	for _, id := range d.order {
		old, existed := d.rows.objects[id]
		o, stays := d.after[id]
		switch {
		case !stays:
			e.Removed = append(e.Removed, id)
		case o.Revision != d.next:
			continue
		default:
			e.Put = append(e.Put, o)
			if refs, put := d.refs[id]; put && !(existed && slices.Equal(refs, d.rows.refs[id])) {
				e.Refs[id] = refs
			}
		}
		e.Before[id] = nil
		if existed {
			e.Before[id] = &old
		}
	}
	return e
}

// Seal seals the secrets of a change.
func (c Change) Seal(s *Sealer) (map[SecretKey]Sealed, error) {
	sealed := map[SecretKey]Sealed{}
	for _, w := range c.Writes {
		if len(w.Secrets) > 0 && s == nil {
			return nil, errors.New("commit: there are secrets, but no master key to seal them with")
		}
		for _, attr := range slices.Sorted(maps.Keys(w.Secrets)) {
			key := SecretKey{w.ID, attr}
			sealed[key] = s.Seal(key, w.Secrets[attr])
		}
	}
	return sealed, nil
}

// Admit says whether a stack may commit, given the one known by its name: the zero Stack when none is.
func (c Change) Admit(known Stack) error {
	if c.Stack.Name == "" || known.Name == "" || known.Lineage == c.Stack.Lineage || c.AdoptStack {
		return nil
	}
	return &StackError{Name: c.Stack.Name, Have: known.Lineage, Want: c.Stack.Lineage}
}

// Held returns ErrTermOver when the lease is lost, or its term is not the current one. No lease is fine.
func Held(l Lease, current int64) error {
	if l == nil {
		return nil
	}
	select {
	case <-l.Done():
		return ErrTermOver
	default:
	}
	if l.Term() != current {
		return ErrTermOver
	}
	return nil
}
