package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

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
			"It writes nothing. With --detailed-exitcode it ends with 2 when there is something to do; with --refresh-only\n" +
			"as well, only when something has drifted. With --policy it ends with 1, and saves nothing, where the plan breaks a rule.",
		Example: "  qod plan\n  qod plan --out next.qodplan && qod apply next.qodplan\n  qod plan --destroy\n" +
			"  qod plan --target pool.bi\n  qod plan --policy policies",
		Args: noArguments,
	}
	flags, policy := addPlanFlags(a, cmd), policyFlag(cmd)
	out := cmd.Flags().String("out", "", "save the plan to this `FILE`, for apply")
	detailed := cmd.Flags().Bool("detailed-exitcode", false, "end with 2 instead of 0 when there is a difference")
	asJSON := jsonFlags(cmd, "print the plan as JSON, described in docs/reference/plan-json.md")
	completeFiles(cmd, "out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := flags.options()
		if err != nil {
			return err
		}
		o.saving, o.policy = *out != "", *policy
		tell := a.planTeller(*asJSON)
		made, err := a.plan(cmd.Context(), o, tell)
		if err != nil {
			return err
		}
		defer made.Close()
		if *out != "" {
			if err := savePlan(made.world.plans, made.Plan, a.paths.file(*out)); err != nil {
				return err
			}
			tell.aside("\nSaved to %s. It can be applied once: qod apply %s\n", *out, *out)
		}
		if *detailed && worthAnExitCode(made.Plan.Plan) {
			return exitError{code: 2}
		}
		return nil
	}
	return cmd
}

// worthAnExitCode reports whether a plan has what its mode looks for: drift alone, or anything to do.
func worthAnExitCode(p *plan.Plan) bool {
	if p.Mode == plan.RefreshOnly {
		return len(p.Drift) > 0 || len(p.Live) > 0
	}
	return !p.Empty()
}

type planOptions struct {
	vars      []config.Given
	mode      plan.Mode
	selection plan.Selection
	saving    bool // to a file: needs the state's master key
	writing   bool // the plan is to be applied
	adopt     bool // a known stack although the lock file has another lineage
	policy    policyDir
}

func (o planOptions) engine() engine.PlanOptions {
	return engine.PlanOptions{Mode: o.mode, Selection: o.selection, AdoptStack: o.adopt}
}

// made is a plan with what it was made from.
type made struct {
	*engine.Plan
	world         *world
	configuration *configuration
	stack         store.Stack
	options       planOptions
}

// Close gives back the world, if it was opened.
func (m *made) Close() {
	if m.world != nil {
		m.world.Close()
	}
}

// plan evaluates, opens what there is, plans and tells. What it returns without an error is to be closed.
func (a *app) plan(ctx context.Context, o planOptions, tell teller) (*made, error) {
	a.collect(garbageOfPlans)
	if o.writing {
		a.collect(garbageOfApplies)
	}
	m := &made{options: o}
	if err := m.make(ctx, a, tell); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *made) make(ctx context.Context, a *app, tell teller) error {
	o := m.options
	err := m.begin(ctx, a, tell)
	if err != nil {
		return err
	}
	if m.world.imagined {
		tell.aside("There is no state yet: everything is new. qod apply will make it in %s.\n\n", a.paths.StateDir)
		if o.saving {
			return errors.New("a plan cannot be saved before there is state: run qod init first")
		}
	}
	if m.stack, err = m.configuration.stack(); err != nil {
		return err
	}
	if m.Plan, err = m.world.plans.Plan(ctx, m.stack, m.configuration.Desired.Desired, o.engine()); err != nil {
		return refused(err)
	}
	if o.saving && m.stack.Lineage == "" {
		way := "run qod init here"
		if m.world.server != nil {
			way = "apply it once"
		}
		return fmt.Errorf("a plan cannot be saved before the stack has a lineage: %s, and commit %s", way, lockFile)
	}
	v, err := judgePlan(m.configuration.policy, m.Plan.Plan, m.configuration)
	if err != nil {
		return err
	}
	if err := tell.planned(m.Plan.Plan, m.configuration, v); err != nil {
		return err
	}
	if m.Failed() {
		return errConfiguration
	}
	return v.err()
}

// begin evaluates the configuration and opens the world. A world that is only read is opened meanwhile, and its
// store read: a large one takes as long as a large configuration. Whatever comes of it, what is wrong with
// the configuration is said first, and alone.
func (m *made) begin(ctx context.Context, a *app, tell teller) error {
	o := m.options
	var err error
	a.tellServer()
	if o.writing {
		if m.configuration, err = a.evaluateFor(tell, o); err != nil {
			return err
		}
		m.world, err = a.open(ctx, openOptions{create: o.mode == plan.Normal, write: true})
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	var opening sync.WaitGroup
	opening.Go(func() { m.world, failed = a.openAndRead(ctx) })
	if m.configuration, err = a.evaluateFor(tell, o); err != nil {
		cancel()
	}
	opening.Wait()
	if err != nil {
		return err
	}
	return failed
}

// openAndRead opens a world that is only read, with a store that has its snapshot at hand.
func (a *app) openAndRead(ctx context.Context) (*world, error) {
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return nil, err
	}
	if w.server != nil {
		return w, nil // which plans with its own
	}
	_, _ = w.store.Snapshot(ctx) // whoever needs it asks again, and is told what is wrong
	return w, nil
}

// evaluateFor evaluates the configuration of a plan, and tells what is wrong with it.
func (a *app) evaluateFor(tell teller, o planOptions) (*configuration, error) {
	c, diags, files := a.read(o.vars)
	rules, more, err := a.policy(o.policy)
	if err != nil {
		return nil, err
	}
	if rules != nil {
		c.policy = rules
		diags = append(diags, more...)
		maps.Copy(files, rules.Files())
	}
	nothing := &plan.Plan{Stack: c.Stack, Mode: o.mode, Partial: o.selection.Partial(), Created: time.Now()}
	if err := tell.evaluated(nothing, diags, files); err != nil {
		return nil, err
	}
	if diags.HasErrors() {
		return nil, errConfiguration
	}
	return c, nil
}

// checkStack refuses a stack of the same name that was made elsewhere. Plans check that by themselves.
func (w *world) checkStack(ctx context.Context, stack store.Stack, adopt bool) error {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	return refused((store.Change{Stack: stack, AdoptStack: adopt}).Admit(snap.Stacks[stack.Name]))
}

func savePlan(plans planner, p *engine.Plan, name string) error {
	raw, err := plans.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("save plan: %w", err)
	}
	if err := f.Chmod(0o600); err != nil {
		return errors.Join(fmt.Errorf("save plan: %w", err), f.Close())
	}
	if _, err := f.Write(raw); err != nil {
		return errors.Join(fmt.Errorf("save plan: %w", err), f.Close())
	}
	return f.Close()
}
