// Command qod plans, applies and serves fleets of DuckDB nodes. It only wires: each subcommand is one
// file that reads its flags, opens what it needs and calls a package.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, stop := context.WithCancelCause(context.Background())
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: os.LookupEnv}
	code := make(chan int, 1)
	go func() { code <- a.run(ctx, os.Args[1:]) }()
	os.Exit(a.acting.await(stop, signals, code, os.Stderr))
}

// run executes one command line and returns its exit code: 0, 1 for an error, or what an exitError says.
func (a *app) run(ctx context.Context, args []string) int {
	stderr := a.stderr
	root := newRoot(a)
	root.SetArgs(longFlags(root, args))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if exit := (exitError{}); !errors.As(err, &exit) || exit.err != nil {
		fmt.Fprintln(stderr, "Error:", plainer(err))
	}
	return exitCode(err)
}

// exitCode is that of a command which ends with err.
func exitCode(err error) int {
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	}
	return 1
}

// longFlags lets flags be written with one dash, as users of Terraform do: -auto-approve is --auto-approve.
// Only the names of flags are touched, and nothing after a lone "--".
func longFlags(root *cobra.Command, args []string) []string {
	known := map[string]bool{}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && len(name) > 1 && known[name] {
			out[i] = "-" + arg
		}
	}
	return out
}

// exitError ends the program with a code. Its err is printed; without one, all has been said.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }
