package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag without what may be a secret: the value of a variable, or what
// follows the name of a flag that does not exist.
func flagError(_ *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		if _, isVariable := value.GetFlag().Value.(given); isVariable {
			return fmt.Errorf("--%s: %w", value.GetFlag().Name, value.Unwrap())
		}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "" {
		name, _, _ := strings.Cut(unknown.GetSpecifiedShortnames(), "=")
		return fmt.Errorf("unknown flag: -%s", name)
	}
	return err
}

// noArguments refuses arguments without quoting them: part of the value of a variable is one where its
// author forgot the quotes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and there are %d: a value that has spaces needs quotes", cmd.CommandPath(), len(args))
	}
	return nil
}
