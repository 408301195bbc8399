package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	if p.Failed() {
		return errors.New("the plan has errors and cannot be applied")
	}
	if len(p.Changes) == 0 {
		return nil
	}
	if p.Lineage == "" {
		return fmt.Errorf("stack %q has no lineage: run qod init where its configuration is", p.Stack)
	}
	writes, err := e.writes(p)
	if err != nil {
		return err
	}
	note := &strings.Builder{}
	if err := (plan.Text{}).Write(note, p.Plan); err != nil {
		return err
	}
	crash.Point("engine.before-commit")
	_, err = e.Store.Commit(ctx, store.Change{
		Writes: writes, Stack: store.Stack{Name: p.Stack, Lineage: p.Lineage}, AdoptStack: adoptStack,
		PlanID: p.ID, By: who.By, From: who.From, Note: note.String(),
	})
	crash.Point("engine.after-commit")
	return err
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
		secrets, err := e.secrets(p, c)
		if err != nil {
			return nil, err
		}
		if lifecycle := e.Lifecycles[c.Kind.Name]; lifecycle != nil && c.Action != plan.Update {
			fresh, err := lifecycle.Secrets()
			if err != nil {
				return nil, fmt.Errorf("make secrets of %s: %w", c.Addr, err)
			}
			for attr, secret := range fresh {
				secrets[attr] = secret
			}
		}
		w := store.Write{
			Op: store.Put, ID: target(c), Kind: c.Kind, Spec: c.Spec, Applied: c.Applied, Address: c.Address,
			Stack: p.Stack, Secrets: secrets,
		}
		if c.Action == plan.Update {
			w.Saw = store.Revision(c.Saw)
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// outside reports whether objects of that kind own something outside the store.
func (e *Engine) outside(kind string) bool { return kind == runs || e.Lifecycles[kind] != nil }
