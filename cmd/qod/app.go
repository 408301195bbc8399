package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// version is set by the linker.
var version = "dev"

// app is what every subcommand starts from.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) (string, bool)

	chdir, settingsFile string // flags of the root
	paths               *paths
	log                 *slog.Logger
	acting              acting
	compact             bool // warnings in one line each
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "qod",
		Short: "Declarative fleets of DuckDB nodes",
		Long: "qod plans and applies tenants, databases, pools and permissions written as HCL, runs DuckDB nodes for them,\n" +
			"and routes Arrow Flight SQL from any client to the right node.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	flags := root.PersistentFlags()
	flags.StringVarP(&a.chdir, "chdir", "C", ".", "work in this directory")
	flags.StringVar(&a.settingsFile, "config", "", "file of settings in HCL")
	addFlags(flags)
	hideSettings(root)
	root.AddCommand(
		newInit(a), newValidate(a), newPlan(a), newApply(a), newDestroy(a), newDrift(a), newShow(a), newStatus(a),
		newLoad(a), newServe(a), newNode(a), newDown(a), newSQL(a), newConfig(a), newVersion(a), newHistory(a), newDiff(a),
		newRollback(a), newOutput(a), newState(a), newFmt(a), newSchema(a), newExport(a), newRender(a), newGraph(a),
		newConsole(a), newVerify(a), newWait(a),
	)
	return root
}

// hideSettings keeps the help of each command short: `qod config` lists all settings.
func hideSettings(root *cobra.Command) {
	for _, s := range settingList() {
		if flag := root.PersistentFlags().Lookup(s.Flag()); flag != nil {
			flag.Hidden = true
		}
	}
}

func (a *app) prepare(cmd *cobra.Command) error {
	s, err := loadSettings(cmd.Flags(), a.env, a.settingsFile)
	if err != nil {
		return err
	}
	if a.paths, err = newPaths(a.chdir, s); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return fmt.Errorf("log_level: %w", err)
	}
	a.log = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: level}))
	return nil
}

// terminal reports whether the stream is one a person looks at.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// printf writes to standard output. Its errors are those of a closed pipe, and nothing can be said then.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// quiet is the log of commands that talk to people: only warnings and errors.
func (a *app) quiet() *slog.Logger {
	if a.paths.sources["log_level"] != "default" {
		return a.log
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
