// Package history says what a store was: it walks back from the objects of now over the records of
// commits, tells two times apart, and turns the objects of a stack at a revision into what a rollback
// asks for. It is pure: reading the store and carrying a rollback out are left to others.
package history

import (
	"fmt"
	"maps"
	"slices"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// At returns the objects as they were right after a revision, in the order of snapshots. It takes those of
// now and all commits up to now, newest first. Objects that have changed since have no status.
//
// Where the records do not reach back to the revision, the error names the oldest one that can be read.
func At(objects []store.Object, applies []store.Apply, rev store.Revision) ([]store.Object, error) {
	at := byID(objects)
	begin := store.Revision(0)
	for _, a := range applies {
		if begin = a.Revision - 1; a.Revision <= rev {
			begin = 0 // what was before does not matter
			break
		}
		undo(at, a)
	}
	if len(applies) == 0 && len(objects) > 0 {
		for _, o := range objects {
			begin = max(begin, o.Revision)
		}
	}
	if rev < begin && len(at) > 0 {
		return nil, fmt.Errorf("revision %d is not known any more: the history reaches back to revision %d", rev, begin)
	}
	return listed(at), nil
}

func byID(objects []store.Object) map[string]store.Object {
	at := make(map[string]store.Object, len(objects))
	for _, o := range objects {
		at[o.ID] = o
	}
	return at
}

// undo takes one commit back.
func undo(at map[string]store.Object, a store.Apply) {
	for id, before := range a.Before {
		if before == nil {
			delete(at, id)
			continue
		}
		at[id] = *before
	}
}

func listed(at map[string]store.Object) []store.Object {
	objects := slices.Collect(maps.Values(at))
	store.SortObjects(objects)
	return objects
}

// OutputsAt does for the outputs of a stack what At does for objects.
func OutputsAt(outputs []schema.Output, applies []store.Apply, stack string, rev store.Revision) []schema.Output {
	for _, a := range applies {
		if a.Revision <= rev {
			break
		}
		if a.Stack == stack && a.Outputs != nil {
			outputs = a.Outputs
		}
	}
	return outputs
}

// Step is a commit with what it changed. Where that has since become sensitive, its Note, which shows the
// values of then, is another one.
type Step struct {
	store.Apply
	Changes []Change
	Outputs []OutputChange
}

// Touches reports whether the commit was of the stack, or changed what it owned: the end of what an object
// had outside the store is nobody's commit.
func (s Step) Touches(stack string) bool {
	return s.Stack == stack || slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Of(stack) })
}

// Steps returns what each commit changed, newest first. It takes a snapshot, and all commits up to it.
func Steps(snap *store.Snapshot, applies []store.Apply) []Step {
	ever := EverConcealed(snap, applies)
	at := byID(snap.Objects)
	outputs := maps.Clone(snap.Outputs)
	if outputs == nil {
		outputs = map[string][]schema.Output{}
	}
	steps := make([]Step, 0, len(applies))
	for _, a := range applies {
		var before, after []store.Object
		for id, was := range a.Before {
			if was != nil {
				before = append(before, *was)
			}
			if is, ok := at[id]; ok {
				after = append(after, is)
			}
		}
		s := Step{Apply: a, Changes: diff(before, after)}
		if a.Outputs != nil {
			s.Outputs = diffOutputs(a.Outputs, outputs[a.Stack])
			outputs[a.Stack] = a.Outputs
		}
		objects, results := ever.conceal(s.Changes), ever.concealOutputs(a.Stack, s.Outputs)
		if objects || results {
			s.Note = withheldNote
		}
		undo(at, a)
		steps = append(steps, s)
	}
	return steps
}

// Last returns the newest commit that touched an object, and false when none is known.
func Last(applies []store.Apply, id string) (store.Apply, bool) {
	i := slices.IndexFunc(applies, func(a store.Apply) bool {
		_, touched := a.Before[id]
		return touched
	})
	if i < 0 {
		return store.Apply{}, false
	}
	return applies[i], true
}
