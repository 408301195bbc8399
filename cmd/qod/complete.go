package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// completeAddresses offers the addresses of the stack's objects for so many arguments, or with -1 for any
// number.
func (a *app) completeAddresses(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var addresses []string
		for _, o := range a.ownObjects(cmd) {
			addresses = append(addresses, o.Address)
		}
		return addresses, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePlanned offers for flags the addresses of what a plan may be about: stored objects, and those of the files.
func (a *app) completePlanned(cmd *cobra.Command, flags ...string) {
	offer := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var addresses []string
		for _, o := range a.ownObjects(cmd) {
			addresses = append(addresses, o.Address)
		}
		for _, o := range a.writtenObjects(cmd) {
			addresses = append(addresses, o.Address)
		}
		slices.Sort(addresses)
		return slices.Compact(addresses), cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range flags {
		must(cmd.RegisterFlagCompletionFunc(name, offer))
	}
}

// completeWritten offers the addresses of the objects in the files.
func (a *app) completeWritten(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var addresses []string
	for _, o := range a.writtenObjects(cmd) {
		addresses = append(addresses, o.Address)
	}
	return addresses, cobra.ShellCompDirectiveNoFileComp
}

// completeFileArgs has the shell offer files for so many arguments, or with -1 for any number.
func completeFileArgs(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

// completeFiles has the shell offer files for flags.
func completeFiles(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		must(cmd.RegisterFlagCompletionFunc(name, completeFileArgs(-1)))
	}
}

// completeChoices offers what a flag can be.
func completeChoices(cmd *cobra.Command, flag string, choices ...string) {
	must(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)))
}

// must panics for a flag that its command does not have: the first test of any command meets it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// ownObjects lists the objects of the stack for a shell, which is told no errors.
func (a *app) ownObjects(cmd *cobra.Command) []store.Object {
	if err := a.prepare(cmd); err != nil {
		return nil
	}
	name := ""
	if flag := cmd.Flags().Lookup("stack"); flag != nil {
		name = flag.Value.String()
	}
	stack, err := a.ownStack(scope{stack: &name})
	if err != nil {
		return nil
	}
	w, err := a.open(cmd.Context(), openOptions{})
	if err != nil {
		return nil
	}
	defer w.Close()
	snap, err := w.store.Snapshot(cmd.Context())
	if err != nil {
		return nil
	}
	return living(snap, stack.Name)
}

// writtenObjects lists the objects of the configuration for a shell, as far as it can be evaluated.
func (a *app) writtenObjects(cmd *cobra.Command) []schema.Object {
	if err := a.prepare(cmd); err != nil {
		return nil
	}
	loaded, _ := config.Load(a.paths.Dir)
	desired, _ := loaded.Evaluate(config.Inputs{Env: a.env})
	if desired == nil {
		return nil
	}
	return desired.Objects
}
