package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/qod-io/qod/engine/graph"
	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// analysis is what refers to what in a module, whatever its inputs are.
type analysis struct {
	uses      map[node][]reference // what a local, block, call or output refers to, but for depends_on
	dependsOn map[node][]reference // depends_on of a block, call or output
	order     []node               // locals, blocks and calls, each after what it refers to
	// functions are those of the module's directory.
	functions map[string]function.Function
}

// analyse finds what refers to what in a module, and reports references to nothing and cycles.
func (r *run) analyse(m *module) *analysis {
	a := &analysis{uses: map[node][]reference{}, dependsOn: map[node][]reference{}, functions: functions(m.dir, r.now)}
	var nodes []node
	for _, l := range m.locals {
		refs, diags := m.references(l.attr.Expr.Variables(), scope{})
		r.report(diags)
		a.uses[l.node] = refs
		nodes = append(nodes, l.node)
	}
	for i, u := range m.usesOfBlocks() {
		n := m.blocks[i].node
		r.report(u.diags)
		a.uses[n], a.dependsOn[n] = u.refs, u.dependsOn
		nodes = append(nodes, n)
	}
	for _, c := range m.calls {
		refs, dependsOn, diags := m.callUses(c)
		r.report(append(diags, c.check()...))
		a.uses[c.node], a.dependsOn[c.node] = refs, dependsOn
		nodes = append(nodes, c.node)
	}
	r.report(a.addOutputs(m))
	r.report(a.sort(m, nodes))
	return a
}

// uses is what a block refers to.
type uses struct {
	refs, dependsOn []reference
	diags           hcl.Diagnostics
}

// usesOfBlocks returns what each block refers to.
func (m *module) usesOfBlocks() []uses {
	out := make([]uses, len(m.blocks))
	parallel.Each(len(out), blocksAtOnce, func(i int) {
		out[i].refs, out[i].dependsOn, out[i].diags = m.uses(m.blocks[i])
	})
	return out
}

// addOutputs finds what outputs refer to. Nothing in the module refers to them.
func (a *analysis) addOutputs(m *module) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, o := range m.outputs {
		dependsOn, more := m.wholes(o.dependsOn)
		diags = append(diags, more...)
		a.dependsOn[o.node] = dependsOn
		if o.value == nil {
			continue
		}
		a.uses[o.node], more = m.references(o.value.Variables(), scope{})
		diags = append(diags, more...)
	}
	return diags
}

// sort sets the order of nodes, or reports a cycle.
func (a *analysis) sort(m *module, nodes []node) hcl.Diagnostics {
	g := graph.New[node]()
	for _, n := range nodes {
		g.Add(n)
	}
	for _, n := range nodes {
		a.connect(g, m, n)
	}
	order, err := g.Order()
	var cycle *graph.CycleError[node]
	if errors.As(err, &cycle) {
		return hcl.Diagnostics{a.cycle(cycle.Path)}
	}
	a.order = order
	return nil
}

func (a *analysis) connect(g *graph.Graph[node], m *module, from node) {
	for _, refs := range [][]reference{a.uses[from], a.dependsOn[from]} {
		for _, ref := range refs {
			if m.declares(ref.node) {
				g.Connect(from, ref.node)
			}
		}
	}
}

func (a *analysis) cycle(path []node) *hcl.Diagnostic {
	var lines []string
	var first hcl.Range
	for i, from := range path[:len(path)-1] {
		refs := append(slices.Clone(a.uses[from]), a.dependsOn[from]...)
		at := slices.IndexFunc(refs, func(r reference) bool { return r.node == path[i+1] })
		if i == 0 {
			first = refs[at].rng
		}
		lines = append(lines, fmt.Sprintf("  %s refers to %s at %s", from, path[i+1], refs[at].rng))
	}
	detail := "These need each other, so none can come first:\n\n"
	if len(lines) == 1 {
		detail = "A block cannot refer to itself:\n\n"
	}
	return failAt(first, "Reference cycle", "%s", detail+strings.Join(lines, "\n"))
}

// refuseSameKey finds two blocks that describe one object.
func (r *run) refuseSameKey() {
	first := map[schema.Addr]*instance{}
	for _, inst := range r.objects {
		addr := inst.addr
		before, taken := first[addr]
		if !taken {
			first[addr] = inst
			continue
		}
		r.report(hcl.Diagnostics{failAt(inst.keyRange(), "Object declared twice",
			"%s and %s (at %s) are both %s: an object has one block. Give one of them another name, or remove it.",
			inst.object.Address, before.object.Address, before.keyRange(), addr)})
	}
}

// depend sets what the object depends on: what its block refers to, and what its value names.
func (inst *instance) depend(byAddr map[schema.Addr]string) {
	needs := inst.needs()
	for _, ref := range inst.object.Kind.Refs(inst.object.Value) {
		if address, here := byAddr[ref.To]; here {
			needs[address] = true
		}
	}
	delete(needs, inst.object.Address)
	inst.object.DependsOn = slices.Sorted(maps.Keys(needs))
}

// ordered returns the objects in order of dependency, with DependsOn filled in.
func (r *run) ordered() []schema.Object {
	byAddr := map[schema.Addr]string{}
	for _, inst := range r.objects {
		byAddr[inst.addr] = inst.object.Address
	}
	g := graph.New[string]()
	for _, inst := range r.objects {
		g.Add(inst.object.Address)
		inst.evaluation.through(inst.block.node) // which remembers it
	}
	parallel.Each(len(r.objects), blocksAtOnce, func(i int) {
		r.objects[i].depend(byAddr)
	})
	for _, inst := range r.objects {
		for _, address := range inst.object.DependsOn {
			g.Connect(inst.object.Address, address)
		}
	}
	order, err := g.Order()
	var cycle *graph.CycleError[string]
	if errors.As(err, &cycle) {
		inst := r.instances[cycle.Path[0]]
		r.report(hcl.Diagnostics{failAt(inst.header(), "Reference cycle",
			"These need each other, by reference, by name or by depends_on, so none can come first: %s.",
			strings.Join(cycle.Path, " -> "))})
	}
	objects := make([]schema.Object, 0, len(order))
	for _, address := range order {
		objects = append(objects, r.instances[address].object)
	}
	return objects
}
