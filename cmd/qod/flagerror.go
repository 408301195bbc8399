package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/qod-io/qod/schema"
)

// flagError says what is wrong with a command's flags, and what was probably meant, without what may be a
// secret: the value of a variable, or what follows the name of a flag that does not exist.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=") // of -name, which looks like short ones
		return unknownFlag(cmd, name, unknown.GetSpecifiedName())
	case errors.As(err, &invalid):
		if _, isVariable := invalid.GetFlag().Value.(given); isVariable {
			return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
		}
		if want := wanted(invalid.GetFlag().Value.Type()); want != "" {
			return fmt.Errorf("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
		return fmt.Errorf("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	}
	return err
}

func unknownFlag(cmd *cobra.Command, short, long string) error {
	given, name := "--"+long, long
	if short != "" {
		given, name = "-"+short, short
	}
	if words := elsewhere(name); words != "" {
		return fmt.Errorf("unknown flag %s: %s", given, words)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	if meant := schema.Nearest(name, known); meant != "" {
		return fmt.Errorf("unknown flag %s: did you mean --%s?", given, meant)
	}
	return fmt.Errorf("unknown flag %s: see %s --help", given, cmd.CommandPath())
}

// elsewhere says what to do instead of a flag that Terraform has and qod needs not, or "".
func elsewhere(name string) string {
	switch name {
	case "input":
		return "qod asks for nothing but consent, and only at a terminal; leave it out"
	case "lock":
		return "a plan locks nothing, and an apply is refused where another came first; leave it out"
	case "refresh":
		return "every plan reads what is there now; leave it out"
	case "force":
		return "to be asked nothing, use --auto-approve"
	}
	return ""
}

// wanted describes the values of a type of flag, where the error of its parser does not.
func wanted(kind string) string {
	switch kind {
	case "bool":
		return "true or false"
	case "int", "int64", "uint", "uint64":
		return "a whole number"
	case "duration":
		return "a duration like 90s, 5m or 1h"
	}
	return ""
}

// plainer rewords what cobra says of flags that exclude each other.
func plainer(err error) error {
	_, given, ok := strings.Cut(err.Error(), "set none of the others can be; [")
	if !ok {
		return err
	}
	names := strings.Fields(strings.TrimSuffix(given, "] were all set"))
	return fmt.Errorf("--%s exclude each other: leave one of them out", strings.Join(names, " and --"))
}

// onlyGroups makes a command that does nothing but have others: alone it prints its help, and another name
// than those of its commands is an error.
func onlyGroups(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		for _, sub := range cmd.Commands() {
			known = append(known, sub.Name())
		}
		return fmt.Errorf("%s has no command %q.%s See %s --help", cmd.CommandPath(), args[0], schema.DidYouMean(args[0], known),
			cmd.CommandPath())
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}
