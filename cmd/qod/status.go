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
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
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
		if *serving {
			return a.printServes()
		}
		s, err := a.seen(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return a.printJSON(s.document(a.paths.serves()))
		}
		return a.status(s)
	}
	return cmd
}

func (a *app) printServes() error {
	serves := a.paths.serves()
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

func (a *app) seen(ctx context.Context) (seen, error) {
	w, err := a.open(ctx, openOptions{})
	if err != nil {
		return seen{}, err
	}
	defer w.Close()
	if w.imagined {
		return seen{}, nil
	}
	return w.look(ctx)
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

func (a *app) status(s seen) error {
	if s.snap == nil {
		a.printf("There is no state yet: run qod apply.\n")
		return nil
	}
	if err := a.printServes(); err != nil {
		a.printf("serve: %s\n", err)
	}
	for _, o := range s.snap.Objects {
		switch {
		case o.Status.Phase != "":
			a.printf("\n%s: %s\n", o.Addr(), phase(o))
		case o.Kind.Name == "pool":
			if err := a.printPool(o, s.rows, s.reports); err != nil {
				return err
			}
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

func (a *app) printPool(o store.Object, rows []store.Node, reports map[string]nodeReport) error {
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  NODE\tROLE\tPHASE\tPID\tSERVED\tIN FLIGHT\tSESSIONS\tP50\tP95\tP99\tMEMORY\n")
	serving, all := 0, 0
	for _, row := range rows {
		if row.PoolID != o.ID {
			continue
		}
		all++
		r := reports[row.ID]
		if r.err != nil {
			fmt.Fprintf(table, "  %s\t%s\tsilent, %s\t%s\t\t\t\t\t\t\t\n", row.ID[:8], row.Role, lastSeen(row), process(row.PID))
			continue
		}
		now := r.phase(row)
		if now == string(backend.Serving) {
			serving++
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%d MiB\n", row.ID[:8], row.Role, now, r.PID, r.Served,
			r.InFlight, r.Sessions, brief(r.P50), brief(r.P95), brief(r.P99), r.MemoryBytes>>20)
	}
	a.printf("\n%s: %d of %d nodes serving\n", o.Addr(), serving, all)
	if all == 0 {
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

func lastSeen(row store.Node) string {
	if row.Seen.IsZero() {
		return "never seen"
	}
	return "last seen " + row.Seen.Local().Format(time.DateTime)
}

func brief(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
