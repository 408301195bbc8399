// Command bench measures qod: the way through the edge in ratio to a direct connection to the node, both
// in turns in one run, how long serve takes to its first answer, and what permissions and policies cost.
// It prints tables and judges nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	rounds     = 5    // of each pair, in turns
	perRound   = 1000 // statements for latency
	warmUp     = 300
	throughput = 3 * time.Second
	bigRows    = 20_000_000
	bigQuery   = "SELECT range AS a FROM range(20000000)" // 160 MB of Arrow data
	bigBytes   = bigRows * 8
)

func main() {
	qod := flag.String("qod", "", "the binary")
	work := flag.String("work", "", "working directory of an applied and served bench configuration")
	extensions := flag.String("extensions", "", "directory of DuckDB's extensions")
	flag.Parse()
	if err := run(context.Background(), *qod, *work, *extensions); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, qod, work, extensions string) error {
	b, err := open(ctx, qod, work)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Printf("%-34s %12s %12s %8s\n", "", "direct", "edge", "ratio")
	if err := b.latency(ctx); err != nil {
		return err
	}
	for _, clients := range []int{1, 16} {
		if err := b.rate(ctx, clients); err != nil {
			return err
		}
	}
	if err := b.big(ctx); err != nil {
		return err
	}
	if err := b.memory(); err != nil {
		return err
	}
	if err := b.starts(ctx); err != nil {
		return err
	}
	return b.permissions(ctx, extensions)
}

// one is the statement that costs least.
func one() string { return "SELECT 1" }

// latency compares SELECT 1 on one connection.
func (b *bench) latency(ctx context.Context) error {
	direct, edge, err := b.pair(ctx)
	if err != nil {
		return err
	}
	return inTurns("SELECT 1", one, direct, edge)
}

// inTurns compares the times of small statements of two clients.
func inTurns(name string, next func() string, first, second *client) error {
	var all [2][]time.Duration
	for round := range rounds {
		for n, c := range []*client{first, second} {
			count := perRound
			if round == 0 {
				count += warmUp
			}
			times, err := c.times(count, next)
			if err != nil {
				return err
			}
			all[n] = append(all[n], times[count-perRound:]...)
		}
	}
	for _, p := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		d, e := percentile(all[0], p.at), percentile(all[1], p.at)
		row(name+", "+p.name, d.Round(time.Microsecond), e.Round(time.Microsecond), float64(e)/float64(d))
	}
	return nil
}

func percentile(times []time.Duration, at float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*at))]
}

func row(name string, direct, edge any, ratio float64) {
	fmt.Printf("%-34s %12v %12v %8.2f\n", name, direct, edge, ratio)
}

// rate compares statements per second of several clients, each with a connection of its own.
func (b *bench) rate(ctx context.Context, clients int) error {
	var best [2][]float64
	for range 3 {
		for n, dial := range []func(context.Context) (*client, error){b.direct, b.edge} {
			perSecond, err := hammer(ctx, dial, clients)
			if err != nil {
				return err
			}
			best[n] = append(best[n], perSecond)
		}
	}
	d, e := median(best[0]), median(best[1])
	row(fmt.Sprintf("SELECT 1/s, %d clients", clients), fmt.Sprintf("%.0f", d), fmt.Sprintf("%.0f", e), e/d)
	return nil
}

func hammer(ctx context.Context, dial func(context.Context) (*client, error), clients int) (float64, error) {
	conns := make([]*client, clients)
	for n := range conns {
		c, err := dial(ctx)
		if err != nil {
			return 0, err
		}
		defer c.close()
		if _, err := c.times(20, one); err != nil {
			return 0, err
		}
		conns[n] = c
	}
	counts, errs := make([]int, clients), make([]error, clients)
	start := time.Now()
	var wg sync.WaitGroup
	for n, c := range conns {
		wg.Go(func() {
			for errs[n] == nil && time.Since(start) < throughput {
				_, errs[n] = c.time(one())
				counts[n]++
			}
		})
	}
	wg.Wait()
	took, total := time.Since(start), 0
	for n := range counts {
		if errs[n] != nil {
			return 0, errs[n]
		}
		total += counts[n]
	}
	return float64(total) / took.Seconds(), nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// big compares the transfer of a large result.
func (b *bench) big(ctx context.Context) error {
	direct, edge, err := b.pair(ctx)
	if err != nil {
		return err
	}
	var speed [2][]float64
	for range rounds {
		for n, c := range []*client{direct, edge} {
			start := time.Now()
			rows, err := c.query(bigQuery)
			if err != nil {
				return err
			}
			if rows != bigRows {
				return fmt.Errorf("got %d rows of %d", rows, bigRows)
			}
			speed[n] = append(speed[n], bigBytes/time.Since(start).Seconds()/1e9)
		}
	}
	d, e := median(speed[0]), median(speed[1])
	row("20 million rows, GB/s", fmt.Sprintf("%.2f", d), fmt.Sprintf("%.2f", e), e/d)
	return nil
}
