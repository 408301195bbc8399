package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/store"
)

func newDiff(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff REVISION [REVISION]",
		Short: "Show what differs between two revisions, or between one and now",
		Long: "diff compares the objects of the store at two revisions, as qod history lists them; without a second one with now.\n" +
			"It looks at no files and not at the live world. Outputs are compared for one stack, not with --all.\n" +
			"With --detailed-exitcode it ends with 2 when something differs.",
		Example: "  qod diff 12\n  qod diff 8 12 --json",
		Args:    cobra.RangeArgs(1, 2),
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON, described in docs/reference/history.md")
	detailed := cmd.Flags().Bool("detailed-exitcode", false, "end with 2 instead of 0 when there is a difference")
	s := scopeFlags(cmd, true)
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
		d, err := p.diff(args, a.scoped(s))
		if err != nil {
			return err
		}
		if err := a.printDiff(d, *asJSON); err != nil {
			return err
		}
		if *detailed && len(d.changes)+len(d.outputs) > 0 {
			return exitError{code: 2}
		}
		return nil
	}
	return cmd
}

type difference struct {
	from, to store.Revision
	changes  []history.Change
	outputs  []history.OutputChange // of one stack
}

// diff compares two revisions, or one with now, for a stack or for all.
func (p *past) diff(args []string, stack string) (difference, error) {
	d := difference{to: p.Revision}
	var err error
	if d.from, err = p.revision(args[0]); err != nil {
		return d, err
	}
	if len(args) > 1 {
		if d.to, err = p.revision(args[1]); err != nil {
			return d, err
		}
	}
	before, err := p.at(d.from)
	if err != nil {
		return d, err
	}
	after, err := p.at(d.to)
	if err != nil {
		return d, err
	}
	ever := history.EverConcealed(p.Snapshot, p.applies)
	d.changes = history.Diff(before, after, ever)
	if stack != "" {
		d.changes = slices.DeleteFunc(d.changes, func(c history.Change) bool { return !c.Of(stack) })
		now := p.Outputs[stack]
		was, is := history.OutputsAt(now, p.applies, stack, d.from), history.OutputsAt(now, p.applies, stack, d.to)
		d.outputs = history.DiffOutputs(stack, was, is, ever)
	}
	return d, nil
}

func (a *app) printDiff(d difference, asJSON bool) error {
	if asJSON {
		return a.printChanges(changesJSON{From: &d.from, To: &d.to}, d.changes, d.outputs)
	}
	a.printf("From revision %d to revision %d:\n\n", d.from, d.to)
	return history.Text{Color: a.colored(a.stdout)}.Write(a.stdout, d.changes, d.outputs)
}
