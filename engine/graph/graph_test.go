package graph_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/graph"
)

// build reads "a" as a node and "a>b,c" as a that depends on b and c.
func build(text string) *graph.Graph[string] {
	g := graph.New[string]()
	for _, word := range strings.Fields(text) {
		node, needs, _ := strings.Cut(word, ">")
		g.Add(node)
		for _, d := range strings.FieldsFunc(needs, func(r rune) bool { return r == ',' }) {
			g.Connect(node, d)
		}
	}
	return g
}

func TestOrder(t *testing.T) {
	tests := map[string]struct {
		graph, order, cycle string
	}{
		"empty":                        {"", "", ""},
		"insertion among equals":       {"c b a", "c b a", ""},
		"dependency first":             {"a>b b>c c", "c b a", ""},
		"first added of the free":      {"z a>m m b", "z m a b", ""},
		"diamond":                      {"top>l,r l>base r>base base", "base l r top", ""},
		"said twice":                   {"a>b,b a>b", "b a", ""},
		"itself":                       {"a>a b", "", "a -> a"},
		"two":                          {"a>b b>a c", "", "a -> b -> a"},
		"shortest":                     {"a>b b>c c>a x>y y>x z>x", "", "x -> y -> x"},
		"first of equal length":        {"a>b b>a c>d d>c", "", "a -> b -> a"},
		"way to a cycle is no part of": {"start>a a>b b>a", "", "a -> b -> a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			order, err := build(tt.graph).Order()
			if got := strings.Join(order, " "); got != tt.order {
				t.Errorf("order %q, want %q", got, tt.order)
			}
			var cycle *graph.CycleError[string]
			if errors.As(err, &cycle) != (tt.cycle != "") {
				t.Fatalf("error %v, want cycle %q", err, tt.cycle)
			}
			if cycle != nil && err.Error() != "dependency cycle: "+tt.cycle {
				t.Errorf("error %q, want %q", err, tt.cycle)
			}
		})
	}
}

func TestDependents(t *testing.T) {
	g := build("a>b b>c d>b c e")
	tests := map[string]string{"a": "", "b": "a d", "c": "a b d", "e": "", "absent": ""}
	for node, want := range tests {
		if got := strings.Join(g.Dependents(node), " "); got != want {
			t.Errorf("dependents of %s: %q, want %q", node, got, want)
		}
	}
	if got := strings.Join(build("a>b b>a").Dependents("a"), " "); got != "a b" {
		t.Errorf("dependents in a cycle: %q, want %q", got, "a b")
	}
	if diff := cmp.Diff([]string{"c", "b"}, build("a>c,b b c").DependsOn("a")); diff != "" {
		t.Errorf("depends on (-want +got):\n%s", diff)
	}
}

// random returns a graph without cycles: a node depends only on ones of lower number.
func random(r *rand.Rand, n int) *graph.Graph[int] {
	g := graph.New[int]()
	for _, i := range r.Perm(n) {
		g.Add(i)
	}
	for range n * 2 {
		a, b := r.IntN(n), r.IntN(n)
		if a != b {
			g.Connect(max(a, b), min(a, b))
		}
	}
	return g
}

func TestOrderProperties(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		g := random(r, n)
		order, err := g.Order()
		if err != nil || len(order) != n {
			t.Fatalf("seed %d: %d of %d nodes, %v", seed, len(order), n, err)
		}
		at := map[int]int{}
		for i, node := range order {
			at[node] = i
		}
		for _, node := range order {
			for _, d := range g.DependsOn(node) {
				if at[d] >= at[node] {
					t.Fatalf("seed %d: %d comes after %d, which depends on it", seed, d, node)
				}
				if !slices.Contains(g.Dependents(d), node) {
					t.Fatalf("seed %d: %d is not among the dependents of %d", seed, node, d)
				}
			}
		}
		again, _ := g.Order()
		if !slices.Equal(order, again) {
			t.Fatalf("seed %d: the order changed", seed)
		}
		twice, err := g.Reverse().Reverse().Order()
		if err != nil || !slices.Equal(order, twice) {
			t.Fatalf("seed %d: reversing twice changed the order, %v", seed, err)
		}
	}
}

func TestReverseProperties(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := random(r, 1+r.IntN(40))
		order, err := g.Reverse().Order()
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for _, node := range order {
			for _, d := range g.DependsOn(node) {
				if seen[d] {
					t.Fatalf("seed %d: %d is taken down before %d, which depends on it", seed, d, node)
				}
			}
			seen[node] = true
		}
	}
}

func TestCycleProperties(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 2 + r.IntN(20)
		g := random(r, n)
		ring := r.Perm(n)[:1+r.IntN(n)]
		for i, node := range ring {
			g.Connect(node, ring[(i+1)%len(ring)])
		}
		_, err := g.Order()
		var cycle *graph.CycleError[int]
		if !errors.As(err, &cycle) {
			t.Fatalf("seed %d: no cycle found, %v", seed, err)
		}
		path := cycle.Path
		if len(path) > len(ring)+1 || path[0] != path[len(path)-1] {
			t.Fatalf("seed %d: %v is not a cycle of at most %d", seed, path, len(ring))
		}
		for i := range path[1:] {
			if !slices.Contains(g.DependsOn(path[i]), path[i+1]) {
				t.Fatalf("seed %d: %v: %d does not depend on %d", seed, path, path[i], path[i+1])
			}
		}
	}
}

func TestWalk(t *testing.T) {
	tests := map[string]struct {
		graph, fail, want string
	}{
		"all done":             {"a>b b", "", "b:done a:done"},
		"dependants skipped":   {"a>b b>c c d", "c", "c:failed b:skipped(c) a:skipped(c) d:done"},
		"only dependants":      {"a>b b c", "a", "b:done a:failed c:done"},
		"one of two is enough": {"a>b,c b c", "c", "b:done c:failed a:skipped(c)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			results, err := build(tt.graph).Walk(t.Context(), 2, func(_ context.Context, node string) error {
				if node == tt.fail {
					return fmt.Errorf("%s is broken", node)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, r := range results {
				word := fmt.Sprintf("%s:%s", r.Node, r.State)
				if r.State == graph.Skipped {
					word += "(" + r.Because + ")"
				}
				if (r.State == graph.Done) != (r.Err == nil) {
					t.Errorf("%s has error %v", word, r.Err)
				}
				words = append(words, word)
			}
			if got := strings.Join(words, " "); got != tt.want {
				t.Errorf("walk: %s\nwant: %s", got, tt.want)
			}
		})
	}
}

func TestWalkOfCycleCallsNothing(t *testing.T) {
	_, err := build("a>b b>a c").Walk(t.Context(), 1, func(context.Context, string) error {
		t.Error("called")
		return nil
	})
	var cycle *graph.CycleError[string]
	if !errors.As(err, &cycle) {
		t.Errorf("error %v, want a cycle", err)
	}
}

func TestWalkEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	results, err := build("a>b b>c c d").Walk(ctx, 1, func(_ context.Context, node string) error {
		cancel(why)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Node == "c" {
			if r.State != graph.Done {
				t.Errorf("c, which was running, is %s", r.State)
			}
			continue
		}
		if r.State != graph.Skipped || !errors.Is(r.Err, why) {
			t.Errorf("%s is %s with %v, want it skipped with the cause", r.Node, r.State, r.Err)
		}
	}
}

func TestWalkProperties(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := 1 + r.IntN(30)
		g := random(r, n)
		limit := 1 + r.IntN(4)
		broken := r.IntN(n)
		var running atomic.Int32
		var mu sync.Mutex
		done := map[int]bool{}
		results, err := g.Walk(t.Context(), limit, func(_ context.Context, node int) error {
			defer running.Add(-1)
			if now := running.Add(1); int(now) > limit {
				t.Errorf("seed %d: %d calls at a time, want at most %d", seed, now, limit)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, d := range g.DependsOn(node) {
				if !done[d] {
					t.Errorf("seed %d: %d is called before %d is done", seed, node, d)
				}
			}
			if node == broken {
				return errors.New("broken")
			}
			done[node] = true
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		skipped := g.Dependents(broken)
		for _, result := range results {
			want := graph.Done
			switch {
			case result.Node == broken:
				want = graph.Failed
			case slices.Contains(skipped, result.Node):
				want = graph.Skipped
			}
			if result.State != want {
				t.Errorf("seed %d: %d is %s, want %s", seed, result.Node, result.State, want)
			}
		}
	}
}

func TestWalkRunsInParallel(t *testing.T) {
	meet := make(chan string)
	_, err := build("a b").Walk(t.Context(), 2, func(ctx context.Context, node string) error {
		select {
		case meet <- node:
		case other := <-meet:
			if other == node {
				t.Errorf("%s met itself", node)
			}
		case <-ctx.Done():
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
