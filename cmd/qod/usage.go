package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// noArguments refuses arguments without quoting them: part of the value of a variable is one where its
// author forgot the quotes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and there are %d: a value that has spaces needs quotes", cmd.CommandPath(), len(args))
	}
	return nil
}
