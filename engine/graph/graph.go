// Package graph orders things that depend on each other.
//
// A [Graph] holds nodes of any comparable type and says which node needs which. It gives an order in
// which every node comes after what it depends on, names the shortest cycle when there is none, and
// walks the nodes in parallel. It knows nothing of what the nodes are; what a node means and what a
// failure leads to is left to its users.
package graph

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// Graph is a set of nodes and of dependencies between them. It is not safe for concurrent change; once
// it is built, any number of goroutines may read and walk it.
type Graph[K comparable] struct {
	index  map[K]int
	nodes  []K     // in order of insertion
	needs  [][]int // per node: what it depends on, in order of insertion
	usedBy [][]int // per node: what depends on it
}

// New returns a graph without nodes.
func New[K comparable]() *Graph[K] {
	return &Graph[K]{index: map[K]int{}}
}

// Add adds a node; one that is there already keeps its place.
func (g *Graph[K]) Add(node K) { g.add(node) }

func (g *Graph[K]) add(node K) int {
	if i, ok := g.index[node]; ok {
		return i
	}
	i := len(g.nodes)
	g.index[node] = i
	g.nodes = append(g.nodes, node)
	g.needs = append(g.needs, nil)
	g.usedBy = append(g.usedBy, nil)
	return i
}

// Connect says that from depends on dependsOn, and adds those of the two that are missing. Saying it
// twice is saying it once.
func (g *Graph[K]) Connect(from, dependsOn K) {
	f, d := g.add(from), g.add(dependsOn)
	if slices.Contains(g.needs[f], d) {
		return
	}
	g.needs[f] = append(g.needs[f], d)
	g.usedBy[d] = append(g.usedBy[d], f)
}

// Order returns the nodes so that each comes after all it depends on. Of the nodes that could come
// next the one added first does, so equal graphs have equal orders. The error is a [*CycleError].
func (g *Graph[K]) Order() ([]K, error) {
	missing := make([]int, len(g.nodes))
	var ready intHeap
	for i, needs := range g.needs {
		missing[i] = len(needs)
		if missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	order := make([]K, 0, len(g.nodes))
	for len(ready) > 0 {
		i := heap.Pop(&ready).(int)
		order = append(order, g.nodes[i])
		for _, user := range g.usedBy[i] {
			missing[user]--
			if missing[user] == 0 {
				heap.Push(&ready, user)
			}
		}
	}
	if len(order) < len(g.nodes) {
		return nil, &CycleError[K]{Path: g.shortestCycle(missing)}
	}
	return order, nil
}

// Reverse returns the graph in which every dependency points the other way and the node added last
// comes first: its order is one in which things can be taken down.
func (g *Graph[K]) Reverse() *Graph[K] {
	r := New[K]()
	for _, node := range slices.Backward(g.nodes) {
		r.Add(node)
	}
	for i, node := range slices.Backward(g.nodes) {
		for _, d := range slices.Backward(g.needs[i]) {
			r.Connect(g.nodes[d], node)
		}
	}
	return r
}

// DependsOn returns what the node depends on directly, in the order in which it was connected.
func (g *Graph[K]) DependsOn(node K) []K {
	i, ok := g.index[node]
	if !ok {
		return nil
	}
	return g.pick(g.needs[i])
}

// Dependents returns all nodes that depend on the node, directly or through others, in order of
// insertion. The node itself is among them only when it is part of a cycle.
func (g *Graph[K]) Dependents(node K) []K {
	start, ok := g.index[node]
	if !ok {
		return nil
	}
	seen := map[int]bool{}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, user := range g.usedBy[i] {
			if !seen[user] {
				seen[user] = true
				queue = append(queue, user)
			}
		}
	}
	found := make([]int, 0, len(seen))
	for i := range seen {
		found = append(found, i)
	}
	slices.Sort(found)
	return g.pick(found)
}

func (g *Graph[K]) pick(indexes []int) []K {
	out := make([]K, len(indexes))
	for n, i := range indexes {
		out[n] = g.nodes[i]
	}
	return out
}

// CycleError says that nodes depend on each other in a circle.
type CycleError[K comparable] struct {
	// Path is the shortest cycle: each node depends on the next, and the last is the first again.
	Path []K
}

// Error prints the path.
func (e *CycleError[K]) Error() string {
	names := make([]string, len(e.Path))
	for i, node := range e.Path {
		names[i] = fmt.Sprint(node)
	}
	return "dependency cycle: " + strings.Join(names, " -> ")
}

// shortestCycle looks among the nodes that Order could not place, of which missing is not zero.
func (g *Graph[K]) shortestCycle(missing []int) []K {
	var best []int
	for start := range g.nodes {
		if missing[start] == 0 {
			continue
		}
		if path := g.cycleFrom(start, missing); path != nil && (best == nil || len(path) < len(best)) {
			best = path
		}
	}
	return g.pick(append(best, best[0]))
}

// cycleFrom returns the shortest way from start back to it, without the last step, or nil.
func (g *Graph[K]) cycleFrom(start int, missing []int) []int {
	cameFrom := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, d := range g.needs[i] {
			if d == start {
				return trace(cameFrom, start, i)
			}
			if _, seen := cameFrom[d]; seen || missing[d] == 0 {
				continue
			}
			cameFrom[d] = i
			queue = append(queue, d)
		}
	}
	return nil
}

func trace(cameFrom map[int]int, start, end int) []int {
	path := []int{end}
	for path[len(path)-1] != start {
		path = append(path, cameFrom[path[len(path)-1]])
	}
	slices.Reverse(path)
	return path
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }

func (h *intHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
