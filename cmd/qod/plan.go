package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
)

func newPlan(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what apply would change, in the store and in the live world",
		Long: "plan compares the configuration with Postgres and with the live nodes, and prints what apply would do.\n" +
			"It writes nothing. With --detailed-exitcode it ends with 2 when there is something to do.",
		Example: "  qod plan\n  qod plan --out next.qodplan && qod apply next.qodplan\n  qod plan --destroy",
		Args:    cobra.NoArgs,
	}
	vars := varFlags(cmd)
	out := cmd.Flags().String("out", "", "save the plan to this file, for apply")
	detailed := cmd.Flags().Bool("detailed-exitcode", false, "end with 2 when there is something to do")
	destroy := cmd.Flags().Bool("destroy", false, "plan the end of everything the stack owns")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		world, p, err := a.plan(cmd.Context(), *vars, planOptions{destroy: *destroy, saving: *out != ""})
		if world != nil {
			defer world.Close()
		}
		if err != nil {
			return err
		}
		if *out != "" {
			if err := savePlan(world.engine, p, *out); err != nil {
				return err
			}
			a.printf("\nSaved to %s. It can be applied once: qod apply %s\n", *out, *out)
		}
		if *detailed && !p.Empty() {
			return exitError{code: 2}
		}
		return nil
	}
	return cmd
}

type planOptions struct {
	destroy bool
	saving  bool // to a file: needs the state's master key
	writing bool // the plan is to be applied
	adopt   bool // a known stack although the lock file has another lineage
}

// plan evaluates, opens what there is, plans and prints. The world is returned open, also with an error.
func (a *app) plan(ctx context.Context, vars []config.Given, o planOptions) (*world, *engine.Plan, error) {
	c, err := a.evaluate(vars)
	if err != nil {
		return nil, nil, err
	}
	w, err := a.open(ctx, openOptions{create: o.writing && !o.destroy, write: o.writing})
	if err != nil {
		return nil, nil, err
	}
	if w.imagined {
		a.printf("There is no state yet: everything is new. qod apply will make it in %s.\n\n", a.paths.StateDir)
		if o.saving {
			return w, nil, fmt.Errorf("a plan cannot be saved before there is state: run qod init first")
		}
	}
	stack, err := c.stack()
	if err != nil {
		return w, nil, err
	}
	if err := w.checkStack(ctx, stack, o.adopt); err != nil {
		return w, nil, err
	}
	if o.saving && stack.Lineage == "" {
		return w, nil, fmt.Errorf("a plan cannot be saved before the stack has a lineage: run qod init here, and commit %s", lockFile)
	}
	mode := plan.Normal
	if o.destroy {
		mode = plan.Destroy
	}
	p, err := w.engine.Plan(ctx, stack, c.Desired.Desired, engine.PlanOptions{Mode: mode})
	if err != nil {
		return w, nil, err
	}
	if err := (plan.Text{Color: terminal(a.stdout)}).Write(a.stdout, p.Plan); err != nil {
		return w, nil, err
	}
	c.report(a.stderr, p.Problems)
	if p.Failed() {
		return w, nil, errConfiguration
	}
	return w, p, nil
}

// checkStack refuses to plan for a stack of the same name that was made elsewhere: its objects would look
// as if they had left the configuration.
func (w *world) checkStack(ctx context.Context, stack store.Stack, adopt bool) error {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	have, known := snap.Stacks[stack.Name]
	switch {
	case !known, adopt, have.Lineage == stack.Lineage:
		return nil
	case stack.Lineage == "":
		return fmt.Errorf("stack %q is known, but this directory has no %s: get it from where the stack was made, "+
			"or run apply --adopt-stack", stack.Name, lockFile)
	}
	return refused(&store.StackError{Name: stack.Name, Have: have.Lineage, Want: stack.Lineage})
}

func savePlan(e *engine.Engine, p *engine.Plan, name string) error {
	raw, err := e.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if _, err := f.Write(raw); err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	return f.Close()
}
