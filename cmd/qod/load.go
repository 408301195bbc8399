package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/node"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

func newLoad(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "load", Short: "Load data into a database", Long: "load has a command for each data set that qod can make."}
	cmd.AddCommand(newLoadTPCH(a))
	return cmd
}

func newLoadTPCH(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tpch TENANT/DATABASE",
		Short: "Generate TPC-H with DuckDB's own generator and load it",
		Long: "tpch generates the eight tables of TPC-H in a scratch DuckDB and creates them in the database's default schema,\n" +
			"in one transaction. It must run on the host that has the database, by somebody who may read its state.\n" +
			"Loaded before, it changes nothing.",
		Example: "  qod load tpch --sf 0.1 acme/tpch",
		Args:    cobra.ExactArgs(1),
	}
	sf := cmd.Flags().Float64("sf", 0.1, "scale `FACTOR`: 1 is about a gigabyte")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *sf <= 0 || *sf > 100 {
			return fmt.Errorf("--sf %v: want a scale factor above 0 and at most 100", *sf)
		}
		w, err := a.open(cmd.Context(), openOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		return a.load(cmd.Context(), w, args[0], *sf)
	}
	return cmd
}

// Memory and threads of the generator.
const (
	loadMemory  = 2 << 30
	loadThreads = 2
)

func (a *app) load(ctx context.Context, w *world, database string, sf float64) error {
	addr, err := schema.ParseAddr("tenant_db." + database)
	if err != nil {
		return err
	}
	if w.imagined {
		return fmt.Errorf("%s does not exist: there is no state yet", addr)
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	for _, o := range snap.Objects {
		if o.Addr() != addr || o.Tombstone {
			continue
		}
		if o.Status.Phase != store.Ready {
			return fmt.Errorf("%s is not provisioned yet: run qod apply", addr)
		}
		lake, err := w.lake(snap, o)
		if err != nil {
			return err
		}
		task := wire.LakeTask{
			Lake: lake, ExtensionDir: w.ExtensionDir, MemoryBytes: loadMemory, Threads: loadThreads,
			ScaleFactor: sf, Schema: lake.DefaultSchema,
		}
		out, err := w.host.LoadTPCH(ctx, task)
		if err != nil {
			return err
		}
		return a.printLoaded(out)
	}
	return fmt.Errorf("%s does not exist: see qod status", addr)
}

func (a *app) printLoaded(out string) error {
	var result node.Loaded
	if err := json.Unmarshal([]byte(out), &result); err != nil {
		return fmt.Errorf("read result of the load: %w", err)
	}
	if result.Already {
		a.printf("TPC-H is loaded already.\n")
	}
	for _, t := range result.Tables {
		a.printf("  %-10s %10d rows\n", t.Name, t.Rows)
	}
	return nil
}

// loadTPCH is the other end: the subprocess with DuckDB.
func (a *app) loadTPCH(ctx context.Context, task wire.LakeTask) error {
	result, err := node.LoadTPCH(ctx, task, a.log)
	if err != nil {
		return err
	}
	return json.NewEncoder(a.stdout).Encode(result)
}
