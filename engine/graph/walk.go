package graph

import (
	"context"
	"slices"
)

// State is what became of a node in a walk.
type State int

const (
	// Done: the function returned without an error.
	Done State = iota
	// Failed: the function returned an error.
	Failed
	// Skipped: the function was not called, since a node it depends on failed or the context ended.
	Skipped
)

// String returns the state in lower case.
func (s State) String() string {
	return [...]string{"done", "failed", "skipped"}[s]
}

// Result is what became of one node.
type Result[K comparable] struct {
	Node  K
	State State
	// Err is the function's error; for a skipped node that of the node which failed, or the
	// context's cause.
	Err error
	// Because is the node whose failure had this one skipped; without meaning in other states and
	// when the context ended.
	Because K
}

// Walk calls visit for every node, after all the node depends on is done, with at most parallelism
// calls at a time (less than one counts as one). When a call fails, the nodes that depend on the
// failed one are skipped and the others go on. When the context ends no further call starts. Walk
// returns after the last call did, with a result per node in the graph's order; it returns an error,
// a [*CycleError], only when there is no order, and then it has called nothing.
func (g *Graph[K]) Walk(ctx context.Context, parallelism int, visit func(context.Context, K) error) ([]Result[K], error) {
	order, err := g.Order()
	if err != nil {
		return nil, err
	}
	w := &walk[K]{
		graph:    g,
		results:  make([]Result[K], len(g.nodes)),
		missing:  make([]int, len(g.nodes)),
		finished: make(chan int),
	}
	for i, needs := range g.needs {
		w.results[i].Node = g.nodes[i]
		w.missing[i] = len(needs)
	}
	w.run(ctx, max(parallelism, 1), visit)

	out := make([]Result[K], len(order))
	for n, node := range order {
		out[n] = w.results[g.index[node]]
	}
	return out, nil
}

// walk is one pass over a graph. Only the goroutine of run touches it, but for the element of results
// that belongs to a running call.
type walk[K comparable] struct {
	graph    *Graph[K]
	results  []Result[K]
	missing  []int // per node: how many of those it depends on have no result yet
	ready    []int
	finished chan int
}

func (w *walk[K]) run(ctx context.Context, parallelism int, visit func(context.Context, K) error) {
	for i, n := range w.missing {
		if n == 0 {
			w.ready = append(w.ready, i)
		}
	}
	running := 0
	for len(w.ready) > 0 || running > 0 {
		if len(w.ready) == 0 || running == parallelism {
			w.settle(<-w.finished)
			running--
			continue
		}
		i := w.ready[0]
		w.ready = w.ready[1:]
		if w.results[i].State == Skipped || w.ended(ctx, i) {
			w.settle(i)
			continue
		}
		running++
		go func() {
			if err := visit(ctx, w.results[i].Node); err != nil {
				w.results[i].State, w.results[i].Err = Failed, err
			}
			w.finished <- i
		}()
	}
}

func (w *walk[K]) ended(ctx context.Context, i int) bool {
	if ctx.Err() == nil {
		return false
	}
	w.results[i].State, w.results[i].Err = Skipped, context.Cause(ctx)
	return true
}

// settle tells the node's dependents that it has a result.
func (w *walk[K]) settle(i int) {
	r := w.results[i]
	for _, user := range w.graph.usedBy[i] {
		u := &w.results[user]
		if r.State != Done && u.State != Skipped {
			u.State, u.Err, u.Because = Skipped, r.Err, r.Because
			if r.State == Failed {
				u.Because = r.Node
			}
		}
		w.missing[user]--
		if w.missing[user] == 0 {
			at, _ := slices.BinarySearch(w.ready, user)
			w.ready = slices.Insert(w.ready, at, user)
		}
	}
}
