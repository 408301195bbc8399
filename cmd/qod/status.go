package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// statusLimit is how long a node may take to say how it is.
const statusLimit = 2 * time.Second

func newStatus(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show databases, pools and nodes as they are now",
		Long: "status asks every node now. One that does not answer is shown with the time it was last seen, and with what\n" +
			"is known of it.",
		Example: "  qod status\n  qod status --json",
		Args:    noArguments,
	}
	serving := cmd.Flags().Bool("serving", false, "only say whether a serve runs: exit code 0, or 1 when none does")
	asJSON := jsonFlags(cmd, "print JSON, described in docs/reference/plan-json.md")
	cmd.MarkFlagsMutuallyExclusive("serving", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *serving && a.paths.Server == "" {
			return a.printServes(servesOf(a.paths.serves()))
		}
		d, err := a.statusNow(cmd.Context())
		if err != nil {
			return err
		}
		switch {
		case *serving:
			return a.printServes(d.Serves)
		case *asJSON:
			return a.printJSON(d)
		}
		return a.status(d)
	}
	return cmd
}

// statusNow is the status of this host, or of the server that is set.
func (a *app) statusNow(ctx context.Context) (api.Status, error) {
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return api.Status{}, err
	}
	defer w.Close()
	if w.server != nil {
		return w.server.status(ctx)
	}
	now := seen{}
	if !w.imagined {
		now, err = w.look(ctx)
	}
	return now.document(a.paths.serves()), err
}

func (a *app) printServes(serves []api.StatusServe) error {
	for _, s := range serves {
		a.printf("serve: process %d, Flight SQL on %s, HTTP on %s\n", s.PID, s.Flight, s.HTTP)
	}
	if len(serves) == 0 {
		return errors.New("no serve runs for this directory")
	}
	return nil
}

// seen is what a look at the store and at all nodes finds. It has no snapshot where there is no state.
type seen struct {
	snap    *store.Snapshot
	rows    []store.Node
	reports map[string]nodeReport
}

// look looks at the store, and at all nodes.
func (w *world) look(ctx context.Context) (s seen, err error) {
	if s.snap, err = w.store.Snapshot(ctx); err != nil {
		return s, err
	}
	if s.rows, err = w.nodes.ListNodes(ctx); err != nil {
		return s, err
	}
	s.reports = w.askNodes(ctx, s.rows)
	return s, nil
}

func (a *app) status(d api.Status) error {
	if d.Revision == 0 {
		a.printf("There is no state yet: run qod apply.\n")
		return nil
	}
	if err := a.printServes(d.Serves); err != nil {
		a.printf("serve: %s\n", err)
	}
	told := map[string]bool{}
	for _, o := range d.Objects {
		if o.Status.Phase != "" {
			told[o.ID] = true
			a.printf("\n%s: %s\n", schema.Addr{Kind: o.Kind, Path: o.Object}, phase(store.Object{Tombstone: o.Deleting, Status: o.Status}))
		}
	}
	for _, p := range d.Pools {
		if told[p.ID] {
			continue
		}
		if err := a.printPool(p); err != nil {
			return err
		}
	}
	return nil
}

func phase(o store.Object) string {
	words := []string{string(o.Status.Phase)}
	if o.Tombstone {
		words = []string{"being destroyed"}
	}
	if o.Status.Message != "" {
		words = append(words, "("+o.Status.Message+")")
	}
	return strings.Join(words, " ")
}

// nodeReport is what a node said, or why it did not.
type nodeReport struct {
	wire.Status
	err error
}

// phase is that of the node's row, unless its answer knows better.
func (r nodeReport) phase(row store.Node) string {
	if r.err == nil && r.Ready && !r.Draining && r.Fatal == "" {
		return string(backend.Serving)
	}
	return row.Phase
}

// askNodes asks all nodes at the same time.
func (w *world) askNodes(ctx context.Context, rows []store.Node) map[string]nodeReport {
	reports := make(map[string]nodeReport, len(rows))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, row := range rows {
		wg.Go(func() {
			s, err := w.askNode(ctx, row)
			mu.Lock()
			defer mu.Unlock()
			reports[row.ID] = nodeReport{s, err}
		})
	}
	wg.Wait()
	return reports
}

func (w *world) askNode(ctx context.Context, row store.Node) (wire.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusLimit)
	defer cancel()
	if row.Endpoint == "" {
		return wire.Status{}, errors.New("it has not been started")
	}
	keys, err := w.keyring.Pool(row.PoolID)
	if err != nil {
		return wire.Status{}, err
	}
	conn, err := wire.Dial(row.Endpoint)
	if err != nil {
		return wire.Status{}, err
	}
	defer conn.Close()
	return wire.NewClient(conn, keys).Status(ctx)
}

func (a *app) printPool(p api.StatusPool) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  NODE\tROLE\tPHASE\tPID\tSERVED\tIN FLIGHT\tSESSIONS\tP50\tP95\tP99\tMEMORY\n")
	for _, n := range p.Nodes {
		if n.Load == nil {
			fmt.Fprintf(table, "  %s\t%s\tsilent, %s\t%s\t\t\t\t\t\t\t\n", n.ID[:8], n.Role, lastSeen(n.Seen), process(n.PID))
			continue
		}
		l := n.Load
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%d MiB\n", n.ID[:8], n.Role, n.Phase, process(n.PID), l.Served,
			l.InFlight, l.Sessions, brief(l.P50), brief(l.P95), brief(l.P99), l.MemoryBytes>>20)
	}
	a.printf("\n%s: %d of %d nodes serving\n", schema.Addr{Kind: "pool", Path: p.Object}, p.Serving, len(p.Nodes))
	if len(p.Nodes) == 0 {
		return nil
	}
	return table.Flush()
}

// process names a process that may not have been started.
func process(pid int) string {
	if pid == 0 {
		return "-"
	}
	return strconv.Itoa(pid)
}

func lastSeen(at *time.Time) string {
	if at == nil {
		return "never seen"
	}
	return "last seen " + at.Local().Format(time.DateTime)
}

// brief prints seconds.
func brief(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Microsecond).String()
}
