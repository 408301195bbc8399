package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/qod-io/qod/schema"
)

// Memory is a store that ends with its process: for tests, and for trying out a configuration. It
// implements Store and the interfaces beside it.
type Memory struct {
	sealer *Sealer

	mu         sync.Mutex
	revision   Revision
	changed    chan struct{} // closed and replaced when revision rises
	objects    map[string]Object
	refs       map[string][]ObjectRef
	secrets    map[SecretKey]Sealed
	stacks     map[string]Stack
	outputs    map[string][]KeptOutput // by stack
	lost       map[string]memoryLost   // by id
	plans      map[string]bool
	history    []Apply
	leases     map[string]*memoryLease // held ones
	terms      map[string]int64
	nodes      map[string]Node
	keys       map[int]Key
	statements map[statementKey]Statement

	memoryIdentity
}

type statementKey struct {
	id      string
	started time.Time
}

// NewMemory returns an empty store. The sealer may be nil if no secrets are written.
func NewMemory(sealer *Sealer) *Memory {
	return &Memory{
		sealer:  sealer,
		changed: make(chan struct{}),
		objects: map[string]Object{},
		refs:    map[string][]ObjectRef{},
		secrets: map[SecretKey]Sealed{},
		stacks:  map[string]Stack{},
		outputs: map[string][]KeptOutput{},
		lost:    map[string]memoryLost{},
		plans:   map[string]bool{},
		leases:  map[string]*memoryLease{},
		terms:   map[string]int64{},
		nodes:   map[string]Node{},
		keys:    map[int]Key{},

		statements: map[statementKey]Statement{},

		memoryIdentity: newMemoryIdentity(),
	}
}

// Snapshot implements Store.
func (m *Memory) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	objects := slices.Collect(maps.Values(m.objects))
	SortObjects(objects)
	return &Snapshot{
		Revision: m.revision,
		Objects:  objects,
		Secrets:  maps.Clone(m.secrets),
		Lost:     m.lostObjects(),
		Tokens:   m.listTokens(),
		Revoked:  m.listRevocations(),
		Stacks:   maps.Clone(m.stacks),
		Outputs:  m.shownOutputs(),
	}, nil
}

// Commit implements Store.
func (m *Memory) Commit(ctx context.Context, c Change) (Revision, error) {
	sealed, err := c.Seal(m.sealer)
	if err != nil {
		return 0, err
	}
	outputs, err := c.KeepOutputs(m.sealer)
	if err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	edit, err := m.edit(ctx, c, outputs)
	if err != nil {
		return 0, err
	}
	if edit == nil {
		return m.revision, nil
	}
	if SameOutputs(outputs, m.outputs[c.Stack.Name]) {
		outputs = nil
	}
	m.save(c, edit, sealed, outputs)
	return m.revision, nil
}

// Check implements Store.
func (m *Memory) Check(ctx context.Context, c Change) error {
	if _, err := c.Seal(m.sealer); err != nil {
		return err
	}
	outputs, err := c.KeepOutputs(m.sealer)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err = m.edit(ctx, c, outputs)
	return err
}

// edit is what a change does to the objects, nil when it does nothing at all. m.mu is held.
func (m *Memory) edit(ctx context.Context, c Change, outputs []KeptOutput) (*Edit, error) {
	if err := m.admit(ctx, c); err != nil {
		return nil, err
	}
	if SameOutputs(outputs, m.outputs[c.Stack.Name]) && c.Idle(m.stacks[c.Stack.Name]) {
		return nil, nil
	}
	rows := m.rows()
	if w, moved := rows.Moved(c); moved {
		return nil, m.conflict(w)
	}
	return rows.Apply(c, m.revision+1)
}

func (m *Memory) admit(ctx context.Context, c Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.plans[c.PlanID] {
		return ErrPlanUsed
	}
	if err := c.Admit(m.stacks[c.Stack.Name]); err != nil {
		return err
	}
	return m.held(c.Lease)
}

func (m *Memory) held(l Lease) error {
	if l == nil {
		return nil
	}
	return Held(l, m.terms[l.Name()])
}

func (m *Memory) rows() *Rows {
	var refs []ObjectRef
	for _, of := range m.refs {
		refs = append(refs, of...)
	}
	return NewRows(slices.Collect(maps.Values(m.objects)), refs)
}

func (m *Memory) conflict(w Write) error {
	var now, seen *Object
	if o, ok := m.objects[w.ID]; ok {
		now = &o
	}
	var last Touch
	for _, c := range m.history {
		before, touched := c.Before[w.ID]
		if !touched {
			continue
		}
		last = Touch{c.Stack, c.By, c.Revision}
		if seen == nil && c.Revision > w.Saw {
			seen = before
		}
	}
	return Conflict(w, now, seen, last)
}

// save takes the outputs to keep, or nil to leave them alone.
func (m *Memory) save(c Change, e *Edit, sealed map[SecretKey]Sealed, outputs []KeptOutput) {
	m.settle(c)
	for _, o := range e.Put {
		m.objects[o.ID] = o
	}
	maps.Copy(m.refs, e.Refs)
	for _, key := range e.Forget {
		delete(m.secrets, key)
	}
	maps.Copy(m.secrets, sealed)
	m.remove(e.Removed)
	m.lose(c, e)
	if c.Stack.Name != "" {
		m.stacks[c.Stack.Name] = c.Stack
	}
	if c.PlanID != "" {
		m.plans[c.PlanID] = true
	}
	var outputsBefore []schema.Output
	if outputs != nil {
		outputsBefore = ShownOutputs(m.outputs[c.Stack.Name])
		m.outputs[c.Stack.Name] = outputs
	}
	m.raise()
	m.history = append(m.history, Apply{
		Revision: m.revision, At: Stamp(time.Now()), By: c.By, From: c.From, Stack: c.Stack.Name,
		PlanID: c.PlanID, Note: c.Note, Before: withoutStatus(e.Before), Outputs: outputsBefore,
	})
}

func (m *Memory) remove(ids []string) {
	if len(ids) == 0 {
		return
	}
	gone := map[string]bool{}
	for _, id := range ids {
		gone[id] = true
		delete(m.objects, id)
		delete(m.refs, id)
	}
	for from, refs := range m.refs {
		m.refs[from] = slices.DeleteFunc(slices.Clone(refs), func(r ObjectRef) bool { return gone[r.To] })
	}
	maps.DeleteFunc(m.secrets, func(k SecretKey, _ Sealed) bool { return gone[k.Object] })
	maps.DeleteFunc(m.tokens, func(_ string, t Token) bool { return gone[t.Owner] })
}

func (m *Memory) raise() {
	m.revision++
	close(m.changed)
	m.changed = make(chan struct{})
}

// SetStatus implements Store.
func (m *Memory) SetStatus(ctx context.Context, id string, s Status, l Lease) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := m.held(l); err != nil {
		return err
	}
	o, ok := m.objects[id]
	if !ok {
		return fmt.Errorf("set status of object %s: %w", id, ErrNotFound)
	}
	if o.Status == s {
		return nil
	}
	o.Status = s
	m.objects[id] = o
	m.raise()
	return nil
}

// Watch implements Store.
func (m *Memory) Watch(ctx context.Context, on func(Revision)) error {
	return m.Heartbeat(ctx, OnChange(on))
}

// Heartbeat implements Store.
func (m *Memory) Heartbeat(ctx context.Context, on func(Revision)) error {
	tick := time.NewTicker(HeartbeatInterval)
	defer tick.Stop()
	for {
		m.mu.Lock()
		now, changed := m.revision, m.changed
		m.mu.Unlock()
		on(now)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Acquire implements Store.
func (m *Memory) Acquire(ctx context.Context, name, holder string) (Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l, held := m.leases[name]; held {
		return nil, &HeldError{Name: name, Holder: l.holder, Since: l.since}
	}
	m.terms[name]++
	l := &memoryLease{
		memory: m, name: name, holder: holder, term: m.terms[name],
		since: time.Now(), done: make(chan struct{}),
	}
	m.leases[name] = l
	return l, nil
}

type memoryLease struct {
	memory       *Memory
	name, holder string
	term         int64
	since        time.Time
	done         chan struct{}
}

func (l *memoryLease) Name() string          { return l.name }
func (l *memoryLease) Term() int64           { return l.term }
func (l *memoryLease) Done() <-chan struct{} { return l.done }

func (l *memoryLease) Release() {
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	if l.memory.leases[l.name] != l {
		return
	}
	delete(l.memory.leases, l.name)
	close(l.done)
}
