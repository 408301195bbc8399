package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/store"
)

// scope says which stack a command is about.
type scope struct {
	stack *string
	all   *bool // nil where a command is always about one stack
}

// stackUsage documents --stack, which is the same everywhere.
const stackUsage = "`NAME` of the stack; default: that of the configuration here"

func scopeFlags(cmd *cobra.Command, several bool) scope {
	s := scope{stack: cmd.Flags().String("stack", "", stackUsage)}
	if several {
		s.all = cmd.Flags().Bool("all", false, "look at all stacks")
		cmd.MarkFlagsMutuallyExclusive("stack", "all")
	}
	return s
}

// ownStack returns the stack that is meant, with the lineage of the lock file if there is one.
func (a *app) ownStack(s scope) (store.Stack, error) {
	name := *s.stack
	if name == "" {
		loaded, _ := config.Load(a.paths.Dir) // what else is wrong with it does not matter here
		name = loaded.Stack()
	}
	if name == "" {
		return store.Stack{}, fmt.Errorf("no file in %s names a stack: go where its configuration is, or say which with --stack", a.paths.Dir)
	}
	lineage, err := readLineage(a.paths.Dir, name)
	return store.Stack{Name: name, Lineage: lineage}, err
}

// scoped returns the name of the stack that is meant, and "" for all of them: where it is asked for, and
// where there is no configuration.
func (a *app) scoped(s scope) string {
	if *s.all {
		return ""
	}
	stack, err := a.ownStack(s)
	if err != nil {
		return *s.stack
	}
	return stack.Name
}

var errNoState = errors.New("there is no state yet: run qod apply")

// past is a snapshot with the commits that led to it.
type past struct {
	*store.Snapshot
	applies []store.Apply // newest first
}

func (w *world) past(ctx context.Context) (*past, error) {
	if w.server != nil {
		return w.server.past(ctx)
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	p := &past{Snapshot: snap}
	applies, err := w.postgres.ListApplies(ctx, 0, 0)
	for _, a := range applies {
		if a.Revision <= snap.Revision { // another commit may have come in between
			p.applies = append(p.applies, a)
		}
	}
	return p, err
}

// revision reads the number of a revision that there has been.
func (p *past) revision(text string) (store.Revision, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	rev := store.Revision(n)
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("%q is no revision: want a number, as qod history lists them", text)
	case rev > p.Revision:
		return 0, fmt.Errorf("there is no revision %d yet: the newest is %d", rev, p.Revision)
	}
	return rev, nil
}
