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
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
)

func newApply(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Change the store in one commit, and bring databases and nodes after it",
		Long: "apply plans, shows the plan, asks, and carries it out: one commit in Postgres, then databases and nodes follow.\n" +
			"Interrupted or killed, it leaves nothing half-done that the next apply, or serve, does not finish.\n" +
			"With a PLAN saved by plan --out it does just that plan, and refuses if an object in it has moved since.",
		Example: "  qod apply\n  qod apply --auto-approve\n  qod apply next.qodplan",
		Args:    cobra.MaximumNArgs(1),
	}
	vars := varFlags(cmd)
	approve := cmd.Flags().Bool("auto-approve", false, "do not ask")
	adopt := cmd.Flags().Bool("adopt-stack", false, "take over a known stack although the lock file has another lineage")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := applyOptions{approve: *approve, adopt: *adopt, word: "apply"}
		if len(args) == 1 {
			return a.applySaved(cmd.Context(), args[0], o)
		}
		return a.apply(cmd.Context(), *vars, planOptions{writing: true, adopt: *adopt}, o)
	}
	return cmd
}

func newDestroy(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "destroy",
		Short:   "Destroy everything the stack owns",
		Long:    "destroy is apply with nothing desired: nodes drain and stop, databases and their data go, then the rows.",
		Example: "  qod destroy\n  qod destroy --auto-approve",
		Args:    cobra.NoArgs,
	}
	vars := varFlags(cmd)
	approve := cmd.Flags().Bool("auto-approve", false, "do not ask")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.apply(cmd.Context(), *vars, planOptions{destroy: true, writing: true}, applyOptions{approve: *approve, word: "destroy"})
	}
	return cmd
}

type applyOptions struct {
	approve, adopt bool
	word           string
}

func (a *app) apply(ctx context.Context, vars []config.Given, po planOptions, o applyOptions) error {
	w, p, err := a.plan(ctx, vars, po)
	if w != nil {
		defer w.Close()
	}
	if err != nil {
		return err
	}
	if w.imagined {
		return nil // nothing to destroy
	}
	if p.Lineage == "" {
		if p.Lineage, err = a.lineage(ctx, w, p.Stack); err != nil {
			return err
		}
	}
	return a.carryOut(ctx, w, p, o)
}

// lineage makes the lock file of a stack: with the store's lineage where it knows the stack, which is
// then being adopted, and with a new one elsewhere.
func (a *app) lineage(ctx context.Context, w *world, stack string) (string, error) {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return "", err
	}
	lineage := cmp.Or(snap.Stacks[stack].Lineage, uuid.NewString())
	return lineage, writeLineage(a.paths.Dir, stack, lineage)
}

func (a *app) applySaved(ctx context.Context, name string, o applyOptions) error {
	raw, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	w, err := a.open(ctx, openOptions{write: true})
	if err != nil {
		return err
	}
	defer w.Close()
	if w.imagined {
		return errors.New("there is no state that the plan could have been made from")
	}
	p, err := w.engine.Unmarshal(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := (plan.Text{Color: terminal(a.stdout)}).Write(a.stdout, p.Plan); err != nil {
		return err
	}
	o.approve = true // whoever saved it has seen it
	return a.carryOut(ctx, w, p, o)
}

func (a *app) carryOut(ctx context.Context, w *world, p *engine.Plan, o applyOptions) error {
	if p.Empty() {
		return nil
	}
	if !o.approve {
		if err := a.ask(ctx, o.word); err != nil {
			return err
		}
	}
	if err := w.engine.Commit(ctx, p, whoami(), o.adopt); err != nil {
		return refused(err)
	}
	if len(p.Changes) > 0 {
		a.printf("\nCommitted.\n")
	}
	start := time.Now()
	err := w.engine.Converge(ctx, p.Stack, func(pending []plan.Finding) {
		for _, f := range pending {
			a.printf("  %s: %s [%s]\n", f.Addr, f.Message, time.Since(start).Round(100*time.Millisecond))
		}
	})
	if err != nil {
		return err
	}
	add, change, destroy := p.Counts()
	a.printf("\n%s complete: %d added, %d changed, %d destroyed.\n", title(o.word), add, change, destroy)
	return nil
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

// refused says what a refused commit means for its author.
func refused(err error) error {
	var conflict *store.ConflictError
	var stack *store.StackError
	switch {
	case errors.As(err, &conflict):
		return fmt.Errorf("nothing was changed, since the world moved on while you decided: %w; plan again", err)
	case errors.As(err, &stack):
		return fmt.Errorf("%w; if this is the same stack, run apply --adopt-stack", err)
	}
	return err
}

// ask wants a "yes" from a person, and never waits for one who is not there.
func (a *app) ask(ctx context.Context, word string) error {
	if !terminal(a.stdin) {
		return fmt.Errorf("there is no terminal to ask at: run %s --auto-approve", word)
	}
	a.printf("\nDo this? Only \"yes\" is taken as consent: ")
	answer := make(chan string, 1)
	go func() { // ends with its line, or with the process
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end of input is no consent
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return errors.New("interrupted: nothing was changed")
	case line := <-answer:
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
