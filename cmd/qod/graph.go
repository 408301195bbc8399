package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
)

func newGraph(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "graph",
		Short: "Print what needs what, as a graph in DOT",
		Long: "graph prints the objects of the configuration and what each needs, for dot and other programs that draw DOT.\n" +
			"With --type plan it has what a plan changes, coloured by what is done, and the neighbours of that.",
		Example: "  qod graph | dot -Tsvg > graph.svg\n  qod graph --type plan",
		Args:    noArguments,
	}
	vars := varFlags(cmd)
	of := cmd.Flags().String("type", "config", "`WHAT` to draw: config or plan")
	completeChoices(cmd, "type", "config", "plan")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.evaluate(*vars)
		if err != nil {
			return err
		}
		switch *of {
		case "config":
			return c.drawing().write(a.stdout)
		case "plan":
			return a.graphPlan(cmd.Context(), c)
		}
		return fmt.Errorf("--type %q: want config or plan", *of)
	}
	return cmd
}

// drawing is a graph in words: needs by what has them, and colours by node.
type drawing struct {
	needs  map[string]map[string]bool
	colour map[string]string
}

func (d *drawing) add(from string) {
	if d.needs[from] == nil {
		d.needs[from] = map[string]bool{}
	}
}

func (d *drawing) connect(from, to string) {
	d.add(from)
	d.add(to)
	d.needs[from][to] = true
}

// write prints in an order that depends on the addresses alone.
func (d *drawing) write(w io.Writer) error {
	var out strings.Builder
	out.WriteString("digraph qod {\n  rankdir = \"RL\"\n  node [shape = \"box\"]\n")
	nodes := slices.Sorted(maps.Keys(d.needs))
	for _, n := range nodes {
		fmt.Fprintf(&out, "  %s", dotQuote(n))
		if colour := d.colour[n]; colour != "" {
			fmt.Fprintf(&out, " [style = \"filled\", fillcolor = %q]", colour)
		}
		out.WriteByte('\n')
	}
	for _, n := range nodes {
		for _, to := range slices.Sorted(maps.Keys(d.needs[n])) {
			fmt.Fprintf(&out, "  %s -> %s\n", dotQuote(n), dotQuote(to))
		}
	}
	out.WriteString("}\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// dotQuote is a DOT string: in a label, a backslash would start an escape.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func (c *configuration) drawing() *drawing {
	d := &drawing{needs: map[string]map[string]bool{}, colour: map[string]string{}}
	for _, o := range c.Objects {
		d.add(o.Address)
		for _, to := range o.DependsOn {
			d.connect(o.Address, to)
		}
	}
	return d
}

func (a *app) graphPlan(ctx context.Context, c *configuration) error {
	w, p, err := a.planQuietly(ctx, c)
	if w != nil {
		defer w.Close()
	}
	if err != nil {
		return err
	}
	snap, err := w.store.Snapshot(ctx)
	if err != nil {
		return err
	}
	d := c.drawing()
	at := map[string]string{} // what the configuration does not have: by the object's own address
	for _, o := range snap.Objects {
		if o.Stack == c.Stack && !o.Tombstone {
			at[o.Addr().String()] = cmp.Or(o.Address, o.Addr().String())
		}
	}
	ending := map[string]bool{}
	for _, change := range p.Changes {
		node := cmp.Or(change.Address, change.Addr.String())
		d.add(node)
		d.colour[node] = colourOf(change.Action)
		ending[change.ID] = change.Action == plan.Delete || change.Action == plan.Forget
	}
	for _, o := range snap.Objects {
		for _, ref := range o.Kind.Refs(o.Spec) {
			if to := at[ref.To.String()]; to != "" && ending[o.ID] {
				d.connect(at[o.Addr().String()], to)
			}
		}
	}
	d.narrow()
	return d.write(a.stdout)
}

// planQuietly plans without printing the plan. The world is returned open, also with an error.
func (a *app) planQuietly(ctx context.Context, c *configuration) (*world, *engine.Plan, error) {
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return nil, nil, err
	}
	stack, err := c.stack()
	if err != nil {
		return w, nil, err
	}
	if err := w.checkStack(ctx, stack, false); err != nil {
		return w, nil, err
	}
	p, err := w.plans.Plan(ctx, stack, c.Desired.Desired, engine.PlanOptions{})
	if err != nil {
		return w, nil, err
	}
	a.report(c, p.Problems)
	if p.Failed() {
		return w, nil, errConfiguration
	}
	return w, p, nil
}

// narrow leaves what has a colour, and its neighbours.
func (d *drawing) narrow() {
	keep := map[string]bool{}
	for from, needs := range d.needs {
		keep[from] = keep[from] || d.colour[from] != ""
		for to := range needs {
			keep[to] = keep[to] || d.colour[from] != ""
			keep[from] = keep[from] || d.colour[to] != ""
		}
	}
	for from, needs := range d.needs {
		maps.DeleteFunc(needs, func(to string, _ bool) bool { return d.colour[from] == "" && d.colour[to] == "" })
		if !keep[from] {
			delete(d.needs, from)
		}
	}
}

func colourOf(a plan.Action) string {
	switch a {
	case plan.Create:
		return "palegreen"
	case plan.Delete:
		return "lightsalmon"
	case plan.Replace:
		return "orchid"
	case plan.Forget:
		return "lightgray"
	}
	return "khaki"
}
