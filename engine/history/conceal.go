package history

import (
	"slices"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Concealed says what must not be shown of the past since it is sensitive at any time: a value that is hidden
// today is often the one that was written before it was.
type Concealed struct {
	attrs   map[string][]string        // by id of the object
	outputs map[string]map[string]bool // by stack and name
}

const withheldNote = "(not shown: values in it have become sensitive since)"

// EverConcealed takes a snapshot, and all commits up to it.
func EverConcealed(snap *store.Snapshot, applies []store.Apply) Concealed {
	c := Concealed{map[string][]string{}, map[string]map[string]bool{}}
	for _, o := range snap.Objects {
		c.add(o)
	}
	for stack, outputs := range snap.Outputs {
		c.addOutputs(stack, outputs)
	}
	for _, a := range applies {
		for _, before := range a.Before {
			if before != nil {
				c.add(*before)
			}
		}
		c.addOutputs(a.Stack, a.Outputs)
	}
	return c
}

func (c Concealed) add(o store.Object) {
	for _, name := range o.Sensitive {
		if !slices.Contains(c.attrs[o.ID], name) {
			c.attrs[o.ID] = append(c.attrs[o.ID], name)
		}
	}
}

func (c Concealed) addOutputs(stack string, outputs []schema.Output) {
	for _, o := range outputs {
		if !o.Sensitive {
			continue
		}
		if c.outputs[stack] == nil {
			c.outputs[stack] = map[string]bool{}
		}
		c.outputs[stack][o.Name] = true
	}
}

// conceal hides on both sides of changes what is concealed at any time. It reports whether that hides something
// that a plan of the changes has shown: it was not known then to be sensitive.
func (c Concealed) conceal(changes []Change) (more bool) {
	for i := range changes {
		was, is := &changes[i].Before, &changes[i].After
		for _, name := range c.attrs[changes[i].Object().ID] {
			hidden := func(o *store.Object) bool { return o != nil && o.Conceals(name) }
			more = more || !hidden(*was) && !hidden(*is)
		}
		*was, *is = c.concealed(*was), c.concealed(*is)
	}
	return more
}

func (c Concealed) concealed(o *store.Object) *store.Object {
	if o == nil || len(c.attrs[o.ID]) == 0 {
		return o
	}
	hidden := *o
	hidden.Sensitive = slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Sensitive, c.attrs[o.ID]))))
	return &hidden
}

// concealOutputs does for the outputs of a stack what conceal does for objects.
func (c Concealed) concealOutputs(stack string, changes []OutputChange) (more bool) {
	for i := range changes {
		if !c.outputs[stack][changes[i].Name] {
			continue
		}
		shown := true
		for _, side := range []**schema.Output{&changes[i].Before, &changes[i].After} {
			if *side != nil {
				hidden := **side
				shown = shown && !hidden.Sensitive
				hidden.Sensitive = true
				*side = &hidden
			}
		}
		more = more || shown
	}
	return more
}
