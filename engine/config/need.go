package config

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/schema"
)

// scoped is a reference to a block or to a module as a whole, and the module that makes it.
type scoped struct {
	in  *evaluation
	ref reference
	// listed is true for one of depends_on, which stands for all objects whatever values say.
	listed bool
}

// needs lists the addresses of the objects that the instance refers to. Marks say it exactly, across modules
// too; where a function lost them, all objects of the block count.
func (inst *instance) needs() map[string]bool {
	e := inst.evaluation
	needs := map[string]bool{}
	exact := map[string]bool{}
	for _, m := range inst.marks {
		needs[m.address] = true
		exact[m.block] = true
	}
	refs := e.through(inst.block.node)
	for _, s := range refs {
		if s.ref.keyed && !s.listed {
			exact[s.block()] = true
		}
	}
	for _, s := range refs {
		if s.listed || s.ref.keyed || !exact[s.block()] {
			s.addTo(needs)
		}
	}
	for from := e; from.parent != nil; from = from.parent {
		for _, ref := range from.parent.dependsOn[from.call.node] {
			scoped{in: from.parent, ref: ref, listed: true}.addTo(needs)
		}
	}
	for address := range needs {
		if _, exists := e.instances[address]; !exists {
			delete(needs, address)
		}
	}
	return needs
}

// block is the address of the block that s names.
func (s scoped) block() string { return s.in.prefix + s.ref.node.String() }

// addTo adds the addresses of all objects that s names.
func (s scoped) addTo(needs map[string]bool) {
	if children, isCall := s.in.children[s.ref.node]; isCall {
		for key, child := range children {
			if !s.ref.keyed || key == s.ref.key {
				child.addAll(needs)
			}
		}
		return
	}
	b, isBlock := s.in.module.blockOf[s.ref.node]
	if isBlock && s.ref.keyed {
		needs[s.in.address(b, s.ref.key, true)] = true
		return
	}
	for _, other := range s.in.byBlock[s.ref.node] {
		needs[other.object.Address] = true
	}
}

// addAll adds the addresses of all objects in a module.
func (e *evaluation) addAll(needs map[string]bool) {
	for _, instances := range e.byBlock {
		for _, inst := range instances {
			needs[inst.object.Address] = true
		}
	}
	for _, children := range e.children {
		for _, child := range children {
			child.addAll(needs)
		}
	}
}

// through lists the blocks that a block, call or output refers to: itself, and by way of local values, of
// the arguments of its module's call and of the outputs of the modules it calls.
func (e *evaluation) through(n node) []scoped {
	if known, ok := e.flat[n]; ok {
		return known
	}
	var out []scoped
	seen := map[scoped]bool{}
	queue := e.direct(n)
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		mark := scoped{in: s.in, ref: reference{node: s.ref.node, key: s.ref.key, keyed: s.ref.keyed, output: s.ref.output}, listed: s.listed}
		if seen[mark] {
			continue
		}
		seen[mark] = true
		_, isBlock := s.in.module.blockOf[s.ref.node]
		switch {
		case isBlock || s.listed:
			out = append(out, s)
		case s.ref.node.root == "local":
			queue = append(queue, s.in.direct(s.ref.node)...)
		case s.ref.node.root == "var" && s.in.parent != nil:
			queue = append(queue, s.in.argument(s.ref.node.name)...)
		case s.ref.node.root == "module":
			queue = append(queue, s.outputs()...)
		}
	}
	e.flat[n] = out
	return out
}

// direct lists what n itself refers to.
func (e *evaluation) direct(n node) []scoped {
	var out []scoped
	for _, ref := range e.uses[n] {
		out = append(out, scoped{in: e, ref: ref})
	}
	for _, ref := range e.dependsOn[n] {
		out = append(out, scoped{in: e, ref: ref, listed: true})
	}
	return out
}

// argument lists what an argument of the module's call refers to.
func (e *evaluation) argument(name string) []scoped {
	attr, given := e.call.args[name]
	if !given {
		return nil
	}
	traversals := attr.Expr.Variables()
	if slices.ContainsFunc(traversals, func(t hcl.Traversal) bool { return t.RootName() == "each" }) {
		traversals = append(traversals, e.call.forEach.Variables()...)
	}
	refs, _ := e.parent.module.references(traversals, scope{each: true}) // reported before
	var out []scoped
	for _, ref := range refs {
		out = append(out, scoped{in: e.parent, ref: ref})
	}
	return out
}

// outputs lists what the output that s names refers to, or all outputs of the module.
func (s scoped) outputs() []scoped {
	var out []scoped
	for key, child := range s.in.children[s.ref.node] {
		if s.ref.keyed && key != s.ref.key {
			continue
		}
		for _, o := range child.module.outputs {
			if s.ref.output == "" || s.ref.output == o.node.name {
				out = append(out, child.direct(o.node)...)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b scoped) int { return strings.Compare(a.in.prefix, b.in.prefix) })
	return out
}

// declared lists what the files of all modules have.
func (e *evaluation) declared() schema.Declared {
	d := schema.Declared{Modules: map[string]bool{}, Blocks: map[string]bool{}}
	e.list(d)
	return d
}

func (e *evaluation) list(into schema.Declared) {
	for n, b := range e.module.blockOf {
		into.Blocks[schema.Address{Modules: e.path, Kind: n.root, Step: schema.Step{Name: n.name}}.String()] = b.forEach != nil
	}
	for _, children := range e.children {
		for _, child := range children {
			into.Modules[schema.Address{Modules: child.path}.String()] = true
			child.list(into)
		}
	}
}
