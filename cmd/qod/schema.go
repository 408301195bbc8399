package main

import (
	"github.com/spf13/cobra"

	"github.com/qod-io/qod/schema"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of *.qod.json files, for editors",
		Long: "schema prints a JSON Schema (2020-12) of configuration files in JSON syntax: the blocks of the language, the\n" +
			"arguments of every kind, what they mean and which values they take. Editors complete and check with it.",
		Example: "  qod schema > qod.schema.json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			a.printf("%s", schema.JSONSchema())
			return nil
		},
	}
}
