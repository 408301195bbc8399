package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/crash"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
)

// Who says for whom a plan is applied; the history keeps it.
type Who struct {
	By   string // the operating system's user, or the principal
	From string // the host
}

// Commit writes a plan's changes to the store: all of them or none. It fails when an object that the
// plan touches has moved since, and when the plan was committed before.
func (e *Engine) Commit(ctx context.Context, p *Plan, who Who, adoptStack bool) error {
	c, err := e.change(p, adoptStack)
	if err != nil || c == nil {
		return err
	}
	note := &strings.Builder{}
	if err := (plan.Text{}).Write(note, p.Plan); err != nil {
		return err
	}
	c.By, c.From, c.Note = who.By, who.From, note.String()
	crash.Point("engine.before-commit")
	_, err = e.Store.Commit(ctx, *c)
	crash.Point("engine.after-commit")
	return err
}

// Check fails as Commit would now, and writes nothing.
func (e *Engine) Check(ctx context.Context, p *Plan, adoptStack bool) error {
	c, err := e.change(p, adoptStack)
	if err != nil || c == nil {
		return err
	}
	return e.Store.Check(ctx, *c)
}

// change is what a plan writes, nil when that is nothing.
func (e *Engine) change(p *Plan, adoptStack bool) (*store.Change, error) {
	if p.Failed() {
		return nil, errors.New("the plan has errors and cannot be applied")
	}
	if !p.Commits() {
		return nil, nil
	}
	if p.Lineage == "" {
		return nil, fmt.Errorf("stack %q has no lineage: run qod init where its configuration is", p.Stack)
	}
	writes, err := e.writes(p)
	if err != nil {
		return nil, err
	}
	return &store.Change{
		Writes: writes, Stack: store.Stack{Name: p.Stack, Lineage: p.Lineage}, AdoptStack: adoptStack,
		Outputs: p.Result, Settle: p.Settled, PlanID: p.ID,
	}, nil
}

func (e *Engine) writes(p *Plan) ([]store.Write, error) {
	var writes []store.Write
	for _, c := range p.Changes {
		if c.Action == plan.Delete || c.Action == plan.Replace {
			op := store.Remove
			if e.outside(c.Kind.Name) {
				op = store.Bury // the row goes once what it owns outside is gone
			}
			writes = append(writes, store.Write{Op: op, ID: c.ID, Kind: c.Kind, Saw: store.Revision(c.Saw)})
		}
		if c.Action == plan.Delete {
			continue
		}
		w, err := e.put(p, c)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// put is the write of what a change leaves behind. An object that is forgotten has no owner afterwards,
// and nothing that an owner applied.
func (e *Engine) put(p *Plan, c plan.Change) (store.Write, error) {
	w := store.Write{Op: store.Put, ID: c.Target(), Kind: c.Kind, Spec: c.Spec, Applied: cty.NilVal, Sensitive: c.Sensitive}
	if c.Action == plan.Update || c.Action == plan.Forget {
		w.Saw = store.Revision(c.Saw)
	}
	if c.Action == plan.Forget {
		return w, nil
	}
	w.Applied, w.Address, w.Stack, w.Protected = c.Applied, c.Address, p.Stack, c.Protected
	var err error
	if w.Secrets, err = e.secrets(p, c); err != nil {
		return w, err
	}
	if lifecycle := e.Lifecycles[c.Kind.Name]; lifecycle != nil && c.Action != plan.Update {
		fresh, err := lifecycle.Secrets()
		if err != nil {
			return w, fmt.Errorf("make secrets of %s: %w", c.Addr, err)
		}
		maps.Copy(w.Secrets, fresh)
	}
	return w, nil
}

// outside reports whether objects of that kind own something outside the store.
func (e *Engine) outside(kind string) bool { return kind == runs || e.Lifecycles[kind] != nil }
