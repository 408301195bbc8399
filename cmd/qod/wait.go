package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// waitEvery is how often wait looks, and waitTimeout how long if nobody says so.
const (
	waitEvery   = 500 * time.Millisecond
	waitTimeout = 5 * time.Minute
)

type waitOptions struct {
	stack, what string
	timeout     time.Duration
}

func newWait(a *app) *cobra.Command {
	o := &waitOptions{}
	cmd := &cobra.Command{
		Use:   "wait [ADDRESS...]",
		Short: "Wait until nothing is pending outside the store",
		Long: "wait returns once the databases and nodes of the stack, or of the named objects, are as the store says. It only looks:\n" +
			"serve or apply must be at work. When time is up it ends with 1 and says what is missing.",
		Example: "  qod wait\n  qod wait pool.bi --timeout 30s\n  qod wait tenant_db.old --for gone",
	}
	f := cmd.Flags()
	f.StringVar(&o.stack, "stack", "", stackUsage)
	f.StringVar(&o.what, "for", "converged", "`STATE` to wait for: converged when all is there, gone when nothing is left of it")
	f.DurationVar(&o.timeout, "timeout", waitTimeout, "wait no longer than this `DURATION`; 0: look once")
	cmd.ValidArgsFunction = a.completeAddresses(-1)
	completeChoices(cmd, "for", "converged", "gone")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.wait(cmd.Context(), args, o) }
	return cmd
}

func (a *app) wait(ctx context.Context, addresses []string, o *waitOptions) error {
	look, ok := map[string]func(context.Context, *world, string, []string) ([]string, error){
		"converged": unconverged, "gone": unfinishedEnds,
	}[o.what]
	if !ok {
		return fmt.Errorf("--for %q: want converged or gone", o.what)
	}
	for _, name := range addresses {
		if !isAddress(name) {
			return noObject(nil, name)
		}
	}
	stack, err := a.stackName(o.stack)
	if err != nil {
		return err
	}
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	if w.imagined && o.what != "gone" {
		return errNoState // and this look does not see it being made
	}
	limit, every := time.NewTimer(o.timeout), time.NewTicker(waitEvery)
	defer limit.Stop()
	defer every.Stop()
	for {
		missing, err := look(ctx, w, stack, addresses)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			return nil
		}
		failed := fmt.Errorf("not %s after %s:\n  %s", o.what, o.timeout, strings.Join(missing, "\n  "))
		if o.timeout == 0 {
			return failed
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), failed)
		case <-limit.C:
			return failed
		case <-every.C:
		}
	}
}

func isAddress(name string) bool {
	_, err := schema.ParseAddress(name)
	if err != nil {
		_, err = schema.ParseAddr(name)
	}
	return err == nil
}

// unconverged says what of a stack, or of the named objects, is not as the store says.
func unconverged(ctx context.Context, w *world, stack string, names []string) ([]string, error) {
	pending, err := w.plans.Pending(ctx, stack)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return findings(pending), nil
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range names {
		found := ofStack(snap, stack, []string{name})
		if !slices.ContainsFunc(found, func(o store.Object) bool { return !o.Tombstone }) {
			missing = append(missing, name+": the store does not have it")
		}
		for _, o := range found {
			missing = append(missing, findings(slices.DeleteFunc(slices.Clone(pending), func(f plan.Finding) bool { return f.Addr != o.Addr() }))...)
		}
	}
	return slices.Compact(missing), nil
}

func findings(pending []plan.Finding) []string {
	var out []string
	for _, f := range pending {
		out = append(out, fmt.Sprintf("%s: %s", f.Addr, f.Message))
	}
	return out
}

// ofStack lists the objects of a stack that the names mean, tombstones too.
func ofStack(snap *store.Snapshot, stack string, names []string) []store.Object {
	var out []store.Object
	for _, o := range snap.Objects {
		means := func(name string) bool { return named(o, name) }
		if o.Stack == stack && (len(names) == 0 || slices.ContainsFunc(names, means)) {
			out = append(out, o)
		}
	}
	return out
}

// unfinishedEnds says what is left of a stack, or of the named objects.
func unfinishedEnds(ctx context.Context, w *world, stack string, names []string) ([]string, error) {
	if w.imagined {
		return nil, nil
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, o := range ofStack(snap, stack, names) {
		words := "it exists"
		if o.Tombstone {
			words = phase(o)
		}
		left = append(left, fmt.Sprintf("%s: %s", o.Addr(), words))
	}
	return left, nil
}
