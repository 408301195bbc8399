package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"

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
	plain               bool // no colour, whatever the terminal can do
	acting              acting
	compact             bool // warnings in one line each
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "qod",
		Short: "Declarative fleets of DuckDB nodes",
		Long: "qod plans and applies tenants, databases, pools and permissions written as HCL, runs DuckDB nodes for them,\n" +
			"and routes Arrow Flight SQL from any client to the right node.\n\n" +
			"Commands are about the state on this host, or with --server about that of a qod serve anywhere; qod login lets them in.\n" +
			"Flags may be written with one dash too. Each setting that qod config lists is also a flag of every command.",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVarP(&a.chdir, "chdir", "C", ".", "work in this `DIRECTORY`")
	flags.StringVar(&a.settingsFile, "config", "", "read settings from this `FILE`; qod config lists them")
	must(root.MarkPersistentFlagDirname("chdir"))
	completeFiles(root, "config")
	flags.BoolVar(&a.plain, "no-color", false, "print without colour, as with NO_COLOR in the environment")
	addFlags(flags)
	hideSettings(root)
	for i, g := range groups(a) {
		id := strconv.Itoa(i)
		root.AddGroup(&cobra.Group{ID: id, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
		root.SetHelpCommandGroupID(id) // of the last one, in the end
		root.SetCompletionCommandGroupID(id)
	}
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	return root
}

// group is what help shows together.
type group struct {
	title    string
	commands []*cobra.Command
}

func groups(a *app) []group {
	return []group{
		{"Write a configuration", []*cobra.Command{
			newInit(a), newValidate(a), newFmt(a), newRender(a), newConsole(a), newGraph(a), newExport(a), newSchema(a),
		}},
		{"Plan and apply it", []*cobra.Command{newPlan(a), newApply(a), newDestroy(a), newDrift(a), newVerify(a), newWait(a)}},
		{"Look at what is stored, and go back", []*cobra.Command{
			newShow(a), newAccess(a), newOutput(a), newState(a), newHistory(a), newDiff(a), newRollback(a),
		}},
		{"Let programs in, and see who came", []*cobra.Command{newLogin(a), newLogout(a), newToken(a), newSession(a), newAudit(a)}},
		{"Run it", []*cobra.Command{newServe(a), newStatus(a), newRestart(a), newSQL(a), newLoad(a), newDown(a), newNode(a)}},
		{"Other", []*cobra.Command{newConfig(a), newVersion(a)}},
	}
}

// hideSettings keeps the help of each command short: `qod config` lists all settings.
func hideSettings(root *cobra.Command) {
	for _, s := range settingList() {
		if flag := root.PersistentFlags().Lookup(s.Flag()); flag != nil && flag.Name != serverFlag {
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
	return a.away(cmd)
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

// colored reports whether what is written to the stream may have colour: it is a terminal that knows
// colour, and nobody asked for none (no-color.org).
func (a *app) colored(stream any) bool {
	none, _ := a.env("NO_COLOR")
	kind, _ := a.env("TERM")
	return !a.plain && none == "" && kind != "dumb" && terminal(stream)
}

// printf writes to standard output. Its errors are those of a closed pipe, and nothing can be said then.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// plural counts things: "1 row", "2 rows".
func plural[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// quiet is the log of commands that talk to people: only warnings and errors.
func (a *app) quiet() *slog.Logger {
	if a.paths.sources["log_level"] != "default" {
		return a.log
	}
	return slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
