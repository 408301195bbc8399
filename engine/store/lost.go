package store

import (
	"cmp"
	"slices"

	"github.com/qod-io/qod/schema"
)

// Lost is an object that is gone although the stack that owned it did not end it: somebody else's commit
// deleted it, or somebody deleted its row.
type Lost struct {
	ID      string
	Addr    schema.Addr
	Address string // where the configuration has the object
}

// SortLost brings lost objects into the order of snapshots: by kind name, address and id.
func SortLost(list []Lost) {
	slices.SortFunc(list, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(a.Addr.Kind, b.Addr.Kind), cmp.Compare(a.Addr.Path, b.Addr.Path), cmp.Compare(a.ID, b.ID))
	})
}

// memoryLost is a lost object of a Memory.
type memoryLost struct {
	Lost
	stack string
}

// lostObjects returns what each stack has lost. What came back under its id is not lost.
func (m *Memory) lostObjects() map[string][]Lost {
	lost := map[string][]Lost{}
	for id, l := range m.lost {
		if !m.lives(id) {
			lost[l.stack] = append(lost[l.stack], l.Lost)
		}
	}
	for _, list := range lost {
		SortLost(list)
	}
	return lost
}

func (m *Memory) lives(id string) bool {
	o, exists := m.objects[id]
	return exists && !o.Tombstone
}

// settle drops the records of what the commit's stack takes note of, and of what came back. It is called
// before the objects change.
func (m *Memory) settle(c Change) {
	for id, l := range m.lost {
		if l.stack == c.Stack.Name && (slices.Contains(c.Settle, id) || m.lives(id)) {
			delete(m.lost, id)
		}
	}
}

// lose records what a commit ended of stacks other than its own. It is called after the objects have changed.
func (m *Memory) lose(c Change, e *Edit) {
	for id, was := range e.Before {
		if was == nil || was.Tombstone || was.Stack == "" || was.Stack == c.Stack.Name || m.lives(id) {
			continue
		}
		m.lost[id] = memoryLost{Lost{ID: id, Addr: was.Addr(), Address: was.Address}, was.Stack}
	}
}
