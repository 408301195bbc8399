package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/runtime/node"
	"github.com/qod-io/qod/runtime/wire"
)

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print versions of qod, DuckDB and the wire protocol",
		Long:    "version prints the versions of qod, of the DuckDB in its nodes, of the protocol between its parts, and of Go.",
		Example: "  qod version",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			a.printf("qod %s\nDuckDB %s\nwire protocol %d\n%s\n", version, node.EngineVersion, wire.Version, runtime.Version())
			return nil
		},
	}
}
