package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

func newOutput(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Print the outputs of the last apply",
		Long: "output prints the outputs of the stack as the last apply left them. A sensitive one is shown only when it is asked\n" +
			"for by NAME, or with --json. --raw prints a string, a number or a bool as it is, without a newline, for scripts.",
		Example: "  qod output\n  qod output endpoint --raw\n  qod output --json",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON with sensitive values, described in docs/reference/history.md")
	raw := cmd.Flags().Bool("raw", false, "print the value of NAME without quotes and newline")
	cmd.MarkFlagsMutuallyExclusive("json", "raw")
	s := scopeFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *raw && len(args) == 0 {
			return fmt.Errorf("--raw prints one output: give its name")
		}
		stack, err := a.ownStack(s)
		if err != nil {
			return err
		}
		w, err := a.openState(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		outputs, err := w.outputs(cmd.Context(), stack.Name)
		if err != nil {
			return err
		}
		if len(args) == 1 {
			if err := a.withheld(outputs, args[0]); err != nil {
				return err
			}
			return a.printOutput(outputs, args[0], *asJSON, *raw)
		}
		return a.listOutputs(outputs, stack.Name, *asJSON)
	}
	return cmd
}

// outputs are those of a stack. A server keeps the values of sensitive ones to itself: they are null.
func (w *world) outputs(ctx context.Context, stack string) ([]schema.Output, error) {
	if w.server != nil {
		return w.server.outputs(ctx, stack)
	}
	return w.postgres.StackOutputs(ctx, stack)
}

// outputJSON is an output for programs.
type outputJSON struct {
	Value     json.RawMessage `json:"value"`
	Type      json.RawMessage `json:"type"`
	Sensitive bool            `json:"sensitive"`
}

func (a *app) listOutputs(outputs []schema.Output, stack string, asJSON bool) error {
	if asJSON {
		out := map[string]outputJSON{}
		for _, o := range outputs {
			e := outputJSON{Sensitive: o.Sensitive}
			var err error
			if e.Value, err = ctyjson.Marshal(o.Value, o.Value.Type()); err != nil {
				return fmt.Errorf("print output %s: %w", o.Name, err)
			}
			if e.Type, err = ctyjson.MarshalType(o.Value.Type()); err != nil {
				return fmt.Errorf("print output %s: %w", o.Name, err)
			}
			out[o.Name] = e
		}
		return a.printJSON(out)
	}
	if len(outputs) == 0 {
		a.printf("Stack %q has no outputs: its files have none, or have not been applied.\n", stack)
	}
	for _, o := range outputs {
		a.printf("%s = %s\n", o.Name, shownOutput(o))
	}
	return nil
}

func (a *app) printOutput(outputs []schema.Output, name string, asJSON, raw bool) error {
	var names []string
	for _, o := range outputs {
		names = append(names, o.Name)
		if o.Name != name {
			continue
		}
		switch {
		case raw:
			return a.printRaw(o)
		case asJSON:
			value, err := ctyjson.Marshal(o.Value, o.Value.Type())
			if err != nil {
				return fmt.Errorf("print output %s: %w", name, err)
			}
			a.printf("%s\n", value)
			return nil
		}
		a.printf("%s\n", literal(o.Value))
		return nil
	}
	return fmt.Errorf("there is no output %q.%s See qod output", name, schema.DidYouMean(name, names))
}

// shownOutput prints the value of an output that may be shown.
func shownOutput(o schema.Output) string {
	if o.Sensitive {
		return plan.Hidden
	}
	return literal(o.Value)
}

// literal prints a value as HCL, over as many lines as it takes.
func literal(v cty.Value) string {
	return string(hclwrite.Format(hclwrite.TokensForValue(v).Bytes()))
}

func (a *app) printRaw(o schema.Output) error {
	v := o.Value
	switch {
	case v.IsNull():
		return fmt.Errorf("output %s is null: --raw prints only a string, a number or a bool; use --json", o.Name)
	case v.Type() == cty.String:
		a.printf("%s", v.AsString())
	case v.Type() == cty.Number:
		a.printf("%s", v.AsBigFloat().Text('f', -1))
	case v.Type() == cty.Bool:
		a.printf("%t", v.True())
	default:
		return fmt.Errorf("output %s is %s: --raw prints only a string, a number or a bool; use --json", o.Name, v.Type().FriendlyName())
	}
	return nil
}
