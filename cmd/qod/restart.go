package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
)

func newRestart(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart ADDRESS...",
		Short: "Replace all nodes of pools, one after the other",
		Long: "restart has the nodes of pools replaced as a change of their memory would: a new one is ready before an old one\n" +
			"drains, and what runs may end there. It writes the request down, brings the nodes after it as apply does, and returns\n" +
			"once all are new. ADDRESS is where the configuration has a pool, as in pool.bi, or the name of any pool, as in\n" +
			"pool.acme/bi.",
		Example: "  qod restart pool.bi\n  qod restart pool.acme/bi --no-wait",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeAddresses(-1),
	}
	hurry := cmd.Flags().Bool("no-wait", false, "only write the request down: serve meets it")
	limit := cmd.Flags().Duration("lock-timeout", lockTimeout, lockTimeoutUsage)
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a.tellServer()
		w, err := a.openState(cmd.Context(), openOptions{write: true})
		if err != nil {
			return err
		}
		defer w.Close()
		pools, err := a.restarted(cmd.Context(), w, s, args)
		if err != nil {
			return err
		}
		if cmd.Context().Err() != nil {
			return errInterrupted
		}
		a.acting.begin()
		return a.restart(cmd.Context(), w, pools, *hurry, *limit)
	}
	return cmd
}

// restarted finds the pools that are named, each once.
func (a *app) restarted(ctx context.Context, w *world, s scope, args []string) ([]store.Object, error) {
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	var pools []store.Object
	for _, arg := range args {
		o, err := a.find(snap, s, arg)
		if err != nil {
			return nil, err
		}
		if !engine.Runs(o.Kind) {
			return nil, fmt.Errorf("%s has no nodes: name a pool", o.Addr())
		}
		if !slices.ContainsFunc(pools, func(p store.Object) bool { return p.ID == o.ID }) {
			pools = append(pools, o)
		}
	}
	return pools, nil
}

func (a *app) restart(ctx context.Context, w *world, pools []store.Object, hurry bool, limit time.Duration) error {
	unhurried := context.WithoutCancel(ctx)
	var stacks []string
	for _, o := range pools {
		if err := w.restart(unhurried, o); err != nil {
			return err
		}
		if !slices.Contains(stacks, o.Stack) {
			stacks = append(stacks, o.Stack)
		}
		a.printf("%s is to be restarted.\n", o.Addr())
	}
	if hurry {
		return nil
	}
	for _, stack := range stacks {
		if w.server != nil {
			if err := a.wait(ctx, nil, &waitOptions{stack: stack, what: "converged", timeout: waitTimeout}); err != nil {
				return err
			}
			continue
		}
		p := newProgress(a.teller(false))
		err := w.engine.Converge(unhurried, engine.Convergence{
			Stack: stack, Stopping: ctx.Done(), LockTimeout: limit, Pending: p.pending, Held: p.held,
		})
		p.Close()
		if err != nil {
			return err
		}
	}
	a.printf("All nodes are new.\n")
	return nil
}

// restart writes the request for one pool down.
func (w *world) restart(ctx context.Context, o store.Object) error {
	id := uuid.NewString()
	if w.server != nil {
		_, err := w.server.client.Restart(ctx, o.Addr(), id)
		return w.server.explained(err)
	}
	if err := w.engine.Restart(ctx, o, id); err != nil {
		return err
	}
	e := caused("pool.restart", o.Addr().String(), account{tenant: o.Addr().Parts()[0]}, "restart "+id)
	return w.postgres.AppendEvents(ctx, []store.Event{e.Stamped()})
}
