package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func newRollback(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Make the stack's objects as they were at a revision",
		Long: "rollback makes a plan like any other, shows it, asks, and carries it out: afterwards the stack's objects are as they\n" +
			"were right after that REVISION, as qod history lists them. Objects keep their identity, under whatever name.\n\n" +
			"Some things do not come back. Past secrets are not kept: a password that has changed since stays as it is now.\n" +
			"The data of a database that was destroyed is gone: a rollback refuses to make an empty one in its place, unless\n" +
			"--allow-empty-databases is given. What is inside of databases is never rolled back. Objects that belong to another\n" +
			"stack now are left alone, and what is protected now stays so. Only objects are rolled back, not the files:\n" +
			"the next qod plan will want to undo it.",
		Example: "  qod diff 12\n  qod rollback 12\n  qod rollback 12 --out back.qodplan && qod apply back.qodplan",
		Args:    cobra.ExactArgs(1),
	}
	how := addApplyFlags(cmd)
	out := cmd.Flags().String("out", "", "only save the plan to this `FILE`, for apply")
	empty := cmd.Flags().Bool("allow-empty-databases", false, "let databases that were destroyed come back without their data")
	s := scopeFlags(cmd, false)
	completeFiles(cmd, "out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := how.options("rollback")
		if err != nil {
			return err
		}
		if *out == "" {
			if err := o.asked(); err != nil {
				return err
			}
		}
		stack, err := a.ownStack(s)
		if err != nil {
			return err
		}
		back := back{app: a, tell: a.teller(o.json), stack: stack, revision: args[0], empty: *empty, out: *out}
		return back.tell.ended(back.run(cmd.Context(), o))
	}
	return cmd
}

// back is the way of a stack back to a revision.
type back struct {
	*app
	tell     teller
	stack    store.Stack
	revision string
	empty    bool   // databases that were destroyed come back without their data
	out      string // only save the plan to this file
}

func (b back) run(ctx context.Context, o applyOptions) error {
	b.tellServer()
	rules, err := b.goodPolicy(o.policy, b.tell)
	if err != nil {
		return err
	}
	w, err := b.openState(ctx, openOptions{write: b.out == ""})
	if err != nil {
		return err
	}
	defer w.Close()
	p, err := b.plan(ctx, w, rules)
	if err != nil {
		return err
	}
	if b.out != "" {
		if err := savePlan(w.plans, p, b.paths.file(b.out)); err != nil {
			return err
		}
		b.tell.aside("\nSaved to %s. It can be applied once: qod apply %s\n", b.out, b.out)
		return nil
	}
	if err := b.carryOut(ctx, &made{Plan: p, world: w, stack: b.stack}, o, b.tell); err != nil {
		return err
	}
	if len(p.Changes) > 0 {
		b.tell.aside("Your files still say otherwise: the next qod plan will want to undo this.\n")
	}
	return nil
}

// plan plans the way back and tells it.
func (b back) plan(ctx context.Context, w *world, rules *config.Policy) (*engine.Plan, error) {
	past, err := w.past(ctx)
	if err != nil {
		return nil, err
	}
	rev, err := past.revision(b.revision)
	if err != nil {
		return nil, err
	}
	if rev == 0 {
		return nil, fmt.Errorf("before revision 1 there was nothing: qod destroy ends everything the stack owns")
	}
	p, err := b.wayBack(ctx, w, past, rev)
	if err != nil {
		return nil, refused(err)
	}
	b.tell.aside("Back to revision %d:\n\n", rev)
	if p.Empty() && len(p.Problems) == 0 {
		b.tell.aside("No changes. Stack %q is as it was then.\n", b.stack.Name)
		return p, nil
	}
	noFiles := &configuration{Desired: &config.Desired{}} // say what is planned
	v, err := judgePlan(rules, p.Plan, noFiles)
	if err != nil {
		return nil, err
	}
	if err := b.tell.planned(p.Plan, noFiles, v); err != nil {
		return nil, err
	}
	if p.Failed() {
		return nil, errConfiguration
	}
	return p, v.err()
}

// wayBack plans the way back to a revision.
func (b back) wayBack(ctx context.Context, w *world, past *past, rev store.Revision) (*engine.Plan, error) {
	if w.server != nil {
		return w.server.wayBack(ctx, b.stack, rev, b.empty)
	}
	desired, problems, err := w.asOf(ctx, past, b.stack.Name, rev, b.empty)
	if err != nil {
		return nil, err
	}
	p, err := w.plans.Plan(ctx, b.stack, desired, engine.PlanOptions{})
	if err != nil {
		return nil, err
	}
	p.Problems = append(problems, p.Problems...)
	for i := range p.Changes {
		if p.Changes[i].Action == plan.Delete {
			p.Changes[i].Detail = fmt.Sprintf("it was not there at revision %d", rev)
		}
	}
	return p, nil
}

// asOf returns what a stack has to ask for to be as it was, and what stands in the way.
func (w *world) asOf(ctx context.Context, p *past, stack string, rev store.Revision, empty bool) (schema.Desired, []plan.Problem, error) {
	then, err := p.at(rev)
	if err != nil {
		return schema.Desired{}, nil, err
	}
	open, err := w.postgres.StackOutputs(ctx, stack)
	if err != nil {
		return schema.Desired{}, nil, err
	}
	shown := p.Outputs[stack]
	desired, problems := history.Past{
		Stack: stack, Revision: rev, Now: p.Objects, Then: then, AllowEmpty: empty,
		Shown: shown, ThenShown: history.OutputsAt(shown, p.applies, stack, rev), Open: open,
		Ever: history.EverConcealed(p.Snapshot, p.applies),
	}.Desired()
	return desired, problems, nil
}
