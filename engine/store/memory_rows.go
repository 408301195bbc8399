package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/qod-io/qod/schema"
)

// ListApplies implements Applies.
func (m *Memory) ListApplies(ctx context.Context, after Revision, limit int) ([]Apply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Apply
	for _, apply := range slices.Backward(m.history) {
		if apply.Revision <= after || limit > 0 && len(out) == limit {
			break
		}
		apply.Before = maps.Clone(apply.Before)
		out = append(out, apply)
	}
	return out, ctx.Err()
}

// StackOutputs implements Applies.
func (m *Memory) StackOutputs(ctx context.Context, stack string) ([]schema.Output, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return OpenOutputs(m.sealer, stack, m.outputs[stack])
}

func (m *Memory) shownOutputs() map[string][]schema.Output {
	shown := map[string][]schema.Output{}
	for stack, outputs := range m.outputs {
		if len(outputs) > 0 {
			shown[stack] = ShownOutputs(outputs)
		}
	}
	return shown
}

func withoutStatus(before map[string]*Object) map[string]*Object {
	out := make(map[string]*Object, len(before))
	for id, o := range before {
		if o != nil {
			o = new(*o)
			o.Status = Status{}
		}
		out[id] = o
	}
	return out
}

// ListNodes implements Nodes.
func (m *Memory) ListNodes(ctx context.Context) ([]Node, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := slices.Collect(maps.Values(m.nodes))
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	return nodes, ctx.Err()
}

// PutNode implements Nodes.
func (m *Memory) PutNode(ctx context.Context, n Node) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	n.Started, n.Seen = Stamp(n.Started), m.nodes[n.ID].Seen
	if have, ok := m.nodes[n.ID]; ok && have == n {
		return nil
	}
	m.nodes[n.ID] = n
	m.raise()
	return nil
}

// RemoveNode implements Nodes.
func (m *Memory) RemoveNode(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := m.nodes[id]; !ok {
		return nil
	}
	delete(m.nodes, id)
	m.raise()
	return nil
}

// SawNodes implements Nodes.
func (m *Memory) SawNodes(ctx context.Context, ids []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, id := range ids {
		if n, ok := m.nodes[id]; ok {
			n.Seen = Stamp(time.Now())
			m.nodes[id] = n
		}
	}
	return nil
}

// ListKeys implements Keys.
func (m *Memory) ListKeys(ctx context.Context) ([]Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listKeys(), ctx.Err()
}

func (m *Memory) listKeys() []Key {
	keys := slices.Collect(maps.Values(m.keys))
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return keys
}

// AddKey implements Keys.
func (m *Memory) AddKey(ctx context.Context, k Key) ([]Key, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, ok := m.keys[k.ID]; !ok {
		k.Created = Stamp(k.Created)
		m.keys[k.ID] = k
		m.raise()
	}
	return m.listKeys(), nil
}

// Check says what is wrong with a key.
func (k Key) Check() error {
	if k.ID < 1 || k.ID > 255 {
		return fmt.Errorf("add key: id %d is not from 1 to 255", k.ID)
	}
	return nil
}

// Stamp returns a time as stores keep it: to the microsecond, in UTC.
func Stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Day returns the start of the UTC day that a statement belongs to.
func Day(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// AppendStatements implements Statements.
func (m *Memory) AppendStatements(ctx context.Context, rows []Statement) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, row := range rows {
		row.Started = Stamp(row.Started)
		row.Duration = row.Duration.Truncate(time.Microsecond)
		m.statements[statementKey{row.ID, row.Started}] = row
	}
	return nil
}

// ExpireStatements implements Statements.
func (m *Memory) ExpireStatements(ctx context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.statements, func(_ statementKey, s Statement) bool {
		return !Day(s.Started).Add(24 * time.Hour).After(before)
	})
	return ctx.Err()
}

// ListStatements implements Statements.
func (m *Memory) ListStatements(ctx context.Context, limit int) ([]Statement, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows := slices.Collect(maps.Values(m.statements))
	slices.SortFunc(rows, func(a, b Statement) int {
		return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(b.ID, a.ID))
	})
	return rows[:max(0, min(limit, len(rows)))], ctx.Err()
}
