package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/tpch"
)

const (
	scaleFactor = "1"
	turns       = 60 // of each query
	sparse      = 4  // turns of the user under policies, who is not held to be as fast
	checks      = 20_000
)

// users are those who are compared: the administrator, on whom no policy applies, one who may select, and
// one who is under policies too.
var users = [3]string{administrator, "reader", "analyst"}

// permissions measures what they cost: in the guard alone, on small statements and on TPC-H.
func (b *bench) permissions(ctx context.Context, extensions string) error {
	queries, err := tpch.Queries(extensions)
	if err != nil {
		return err
	}
	load := exec.CommandContext(ctx, b.qod, "-C", b.work, "load", "tpch", "--sf", scaleFactor, "acme/bench")
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load TPC-H: %w\n%s", err, out)
	}
	if err := guardAlone(ctx, queries); err != nil {
		return err
	}
	var clients [len(users)]*client
	for n, user := range users {
		if clients[n], err = b.login(ctx, user); err != nil {
			return fmt.Errorf("log in as %s: %w", user, err)
		}
		b.clients = append(b.clients, clients[n])
	}
	fmt.Printf("\n%-34s %12s %12s %8s\n", "", "admin", "reader", "ratio")
	if err := inTurns("SELECT n, distinct literals", distinct("SELECT %d"), clients[0], clients[1]); err != nil {
		return err
	}
	return queriesInTurns(queries, clients)
}

// distinct returns a function whose texts are all different, so that nothing remembers what they are.
func distinct(format string) func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprintf(format, n)
	}
}

// guardAlone measures the guard in this process, on behalf of a user who may select.
func guardAlone(ctx context.Context, queries []string) error {
	g, err := guard.New(guard.Config{})
	if err != nil {
		return err
	}
	defer g.Close()
	rights, err := g.Rights(ctx, wire.Permissions{Grants: []wire.Permission{
		{Catalog: "bench", Schema: "main", Table: "*", Privileges: []string{"select"}},
	}}, "bench")
	if err != nil {
		return err
	}
	scope := guard.Scope{Catalog: "bench", Rights: rights}
	query := distinct("-- %d")
	fmt.Println()
	for _, m := range []struct {
		name  string
		count int
		next  func(n int) string
	}{
		{"SELECT n, distinct literals", checks, func(n int) string { return "SELECT " + strconv.Itoa(n) }},
		{"TPC-H, distinct texts", 50 * len(queries), func(n int) string { return queries[n%len(queries)] + "\n" + query() }},
	} {
		times := make([]time.Duration, m.count)
		for n := range times {
			sql := m.next(n)
			start := time.Now()
			if _, err := g.Check(ctx, sql, scope); err != nil {
				return fmt.Errorf("check %s: %w", sql, err)
			}
			times[n] = time.Since(start)
		}
		fmt.Printf("guard: %s: median %.3f ms, p99 %.3f ms\n", m.name,
			milliseconds(percentile(times, 0.5)), milliseconds(percentile(times, 0.99)))
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// queriesInTurns compares the speed of TPC-H. The texts of the administrator are always the same: the guard
// remembers them and finds all of it allowed, which is as near to no guard as this build comes. The texts of
// the others are always new to the guard.
func queriesInTurns(queries []string, clients [len(users)]*client) error {
	fmt.Printf("\n%-34s %12s %12s %8s %8s %12s %8s\n", "", "admin", "reader", "speed", "quartile", "policies", "speed")
	var total [len(users)]time.Duration
	var sums [2][]time.Duration // of a turn through all queries
	sums[0], sums[1] = make([]time.Duration, turns), make([]time.Duration, turns)
	fresh := distinct("\n-- %d")
	for q, sql := range queries {
		t, err := queryInTurns(sql, fresh, clients)
		if err != nil {
			return fmt.Errorf("TPC-H query %d: %w", q+1, err)
		}
		var typical [len(users)]time.Duration
		for n := range typical {
			typical[n] = percentile(t[n], 0.5)
			total[n] += typical[n]
		}
		for n := range sums {
			for turn, took := range t[n] {
				sums[n][turn] += took
			}
		}
		low, middle := speeds(t[0], t[1])
		speedRow(fmt.Sprintf("TPC-H query %d", q+1), typical, middle, low)
	}
	low, middle := speeds(sums[0], sums[1])
	speedRow("TPC-H, all of them", total, middle, low)
	return nil
}

// queryInTurns returns how long a query takes each user. What else the machine does only adds to a time, and
// often more than the guard would: so the first two take many turns one right after the other, each as often
// before the other as after it.
func queryInTurns(sql string, fresh func() string, clients [len(users)]*client) ([len(users)][]time.Duration, error) {
	var all [len(users)][]time.Duration
	for turn := range 1 + turns {
		order := []int{turn % 2, 1 - turn%2}
		if turn < sparse {
			order = append(order, 2)
		}
		for _, n := range order {
			text := sql
			if n > 0 {
				text += fresh()
			}
			took, err := clients[n].time(text)
			if err != nil {
				return all, fmt.Errorf("as %s: %w", users[n], err)
			}
			if turn > 0 { // the first warms up
				all[n] = append(all[n], took)
			}
		}
	}
	return all, nil
}

// speeds compares times turn by turn, and returns the lower quartile and the median of the ratios.
func speeds(admin, other []time.Duration) (low, middle float64) {
	ratios := make([]float64, len(admin))
	for n := range admin {
		ratios[n] = float64(admin[n]) / float64(other[n])
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/4], ratios[len(ratios)/2]
}

// speedRow prints times, and speeds in ratio to the administrator's.
func speedRow(name string, t [len(users)]time.Duration, reader, low float64) {
	fmt.Printf("%-34s %12v %12v %8.3f %8.3f %12v %8.2f\n", name, t[0].Round(10*time.Microsecond), t[1].Round(10*time.Microsecond),
		reader, low, t[2].Round(10*time.Microsecond), float64(t[0])/float64(t[2]))
}
