package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

func newValidate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the configuration without looking at any state",
		Long: "validate reads and evaluates the configuration, and says what is wrong with it. It needs no state and no network.\n" +
			"Objects of other stacks are only looked up by plan.",
		Example: "  qod validate\n  qod validate -C examples/modules\n  qod validate --json",
		Args:    noArguments,
	}
	vars := varFlags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print what is wrong as JSON")
	cmd.RunE = func(*cobra.Command, []string) error {
		a.collect(garbageOfPlans)
		if *asJSON {
			return a.validateJSON(*vars)
		}
		c, err := a.evaluate(*vars)
		if err != nil {
			return err
		}
		a.printf("The configuration of stack %q is valid: %s.\n", c.Stack, plural(len(c.Objects), "object"))
		return nil
	}
	return cmd
}

// validation is what validate --json prints.
type validation struct {
	FormatVersion string              `json:"format_version"`
	Valid         bool                `json:"valid"`
	ErrorCount    int                 `json:"error_count"`
	WarningCount  int                 `json:"warning_count"`
	Diagnostics   []schema.Diagnostic `json:"diagnostics"`
}

func (a *app) validateJSON(vars []config.Given) error {
	_, diags, files := a.read(vars)
	v := validation{FormatVersion: plan.FormatVersion, Valid: !diags.HasErrors(), Diagnostics: config.Diagnostics(diags, files)}
	for _, d := range v.Diagnostics {
		if d.Severity == "error" {
			v.ErrorCount++
		} else {
			v.WarningCount++
		}
	}
	if err := a.printJSON(v); err != nil {
		return err
	}
	if !v.Valid {
		return errConfiguration
	}
	return nil
}

// printJSON writes a document for programs to standard output.
func (a *app) printJSON(document any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
