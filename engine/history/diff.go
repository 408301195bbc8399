package history

import (
	"cmp"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Action says what became of an object between two times.
type Action string

const (
	// Created objects were not there before.
	Created Action = "created"
	// Changed objects have another value, name or protection, or other attributes are written by their owner.
	Changed Action = "changed"
	// Moved objects have only another address in their stack's configuration.
	Moved Action = "moved"
	// TakenOver objects belong to another stack than before.
	TakenOver Action = "taken_over"
	// Forgotten objects lost their owner.
	Forgotten Action = "forgotten"
	// Destroyed objects are gone, or only their outside is still to go.
	Destroyed Action = "destroyed"
	// Ended objects were destroyed before, and now their outside is gone too.
	Ended Action = "ended"
)

// Change is an object that differs between two times.
type Change struct {
	Action        Action
	Before, After *store.Object // nil: it was not there
}

// Object returns the object as it is after the change, or as it last was.
func (c Change) Object() *store.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// Of reports whether the stack has the object, or had it before.
func (c Change) Of(stack string) bool {
	return c.Before != nil && c.Before.Stack == stack || c.After != nil && c.After.Stack == stack
}

// Diff lists what differs between two times, in the order of snapshots. What went comes before what was made
// in its place. Both sides of a change conceal what is concealed at any time.
func Diff(before, after []store.Object, ever Concealed) []Change {
	changes := diff(before, after)
	ever.conceal(changes)
	return changes
}

func diff(before, after []store.Object) []Change {
	was, is := byID(before), byID(after)
	var changes []Change
	add := func(c Change) {
		if c.Action = action(c.Before, c.After); c.Action != "" {
			changes = append(changes, c)
		}
	}
	for _, o := range before {
		c := Change{Before: &o}
		if a, stays := is[o.ID]; stays {
			c.After = &a
		}
		add(c)
	}
	for _, o := range after {
		if _, stays := was[o.ID]; !stays {
			add(Change{After: &o})
		}
	}
	sortChanges(changes)
	return changes
}

func sortChanges(changes []Change) {
	rank := map[string]int{}
	for i, k := range schema.Kinds() {
		rank[k.Name] = i
	}
	stays := func(c Change) int {
		if c.After != nil && !c.After.Tombstone {
			return 1
		}
		return 0
	}
	slices.SortFunc(changes, func(x, y Change) int {
		a, b := x.Object(), y.Object()
		return cmp.Or(
			cmp.Compare(rank[a.Kind.Name], rank[b.Kind.Name]), cmp.Compare(a.Addr().Path, b.Addr().Path),
			cmp.Compare(stays(x), stays(y)), cmp.Compare(a.ID, b.ID),
		)
	})
}

// action returns "" where nothing differs. A status is no difference.
func action(before, after *store.Object) Action {
	switch {
	case before == nil && after.Tombstone:
		return "" // made and destroyed in between
	case before == nil:
		return Created
	case before.Tombstone && after == nil:
		return Ended
	case before.Tombstone:
		return ""
	case after == nil || after.Tombstone:
		return Destroyed
	case before.Stack != after.Stack && after.Stack == "":
		return Forgotten
	case before.Stack != after.Stack:
		return TakenOver
	case !before.Spec.RawEquals(after.Spec), !same(before.Applied, after.Applied), before.Protected != after.Protected,
		!slices.Equal(before.Sensitive, after.Sensitive):
		return Changed
	case before.Address != after.Address:
		return Moved
	}
	return ""
}

func same(a, b cty.Value) bool {
	if a == cty.NilVal || b == cty.NilVal {
		return a == b
	}
	return a.RawEquals(b)
}

// Counts says how many objects were added, changed and destroyed. What only changes owner or address
// counts as changed.
func Counts(changes []Change) (add, change, destroy int) {
	for _, c := range changes {
		switch c.Action {
		case Created:
			add++
		case Destroyed:
			destroy++
		case Ended:
		case Changed, Moved, TakenOver, Forgotten:
			change++
		}
	}
	return add, change, destroy
}

// Attr is an attribute or block that differs. Nothing of a Hidden one may be shown.
type Attr struct {
	Name          string
	Before, After cty.Value // null: not written
	Hidden        bool
}

// Attrs lists what differs in the object's value, in the order of its kind.
func (c Change) Attrs() []Attr {
	kind := c.Object().Kind
	before, after := kind.Empty(), kind.Empty()
	if c.Before != nil && c.Action != Created {
		before = c.Before.Spec
	}
	if c.After != nil && c.Action != Destroyed {
		after = c.After.Spec
	}
	var attrs []Attr
	for _, name := range kind.Names() {
		a := Attr{Name: name, Before: before.GetAttr(name), After: after.GetAttr(name)}
		if absent(a.Before) && absent(a.After) || a.Before.RawEquals(a.After) {
			continue
		}
		a.Hidden = c.Before != nil && c.Before.Conceals(name) || c.After != nil && c.After.Conceals(name)
		attrs = append(attrs, a)
	}
	return attrs
}

func absent(v cty.Value) bool {
	return v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0
}

// OutputChange is an output that differs; nil where there was none.
type OutputChange struct {
	Name          string
	Before, After *schema.Output
}

// DiffOutputs lists the outputs of a stack that differ, by name. Both are as snapshots have them. What is
// sensitive at any time is so in the result.
func DiffOutputs(stack string, before, after []schema.Output, ever Concealed) []OutputChange {
	changes := diffOutputs(before, after)
	ever.concealOutputs(stack, changes)
	return changes
}

func diffOutputs(before, after []schema.Output) []OutputChange {
	names := map[string]*OutputChange{}
	var order []string
	at := func(name string) *OutputChange {
		if names[name] == nil {
			names[name] = &OutputChange{Name: name}
			order = append(order, name)
		}
		return names[name]
	}
	for _, o := range before {
		at(o.Name).Before = &o
	}
	for _, o := range after {
		at(o.Name).After = &o
	}
	slices.Sort(order)
	var changes []OutputChange
	for _, name := range order {
		c := *names[name]
		if c.Before == nil || c.After == nil || !store.SameOutput(*c.Before, *c.After) {
			changes = append(changes, c)
		}
	}
	return changes
}
