package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/client"
)

func newApply(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Change the store in one commit, and bring databases and nodes after it",
		Long: "apply plans, shows the plan, asks, and carries it out: one commit in Postgres, then databases and nodes follow.\n" +
			"Interrupted or killed, it leaves nothing half-done that the next apply, or serve, does not finish: the first\n" +
			"Ctrl-C lets what runs end, the second ends at once.\n" +
			"With a PLAN saved by plan --out it does just that plan, and refuses if an object in it has moved since.\n" +
			"With --policy nobody is asked, and nothing happens, where the plan breaks a rule.",
		Example: "  qod apply\n  qod apply --auto-approve\n  qod apply next.qodplan\n  qod apply --replace pool.bi",
		Args:    cobra.MaximumNArgs(1), ValidArgsFunction: completeFileArgs(1),
	}
	flags, how := addPlanFlags(a, cmd), addApplyFlags(cmd)
	adopt := cmd.Flags().Bool(adoptFlag, false, "take over a known stack although the lock file has another lineage")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := how.options("apply")
		if err != nil {
			return err
		}
		o.adopt = *adopt
		if len(args) == 1 {
			if err := refuseWithSaved(cmd); err != nil {
				return err
			}
			tell := a.teller(o.json)
			return tell.ended(a.applySaved(cmd.Context(), args[0], o, tell))
		}
		po, err := flags.options()
		if err != nil {
			return err
		}
		po.adopt = *adopt
		return a.applyPlanned(cmd.Context(), po, o)
	}
	return cmd
}

func newDestroy(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "destroy",
		Short:   "Destroy everything the stack owns",
		Long:    "destroy is apply with nothing desired: nodes drain and stop, databases and their data go, then the rows.",
		Example: "  qod destroy\n  qod destroy --auto-approve\n  qod destroy --target pool.bi",
		Args:    noArguments,
	}
	flags, how := selectionFlags(a, cmd), addApplyFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := how.options("destroy")
		if err != nil {
			return err
		}
		po, err := flags.options()
		if err != nil {
			return err
		}
		po.mode = plan.Destroy
		return a.applyPlanned(cmd.Context(), po, o)
	}
	return cmd
}

type applyOptions struct {
	approve, adopt bool
	json           bool
	parallelism    int
	lockTimeout    time.Duration
	word           string
	policy         policyDir
}

// asked refuses to ask where nobody could answer.
func (o applyOptions) asked() error {
	if o.json && !o.approve {
		return errors.New("--json asks nobody: give --auto-approve as well, or apply a saved plan")
	}
	return nil
}

func (a *app) applyPlanned(ctx context.Context, po planOptions, o applyOptions) error {
	if err := o.asked(); err != nil {
		return err
	}
	tell := a.teller(o.json)
	return tell.ended(a.apply(ctx, po, o, tell))
}

func (a *app) apply(ctx context.Context, po planOptions, o applyOptions, tell teller) error {
	po.writing, po.policy = true, o.policy
	m, err := a.plan(ctx, po, tell)
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	defer m.Close()
	if m.world.imagined {
		return nil // nothing to destroy
	}
	return a.carryOut(ctx, m, o, tell)
}

func (a *app) applySaved(ctx context.Context, name string, o applyOptions, tell teller) error {
	rules, err := a.goodPolicy(o.policy, tell)
	if err != nil {
		return err
	}
	raw, err := readPlan(a.paths.file(name))
	if err != nil {
		return err
	}
	w, err := a.open(ctx, openOptions{write: true})
	if err != nil {
		return err
	}
	m := &made{world: w}
	defer m.Close()
	if w.imagined {
		return errors.New("there is no state that the plan could have been made from")
	}
	a.tellServer()
	if m.Plan, err = w.plans.Open(ctx, raw); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := w.plans.Check(ctx, m.Plan, o.adopt); err != nil {
		return refused(err)
	}
	v, err := judgePlan(rules, m.Plan.Plan, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(tell.planned(m.Plan.Plan, nil, v), v.err()); err != nil {
		return err
	}
	o.approve = true // whoever saved it has seen it
	return a.carryOut(ctx, m, o, tell)
}

// carryOut asks, commits, and brings the live world after it. Until the commit an end of ctx means that
// nothing was changed; from then on, that no further step starts.
func (a *app) carryOut(ctx context.Context, m *made, o applyOptions, tell teller) error {
	if m.Empty() {
		return tell.outputs(m.Result)
	}
	if !o.approve {
		if err := a.ask(ctx); err != nil {
			return err
		}
	}
	if err := a.lineage(m); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	a.acting.begin()
	p := newProgress(tell)
	err := m.world.plans.CarryOut(context.WithoutCancel(ctx), m.Plan, m.carrying(a, ctx.Done(), o, p))
	p.Close()
	if err != nil {
		return refused(err)
	}
	if err := tell.done(m.Plan.Plan, o.word); err != nil {
		return err
	}
	return tell.outputs(m.Result)
}

// carrying is how a plan is to be carried out.
func (m *made) carrying(a *app, stopping <-chan struct{}, o applyOptions, p *progress) engine.Carrying {
	c := engine.Carrying{
		Who: whoami(), AdoptStack: o.adopt, Parallelism: o.parallelism,
		Convergence: engine.Convergence{Stopping: stopping, LockTimeout: o.lockTimeout, Pending: p.pending, Held: p.held},
		Committed: func() {
			p.committed()
			a.collect(garbageOfWaiting)
		},
	}
	if m.configuration != nil { // of a saved plan, what it was made from is not here
		c.From = &engine.Origin{Desired: m.configuration.Desired.Desired, Options: m.options.engine()}
	}
	return c
}

// lineage writes the lock file of a stack that has none: with the store's lineage where it knows the
// stack, which is then being adopted, and with a new one elsewhere.
func (a *app) lineage(m *made) error {
	if m.configuration == nil || m.stack.Lineage != "" {
		return nil
	}
	m.Lineage = cmp.Or(m.Lineage, uuid.NewString())
	return writeLineage(a.paths.Dir, m.Stack, m.Lineage)
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// refused says what a refused plan or commit means for its author.
func refused(err error) error {
	var conflict *store.ConflictError
	var stack *store.StackError
	switch {
	case errors.As(err, &conflict), client.Is(err, client.Conflict):
		return fmt.Errorf("nothing was changed, since the world moved on while you decided: %w; plan again", err)
	case errors.As(err, &stack):
		return fmt.Errorf("%w; if this is the same stack, run apply --%s", err, adoptFlag)
	}
	return err
}

// ask wants a "yes" from a person, and never waits for one who is not there.
func (a *app) ask(ctx context.Context) error {
	if !terminal(a.stdin) {
		return errors.New("there is no terminal to ask at, and nothing was changed: give --auto-approve to be asked nothing")
	}
	a.printf("\nDo this? Only \"yes\" is taken as consent: ")
	answer := make(chan string, 1)
	go func() { // ends with its line, or with the process
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end of input is no consent
		answer <- line
	}()
	select {
	case <-ctx.Done():
		a.printf("\n")
		return errInterrupted
	case line := <-answer:
		if !strings.HasSuffix(line, "\n") {
			a.printf("\n")
		}
		if strings.TrimSpace(line) != "yes" {
			return errors.New("not confirmed: nothing was changed")
		}
		return nil
	}
}

func whoami() engine.Who {
	who := engine.Who{By: "unknown"}
	if u, err := user.Current(); err == nil {
		who.By = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		who.From = host
	}
	return who
}
