package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/tpch"
)

const (
	scaleFactor = "1"
	passes      = 13 // through TPC-H: one to warm up, and each order of the users twice
	sparse      = 4  // of so many passes one has the user under policies, who is not held to be as fast
	checks      = 20_000
)

// users are those who are compared: the administrator, on whom no policy applies, one who may select, and
// one who is under policies too.
var users = [3]string{administrator, "reader", "analyst"}

// orders are all orders of the users: nobody comes first, or after one of the others, more often.
var orders = [][len(users)]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1}, {2, 0, 1}, {1, 0, 2}}

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
// the others are always new to the guard. What else the machine does only adds to a time, and often more than
// the guard would: so it is the lower quartile that counts.
func queriesInTurns(queries []string, clients [len(users)]*client) error {
	all := make([][len(users)][]time.Duration, len(queries))
	fresh := distinct("\n-- %d")
	for pass := range passes {
		for q, sql := range queries {
			for _, n := range orders[pass%len(orders)] {
				if n == len(users)-1 && pass%sparse > 0 {
					continue
				}
				text := sql
				if n > 0 {
					text += fresh()
				}
				took, err := clients[n].time(text)
				if err != nil {
					return fmt.Errorf("TPC-H query %d as %s: %w", q+1, users[n], err)
				}
				if pass > 0 { // the first warms up
					all[q][n] = append(all[q][n], took)
				}
			}
		}
	}
	fmt.Printf("\n%-34s %12s %12s %8s %12s %8s\n", "", "admin", "reader", "speed", "policies", "speed")
	var total [len(users)]time.Duration
	for q := range all {
		var typical [len(users)]time.Duration
		for n := range typical {
			typical[n] = percentile(all[q][n], 0.25)
			total[n] += typical[n]
		}
		speedRow(fmt.Sprintf("TPC-H query %d", q+1), typical)
	}
	speedRow("TPC-H, all of them", total)
	return nil
}

// speedRow prints times, and speeds in ratio to the administrator's.
func speedRow(name string, t [len(users)]time.Duration) {
	fmt.Printf("%-34s %12v", name, t[0].Round(10*time.Microsecond))
	for _, other := range t[1:] {
		fmt.Printf(" %12v %8.2f", other.Round(10*time.Microsecond), float64(t[0])/float64(other))
	}
	fmt.Println()
}
