package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
)

func newConsole(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Evaluate expressions over the configuration",
		Long: "console reads expressions and prints their values. They see what the configuration sees: variables, locals,\n" +
			"objects, outputs of modules and functions. It changes nothing and looks at no state. exit or Ctrl-D ends it.\n" +
			"Away from a terminal the first error ends it, with exit code 1.",
		Example: "  qod console\n  echo 'pool.bi.memory' | qod console",
		Args:    noArguments,
	}
	vars := varFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.evaluate(*vars)
		if err != nil {
			return err
		}
		return a.console(cmd.Context(), c, newLines(a.stdin, a.stdout))
	}
	return cmd
}

func (a *app) console(ctx context.Context, c *configuration, l *lines) error {
	text := ""
	for {
		prompt := "> "
		if text != "" {
			prompt = "  "
		}
		line, err := l.next(ctx, prompt)
		switch {
		case errors.Is(err, errGivenUp):
			text = ""
			continue
		case errors.Is(err, io.EOF) && l.person:
			a.printf("\n")
			return nil
		case errors.Is(err, io.EOF):
			return a.answer(c, text)
		case err != nil:
			return err
		}
		if text == "" && strings.TrimSpace(line) == "exit" {
			return nil
		}
		if text += line + "\n"; config.Incomplete(text) {
			continue
		}
		if err := a.answer(c, text); err != nil && !l.person {
			return err
		}
		text = ""
	}
}

// answer prints the value of an expression, or what is wrong with it.
func (a *app) answer(c *configuration, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	value, diags := c.Value(strings.TrimSuffix(text, "\n"))
	if len(diags) > 0 {
		_ = config.WriteDiagnostics(a.stderr, diags, c.Files(), a.colored(a.stderr)) // as elsewhere: a closed pipe
	}
	if diags.HasErrors() {
		return errConfiguration
	}
	a.printf("%s\n", config.FormatValue(value))
	return nil
}
