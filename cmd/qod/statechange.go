package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

func newStateMove(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Give stored objects another address in the configuration",
		Long: "mv changes where the configuration has objects, and nothing about the objects: one, all of a block, or all of a\n" +
			"module. FROM may also be the name of an object, as in pool.acme/bi. It is for repairs; a moved block in the files does\n" +
			"the same for everybody who uses them. It is a commit like any other, and in the history.",
		Example: "  qod state mv pool.bi pool.reports\n  qod state mv 'user.ana' 'user.all[\"ana\"]' --dry-run\n  qod state mv module.eu module.europe",
		Args:    cobra.ExactArgs(2), ValidArgsFunction: a.completeAddresses(1),
	}
	dry := cmd.Flags().Bool("dry-run", false, "only say what would be done")
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.rewrite(cmd.Context(), s, *dry, func(objects []store.Object) (store.Change, error) {
			writes, err := move(objects, args[0], args[1])
			for _, w := range writes {
				a.printf("%s %s to %s\n", tense(*dry, "move", "moves"), addressOf(objects, w.ID), w.Address)
			}
			return store.Change{Writes: writes, Note: "state mv " + strings.Join(args, " ")}, err
		}, func() error { return nil }, "The files have to say the same: qod plan shows whether they do.")
	}
	return cmd
}

func tense(dry bool, would, does string) string {
	if dry {
		return "Would " + would
	}
	return title(does)
}

func addressOf(objects []store.Object, id string) string {
	for _, o := range objects {
		if o.ID == id {
			return o.Address
		}
	}
	return id
}

// move returns writes that put the objects at or in one address at another.
func move(objects []store.Object, from, to string) ([]store.Write, error) {
	source, err := placeNamed(objects, from)
	if err != nil {
		return nil, err
	}
	target, err := schema.ParseAddress(to)
	if err != nil {
		if name, isName := schema.ParseNamed(to); isName == nil {
			return nil, fmt.Errorf("%s is the name of an object: TO is where the configuration has it then, as in %s.LABEL", to, name.Kind)
		}
		return nil, err
	}
	switch {
	case source.Kind != target.Kind:
		return nil, fmt.Errorf("%s and %s are not of one kind: an object stays what it is", source, target)
	case source.String() == target.String():
		return nil, fmt.Errorf("%s is there already", source)
	}
	moved := map[string]bool{}
	var writes []store.Write
	for _, o := range objects {
		address, err := placeOf(o)
		if err != nil || !source.Contains(address) {
			continue
		}
		w := rewritten(o)
		at, ok := address.Rebase(source, target)
		if !ok {
			return nil, fmt.Errorf("%s cannot become an address in %s: several would be one; move them one by one", o.Address, target)
		}
		w.Address = at.String()
		moved[o.ID] = true
		writes = append(writes, w)
	}
	for _, w := range writes {
		for _, o := range objects {
			if o.Address == w.Address && !moved[o.ID] {
				return nil, fmt.Errorf("%s is the address of %s already: move that one first", w.Address, o.Addr())
			}
		}
	}
	return writes, nil
}

// placeNamed returns where the configuration has what a person names, by that place or as an object by its kind and key.
func placeNamed(objects []store.Object, name string) (schema.Address, error) {
	named, err := schema.ParseNamed(name)
	if err != nil {
		return named, noObject(objects, name)
	}
	var called *store.Object
	for i := range objects {
		o := &objects[i]
		address, err := placeOf(*o)
		if err == nil && named.Contains(address) {
			return named, nil
		}
		if o.Addr().String() == named.String() {
			called = o
		}
	}
	if called == nil {
		return named, noObject(objects, name)
	}
	return placeOf(*called)
}

// placeOf returns where the configuration has an object: under its own name where no block wrote it.
func placeOf(o store.Object) (schema.Address, error) {
	if o.Addr().Names(o.Address) {
		return o.Addr().Own(), nil
	}
	return schema.ParseAddress(o.Address)
}

// rewritten returns a write that leaves an object as it is.
func rewritten(o store.Object) store.Write {
	return store.Write{
		Op: store.Put, ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: o.Spec, Applied: o.Applied, Address: o.Address,
		Stack: o.Stack, Protected: o.Protected, Sensitive: o.Sensitive,
	}
}

func newStateForget(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rm ADDRESS...",
		Short: "Forget objects: they stay, and no configuration owns them",
		Long: "rm takes objects away from the stack and leaves them as they are: databases, nodes and logins go on. No plan touches\n" +
			"them afterwards; an import block takes them back. It is a commit like any other, and in the history.",
		Example: "  qod state rm pool.bi --dry-run\n  qod state rm module.eu --auto-approve",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: a.completeAddresses(-1),
	}
	dry := cmd.Flags().Bool("dry-run", false, "only say what would be done")
	approve := cmd.Flags().Bool("auto-approve", false, "do not ask")
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.rewrite(cmd.Context(), s, *dry, func(objects []store.Object) (store.Change, error) {
			writes, err := forget(objects, args)
			for _, w := range writes {
				a.printf("%s %s (%s)\n", tense(*dry, "forget", "will forget"), addressOf(objects, w.ID), w.Kind.Addr(w.Spec))
			}
			return store.Change{Writes: writes, Note: "state rm " + strings.Join(args, " ")}, err
		}, func() error {
			if *approve {
				return nil
			}
			return a.ask(cmd.Context())
		}, "Where the files still have them, the next plan says that their names are taken: take the blocks out, or import them.")
	}
	return cmd
}

// forget returns writes that leave the objects at or in the addresses without an owner.
func forget(objects []store.Object, addresses []string) ([]store.Write, error) {
	inside, err := chosen(objects, addresses)
	if err != nil {
		return nil, err
	}
	var writes []store.Write
	for _, o := range inside {
		w := rewritten(o)
		w.Address, w.Stack = "", ""
		writes = append(writes, w)
	}
	return writes, nil
}

// rewrite commits a change that is made of the stack's objects, once the author agrees.
func (a *app) rewrite(ctx context.Context, s scope, dry bool, change func([]store.Object) (store.Change, error),
	agree func() error, after string) error {
	stack, err := a.ownStack(s)
	if err != nil {
		return err
	}
	w, err := a.openState(ctx, openOptions{write: !dry})
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.checkStack(ctx, stack, false); err != nil {
		return err
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	c, err := change(living(snap, stack.Name))
	if err != nil || dry {
		return err
	}
	if err := agree(); err != nil {
		return err
	}
	who := whoami()
	c.Stack, c.By, c.From = stack, who.By, who.From
	rev, err := w.store.Commit(ctx, c)
	if err != nil {
		return refused(err)
	}
	a.printf("\nCommitted as revision %d. %s\n", rev, after)
	return nil
}
