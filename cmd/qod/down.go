package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store/embedded"
	"github.com/qod-io/qod/runtime/local"
)

func newDown(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop serve, nodes and the private Postgres of this directory",
		Long: "down stops what runs for this working directory, and nothing else: serve first, then nodes, then the private\n" +
			"Postgres. Data stays; apply or serve starts everything again. With --purge the data goes too.",
		Example: "  qod down\n  qod down --purge",
		Args:    noArguments,
	}
	purge := cmd.Flags().Bool("purge", false, "remove the state directory with all data as well")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.down(cmd.Context(), *purge) }
	return cmd
}

func (a *app) down(ctx context.Context, purge bool) error {
	if purge && a.paths.DatabaseURL != "" {
		return errors.New("the state is in the Postgres of QOD_DATABASE_URL, and its secrets open only with the master key here: " +
			"run qod destroy for each stack, and remove that database and this directory by hand")
	}
	if _, err := os.Stat(a.paths.StateDir); errors.Is(err, os.ErrNotExist) {
		a.printf("Nothing runs here, and there is no state.\n")
		return a.forget()
	}
	for _, s := range a.paths.serves() {
		if err := a.stopServe(ctx, s); err != nil {
			return err
		}
	}
	lock, err := local.TryLock(a.paths.StateDir)
	if err != nil {
		return fmt.Errorf("stop nodes: %w", err)
	}
	defer lock.Close()
	if err := a.stopNodes(ctx); err != nil {
		return err
	}
	pg := embedded.Config{StateDir: a.paths.StateDir, RunDir: a.paths.RunDir, BinDir: a.paths.PostgresBin, Log: a.quiet()}
	server, running, err := embedded.Find(pg)
	if err != nil {
		return err
	}
	if running {
		if err := server.Stop(ctx); err != nil {
			return err
		}
		a.printf("Stopped Postgres.\n")
	}
	if !purge {
		return nil
	}
	return a.purge(ctx, pg)
}

// purge removes what qod made, and refuses where it cannot tell.
func (a *app) purge(ctx context.Context, pg embedded.Config) error {
	if _, err := os.Stat(a.paths.in(marker)); err != nil {
		return fmt.Errorf("%s was not made by qod, or held other things before: remove what you want gone by hand", a.paths.StateDir)
	}
	if err := ownedByUs(a.paths.StateDir); err != nil {
		return err
	}
	if err := a.purgeData(ctx); err != nil {
		return err
	}
	if err := embedded.Remove(pg); err != nil {
		return err
	}
	for _, name := range []string{"nodes", "pg"} {
		if err := os.RemoveAll(filepath.Join(a.paths.RunDir, name)); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	}
	if err := os.RemoveAll(a.paths.StateDir); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	for _, dir := range []string{a.paths.RunDir, filepath.Dir(a.paths.RunDir), filepath.Dir(a.paths.StateDir)} {
		_ = os.Remove(dir) // made by qod, and only gone if nobody else uses it
	}
	a.printf("Removed %s.\n", a.paths.StateDir)
	return a.forget()
}

// purgeData removes the data of each database, wherever the data root is. A directory without qod's
// marker in it is left alone.
func (a *app) purgeData(ctx context.Context) error {
	b, err := a.paths.newBackend(a.quiet())
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(a.paths.DataRoot)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("purge data: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := b.RemoveData(ctx, e.Name()); err != nil {
				return fmt.Errorf("purge data: %w", err)
			}
		}
	}
	return nil
}

// forget removes the pointer to a state directory that is gone.
func (a *app) forget() error {
	name := filepath.Join(a.paths.Dir, pointer)
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", pointer, err)
	}
	return nil
}

func (a *app) stopNodes(ctx context.Context) error {
	b, err := a.paths.newBackend(a.quiet())
	if err != nil {
		return err
	}
	nodes, err := b.List(ctx)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := b.Stop(ctx, n.ID, a.paths.drainLimit()+stopGrace); err != nil {
			return fmt.Errorf("stop node %s: %w", n.ID, err)
		}
	}
	if len(nodes) > 0 {
		a.printf("Stopped %d nodes.\n", len(nodes))
	}
	return nil
}

// stopServe ends a serve: it drains up to its limit.
func (a *app) stopServe(ctx context.Context, s presence) error {
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop serve, process %d: %w", s.PID, err)
	}
	limit := time.NewTimer(a.paths.drainLimit() + 2*stopGrace)
	defer limit.Stop()
	for startTicks(s.PID) == s.Started {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("serve, process %d, did not end in time", s.PID)
		case <-time.After(detachEvery):
		}
	}
	_ = os.Remove(s.file) // serve does it itself unless it was killed
	a.printf("Stopped serve.\n")
	return nil
}
