package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func newState(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Look at stored objects one by one, and move or forget them",
		Long: "state has commands for single objects of a stack as Postgres has them. mv and rm change what qod knows about them, and\n" +
			"never the objects; both are commits, and in the history.",
		Example: "  qod state list\n  qod state show pool.bi\n  qod state mv pool.bi pool.reports --dry-run",
	}
	cmd.AddCommand(newStateList(a), newStateShow(a), newStateMove(a), newStateForget(a))
	onlyGroups(cmd)
	return cmd
}

func newStateList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "list [ADDRESS...]",
		Short:             "List the addresses of the stack's objects",
		Long:              "list prints where the configuration has the stack's objects: all, or those at or in the addresses.",
		Example:           "  qod state list\n  qod state list module.eu user.all --id",
		ValidArgsFunction: a.completeAddresses(-1),
	}
	withID := cmd.Flags().Bool("id", false, "print ids and names too")
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		stack, err := a.ownStack(s)
		if err != nil {
			return err
		}
		w, err := a.open(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		if w.imagined {
			fmt.Fprintln(a.stderr, "There is no state yet: run qod apply.")
			return nil
		}
		snap, err := w.store.Snapshot(cmd.Context())
		if err != nil {
			return err
		}
		objects, err := chosen(living(snap, stack.Name), args)
		for _, o := range objects {
			if *withID {
				a.printf("%s  %s  %s\n", o.Address, o.ID, o.Addr())
				continue
			}
			a.printf("%s\n", o.Address)
		}
		return err
	}
	return cmd
}

// living lists the living objects of a stack.
func living(snap *store.Snapshot, stack string) []store.Object {
	var objects []store.Object
	for _, o := range snap.Objects {
		if o.Stack == stack && !o.Tombstone {
			objects = append(objects, o)
		}
	}
	return objects
}

func newStateShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ADDRESS",
		Short: "Show one object as it is stored",
		Long: "show prints an object with its id, generation, revision and status, and who wrote it last. ADDRESS is where the\n" +
			"configuration has it, as in pool.bi, or the name of any object, as in pool.acme/bi.",
		Example: "  qod state show pool.bi\n  qod state show pool.acme/bi",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: a.completeAddresses(1),
	}
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := a.openState(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		p, err := w.past(cmd.Context())
		if err != nil {
			return err
		}
		o, err := a.find(p.Snapshot, s, args[0])
		if err != nil {
			return err
		}
		last, _ := history.Last(p.applies, o.ID)
		a.show(o, last)
		return nil
	}
	return cmd
}

// find returns the object at an address of the stack, or else the one of that name in any stack.
func (a *app) find(snap *store.Snapshot, s scope, arg string) (store.Object, error) {
	if addr, err := schema.ParseAddr(arg); err == nil {
		for _, o := range snap.Objects {
			if o.Addr() == addr && !o.Tombstone {
				return o, nil
			}
		}
	}
	stack, err := a.ownStack(s)
	if err != nil {
		return store.Object{}, err
	}
	objects := living(snap, stack.Name)
	for _, o := range objects {
		if o.Address == arg {
			return o, nil
		}
	}
	found, err := chosen(objects, []string{arg})
	switch {
	case strings.Contains(arg, "/") && err != nil:
		return store.Object{}, fmt.Errorf("there is no object %s", arg)
	case err != nil:
		return store.Object{}, err
	case len(found) > 1:
		return store.Object{}, fmt.Errorf("%s holds %d objects: name one of them, as qod state list prints them", arg, len(found))
	}
	return found[0], nil
}

func (a *app) show(o store.Object, last store.Apply) {
	a.printf("# %s\n", o.Addr())
	line := func(name, value string) { a.printf("# %-10s %s\n", name, value) }
	line("id", o.ID)
	if o.Stack == "" {
		line("stack", "none: no configuration owns it")
	} else {
		line("stack", fmt.Sprintf("%s, at %s", o.Stack, o.Address))
	}
	line("generation", fmt.Sprint(o.Generation))
	line("revision", fmt.Sprint(o.Revision))
	if last.Revision > 0 {
		line("written", written(last))
	}
	if o.Status.Phase != "" {
		line("status", phase(o))
	}
	if o.Protected {
		line("protected", "plans refuse to destroy it")
	}
	a.printf("%s", objectText(o))
}
