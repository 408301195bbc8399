package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/store"
)

func newHistory(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [REVISION]",
		Short: "Show who changed what, when and from where",
		Long: "history lists the commits of the store, newest first. Each has a revision, which diff and rollback take.\n" +
			"Revisions have gaps: what is observed of databases and nodes counts too, but is no commit.\n" +
			"With a REVISION it shows that commit: the plan as it was shown then, and what it changed.",
		Example: "  qod history\n  qod history --all --limit 100\n  qod history 12",
		Args:    cobra.MaximumNArgs(1),
	}
	limit := cmd.Flags().Int("limit", 20, "show at most `N`; 0: all")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, described in docs/reference/history.md")
	s := scopeFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w, err := a.open(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		if w.imagined {
			return a.noHistory(args, *asJSON)
		}
		p, err := w.past(cmd.Context())
		if err != nil {
			return err
		}
		steps := history.Steps(p.Snapshot, p.applies)
		if len(args) == 1 {
			return a.showStep(p, steps, args[0], *asJSON)
		}
		if stack := a.scoped(s); stack != "" {
			steps = slices.DeleteFunc(steps, func(s history.Step) bool { return !s.Touches(stack) })
		}
		if *limit > 0 && len(steps) > *limit {
			steps = steps[:*limit]
		}
		return a.listSteps(steps, *asJSON)
	}
	return cmd
}

func (a *app) noHistory(args []string, asJSON bool) error {
	switch {
	case len(args) > 0:
		return errNoState
	case asJSON:
		return a.printJSON(history.CommitsJSON{Format: history.JSONFormat, Commits: []history.CommitJSON{}})
	}
	a.printf("There is no state yet, and so no history: run qod apply.\n")
	return nil
}

func (a *app) listSteps(steps []history.Step, asJSON bool) error {
	if asJSON {
		out := history.CommitsJSON{Format: history.JSONFormat, Commits: []history.CommitJSON{}}
		for _, s := range steps {
			out.Commits = append(out.Commits, history.EncodeStep(s))
		}
		return a.printJSON(out)
	}
	if len(steps) == 0 {
		a.printf("No commit has touched this stack. --all shows those of all stacks.\n")
		return nil
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "REVISION\tWHEN\tWHO\tFROM\tSTACK\tCHANGES\n")
	for _, s := range steps {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", s.Revision, s.At.Local().Format(time.DateTime), orDash(s.By), orDash(s.From),
			orDash(s.Stack), oneLine(s))
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// oneLine is the summary of a commit, with its note unless that is a whole plan.
func oneLine(s history.Step) string {
	words := history.Summary(s.Changes, s.Outputs)
	if s.Note != "" && !strings.Contains(s.Note, "\n") {
		words += "  " + s.Note
	}
	return words
}

func (a *app) showStep(p *past, steps []history.Step, text string, asJSON bool) error {
	rev, err := p.revision(text)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(steps, func(s history.Step) bool { return s.Revision <= rev })
	if i < 0 {
		return fmt.Errorf("there is no commit at revision %d or before it", rev)
	}
	s := steps[i]
	if s.Revision != rev {
		return fmt.Errorf("revision %d is no commit: something was observed then, which counts too. The last commit before it is %d", rev, s.Revision)
	}
	if asJSON {
		return a.stepJSON(s)
	}
	a.printf("Revision %d, %s\n", s.Revision, written(s.Apply))
	if s.Stack != "" {
		a.printf("Stack    %s\n", s.Stack)
	}
	if s.PlanID != "" {
		a.printf("Plan     %s\n", s.PlanID)
	}
	if s.Note != "" {
		a.printf("\nWhat was said before it:\n\n%s\n", indent(s.Note))
	}
	a.printf("\nWhat it changed:\n\n")
	return history.Text{Color: a.colored(a.stdout)}.Write(a.stdout, s.Changes, s.Outputs)
}

// written says when, by whom and from where a commit was made.
func written(c store.Apply) string {
	words := c.At.Local().Format(time.DateTime)
	if c.By != "" {
		words += " by " + c.By
	}
	if c.From != "" {
		words += " from " + c.From
	}
	return words
}

func indent(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "  | " + line
		}
	}
	return strings.Join(lines, "\n")
}

// changesJSON are the changes of a commit, or between two revisions, for programs.
type changesJSON struct {
	Format  string               `json:"format_version"`
	Commit  *history.CommitJSON  `json:"commit,omitempty"`
	From    *store.Revision      `json:"from,omitempty"`
	To      *store.Revision      `json:"to,omitempty"`
	Changes []history.ChangeJSON `json:"changes"`
	Outputs []history.AttrJSON   `json:"outputs"`
}

func (a *app) stepJSON(s history.Step) error {
	commit := history.EncodeStep(s)
	return a.printChanges(changesJSON{Commit: &commit}, s.Changes, s.Outputs)
}

func (a *app) printChanges(out changesJSON, changes []history.Change, outputs []history.OutputChange) error {
	var errs [2]error
	out.Format = history.JSONFormat
	out.Changes, errs[0] = history.EncodeChanges(changes)
	out.Outputs, errs[1] = history.EncodeOutputs(outputs)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	return a.printJSON(out)
}

// at returns the objects of a revision.
func (p *past) at(rev store.Revision) ([]store.Object, error) {
	return history.At(p.Objects, p.applies, rev)
}
