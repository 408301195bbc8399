package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/runtime/node"
	"github.com/qod-io/qod/runtime/wire"
)

// Descriptors a node inherits: nothing secret is in its arguments or environment.
const (
	configDescriptor   = 3
	listenerDescriptor = 4
)

// exitOutgrown is the exit code of a node that ended itself since its memory got out of hand.
const exitOutgrown = 4

func newNode(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Be a node: run by serve and apply, not by people",
		Long: "node runs one DuckDB behind Flight SQL. Its configuration comes by descriptor 3 and its listener by\n" +
			"descriptor 4, from the process that starts it.",
		Args: noArguments, Hidden: true,
		// A node has no home, no state directory and no settings: all it is told comes by descriptor.
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.log = slog.New(slog.NewTextHandler(a.stderr, nil))
			return nil
		},
	}
	id := cmd.Flags().String("id", "", "id of the node")
	initLake := cmd.Flags().Bool("init-lake", false, "create a lake and end")
	load := cmd.Flags().Bool("load-tpch", false, "load TPC-H into a lake and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case *initLake:
			return withTask(func(task wire.LakeTask) error { return node.InitLake(cmd.Context(), task, a.log) })
		case *load:
			return withTask(func(task wire.LakeTask) error { return a.loadTPCH(cmd.Context(), task) })
		}
		return a.runNode(cmd.Context(), *id)
	}
	return cmd
}

func (a *app) runNode(ctx context.Context, id string) error {
	var cfg wire.NodeConfig
	if err := inherited(&cfg); err != nil {
		return err
	}
	if cfg.ID != id {
		return fmt.Errorf("configuration is of node %s, not of %s", cfg.ID, id)
	}
	f := os.NewFile(listenerDescriptor, "listener")
	if f == nil {
		return errors.New("no listener on descriptor 4: nodes are started by serve and apply")
	}
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("take over listener: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("take over listener: %w", err)
	}
	if err := node.Volunteer(); err != nil {
		a.log.WarnContext(ctx, "the kernel may kill other processes first", "err", err)
	}
	err = node.Run(ctx, node.Config{Node: cfg, Listener: l, Log: a.log})
	if errors.Is(err, node.ErrOutgrown) {
		return exitError{exitOutgrown, err}
	}
	return err
}

func withTask(do func(wire.LakeTask) error) error {
	var task wire.LakeTask
	if err := inherited(&task); err != nil {
		return err
	}
	return do(task)
}

// inherited reads JSON from the descriptor that the starting process left open.
func inherited(into any) error {
	f := os.NewFile(configDescriptor, "configuration")
	if f == nil {
		return errors.New("no configuration on descriptor 3: nodes are started by serve and apply")
	}
	defer f.Close()
	if err := json.NewDecoder(f).Decode(into); err != nil {
		return fmt.Errorf("read configuration from descriptor 3: %w (nodes are started by serve and apply)", err)
	}
	return nil
}
