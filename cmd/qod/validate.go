package main

import "github.com/spf13/cobra"

func newValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "validate",
		Short:   "Check the configuration without looking at any state",
		Example: "  qod validate\n  qod validate -C examples/quickstart --var ana_password=secret-words",
		Args:    cobra.NoArgs,
	}
	vars := varFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		c, err := a.evaluate(*vars)
		if err != nil {
			return err
		}
		a.printf("The configuration of stack %q is valid: %d objects.\n", c.Stack, len(c.Objects))
		return nil
	}
	return cmd
}
