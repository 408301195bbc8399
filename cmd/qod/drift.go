package main

import (
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/plan"
)

func newDrift(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "Say whether somebody changed what was applied",
		Long: "drift compares what was applied with the store and with the live nodes. It writes nothing. It ends with 0 when\n" +
			"nothing has drifted, with 2 when something has, and with 1 when that cannot be told. An object that somebody else\n" +
			"deleted has drifted too. A change of the configuration is no drift.",
		Example: "  qod drift\n  qod drift --json",
		Args:    noArguments,
	}
	flags := selectionFlags(a, cmd)
	asJSON := jsonFlags(cmd, "print what has drifted as JSON, described in docs/reference/plan-json.md")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := flags.options()
		if err != nil {
			return err
		}
		o.mode = plan.RefreshOnly
		made, err := a.plan(cmd.Context(), o, a.planTeller(*asJSON))
		if err != nil {
			return err
		}
		defer made.Close()
		if worthAnExitCode(made.Plan.Plan) {
			return exitError{code: 2}
		}
		return nil
	}
	return cmd
}
