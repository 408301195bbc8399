package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/graph"
	"github.com/qod-io/qod/schema"
)

// movedBlock is a moved block. Its addresses are those of the module it is written in.
type movedBlock struct {
	from, to           schema.Address
	fromRange, toRange hcl.Range
	rng                hcl.Range // of the block's header
}

// removedBlock is a removed block.
type removedBlock struct {
	from      schema.Address
	fromRange hcl.Range
	destroy   bool
	rng       hcl.Range
}

func (m *module) addMoved(b *hcl.Block) hcl.Diagnostics {
	content, diags := b.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "from", Required: true}, {Name: "to", Required: true}},
	})
	mv := &movedBlock{rng: header(b)}
	for name, into := range map[string]*schema.Address{"from": &mv.from, "to": &mv.to} {
		attr, ok := content.Attributes[name]
		if !ok {
			continue
		}
		a, more := constantAddress(attr.Expr)
		*into, diags = a, append(diags, more...)
	}
	if diags.HasErrors() {
		return diags
	}
	mv.fromRange, mv.toRange = content.Attributes["from"].Expr.Range(), content.Attributes["to"].Expr.Range()
	if problem := mv.check(); problem != nil {
		return append(diags, problem)
	}
	m.moves = append(m.moves, mv)
	return diags
}

func constantAddress(expr hcl.Expression) (schema.Address, hcl.Diagnostics) {
	ref, diags := readStatic(expr, wantObject)
	if diags.HasErrors() {
		return schema.Address{}, diags
	}
	a, more := ref.constant()
	return a, append(diags, more...)
}

// check looks at the move by itself.
func (m *movedBlock) check() *hcl.Diagnostic {
	from, to := m.from, m.to
	switch {
	case from.String() == to.String():
		return failAt(m.rng, "Invalid move", "from and to are both %s. Remove this block, or say where it was before.", from)
	case from.Kind == "" && to.Kind != "":
		return failAt(m.toRange, "Invalid move", "from is a module, and to is %s: a module moves to a module.", kindText(to))
	case from.Kind != "" && to.Kind == "":
		return failAt(m.toRange, "Invalid move", "from is %s, and to is a module: write where in the module it is now, as in %s.%s.%s.",
			kindText(from), to, from.Kind, from.Step)
	case from.Kind != to.Kind:
		return failAt(m.toRange, "Invalid move", "from is %s, and to is %s: no object becomes one of another kind.",
			kindText(from), kindText(to))
	case from.Kind == "" && (from.Contains(to) || to.Contains(from)) && len(from.Modules) != len(to.Modules):
		return failAt(m.rng, "Invalid move", "A module cannot move into itself or out of itself.")
	}
	return nil
}

// kindText says what kind of thing an address is of: a pool.
func kindText(a schema.Address) string { return strings.ToLower(article(a.Kind)) }

func (m *module) addRemoved(b *hcl.Block) hcl.Diagnostics {
	content, diags := b.Body.Content(&hcl.BodySchema{
		Attributes: []hcl.AttributeSchema{{Name: "from", Required: true}},
		Blocks:     []hcl.BlockHeaderSchema{{Type: "lifecycle"}},
	})
	r := &removedBlock{destroy: true, rng: header(b)}
	if attr, ok := content.Attributes["from"]; ok {
		a, more := constantAddress(attr.Expr)
		r.from, r.fromRange = a, attr.Expr.Range()
		diags = append(diags, more...)
	}
	inner, more := oneBlock(content.Blocks, "A removed block")
	diags = append(diags, more...)
	if inner != nil {
		content, more := inner.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "destroy"}}})
		diags = append(diags, more...)
		if attr, ok := content.Attributes["destroy"]; ok {
			v, more := literal(attr, cty.Bool)
			diags = append(diags, more...)
			r.destroy = more.HasErrors() || v.IsNull() || v.True()
		}
	}
	if !diags.HasErrors() {
		m.removals = append(m.removals, r)
	}
	return diags
}

// relocate adds what moved and removed blocks say, as seen from the root.
func (e *evaluation) relocate() {
	for _, m := range e.module.moves {
		if problem := e.checkMove(m); problem != nil {
			e.report(hcl.Diagnostics{problem})
		}
		e.moves = append(e.moves, schema.Move{From: m.from.In(e.path), To: m.to.In(e.path), Range: m.rng})
	}
	for _, r := range e.module.removals {
		if at, ok := e.declaredAt(r.from); ok && !r.from.Keyed {
			e.report(hcl.Diagnostics{stillDeclared(r.fromRange, r.from, at, "removed")})
		}
		e.removals = append(e.removals, schema.Removal{From: r.from.In(e.path), Destroy: r.destroy, Range: r.rng})
	}
}

func stillDeclared(rng hcl.Range, a schema.Address, at hcl.Range, verb string) *hcl.Diagnostic {
	return failAt(rng, "Object still declared", "%s is %s here and declared at %s. Remove that, or remove this block.", a, verb, at)
}

// checkMove looks at whether the configuration has what the move leads to.
func (e *evaluation) checkMove(m *movedBlock) *hcl.Diagnostic {
	target, problem := e.module.target(m.to, m.toRange)
	if problem != nil && e.leads(m.to) || target == nil {
		return nil
	}
	if problem != nil || m.to.Kind == "" {
		return problem
	}
	b := target.blockOf[node{m.to.Kind, m.to.Name}]
	switch {
	case m.to.Keyed && b.forEach == nil:
		return noKey(b.node, m.toRange)
	case m.from.Keyed && !m.to.Keyed && b.forEach != nil:
		return wantKey(b.node, m.toRange)
	}
	return nil
}

// leads reports whether what is at an address moves on or is removed.
func (e *evaluation) leads(a schema.Address) bool {
	return slices.ContainsFunc(e.module.moves, func(m *movedBlock) bool { return m.from.Contains(a) }) ||
		slices.ContainsFunc(e.module.removals, func(r *removedBlock) bool { return r.from.Contains(a) })
}

// target returns the module whose block an address is of, or that is called there. It is nil where a file
// that did not parse may declare it, and there is a problem where nothing is declared.
func (m *module) target(a schema.Address, rng hcl.Range) (*module, *hcl.Diagnostic) {
	for i, step := range a.Modules {
		n := node{"module", step.Name}
		c, called := m.callOf[n]
		switch {
		case !called && m.broken:
			return nil, nil
		case !called:
			return m, m.nothingAt(n, rng)
		case step.Keyed && c.forEach == nil:
			return m, noKey(n, rng)
		case !step.Keyed && c.forEach != nil && (a.Kind != "" || i < len(a.Modules)-1):
			return m, wantKey(n, rng)
		case c.module == nil:
			return nil, nil
		}
		m = c.module
	}
	n := node{a.Kind, a.Name}
	if _, declared := m.blockOf[n]; declared || a.Kind == "" {
		return m, nil
	}
	if m.broken {
		return nil, nil
	}
	return m, m.nothingAt(n, rng)
}

// inside returns the evaluation of a module below this one, or nil.
func (e *evaluation) inside(modules []schema.Step) *evaluation {
	for _, step := range modules {
		c, called := e.module.callOf[node{"module", step.Name}]
		if !called || step.Keyed != (c.forEach != nil) {
			return nil
		}
		if e = e.children[c.node][step.Key]; e == nil {
			return nil
		}
	}
	return e
}

// declaredAt returns where the block of an address is, as far as it stands for anything.
func (e *evaluation) declaredAt(a schema.Address) (hcl.Range, bool) {
	if a.Kind == "" {
		last := len(a.Modules) - 1
		outer, step := e.inside(a.Modules[:last]), a.Modules[last]
		if outer == nil {
			return hcl.Range{}, false
		}
		c, called := outer.module.callOf[node{"module", step.Name}]
		if !called || step.Keyed && outer.inside([]schema.Step{step}) == nil {
			return hcl.Range{}, false
		}
		return c.header, true
	}
	at := e.inside(a.Modules)
	if at == nil {
		return hcl.Range{}, false
	}
	b, declared := at.module.blockOf[node{a.Kind, a.Name}]
	if !declared {
		return hcl.Range{}, false
	}
	return b.header, true
}

// nothingAt says that no block is at n.
func (m *module) nothingAt(n node, rng hcl.Range) *hcl.Diagnostic {
	suggestion := ""
	if near := schema.Nearest(n.name, m.labels(n.root)); near != "" {
		suggestion = fmt.Sprintf(" Did you mean %s.%s?", n.root, near)
	}
	return failAt(rng, "Nothing declared there", "No block %s %q is declared.%s", n.root, n.name, suggestion)
}

func noKey(n node, rng hcl.Range) *hcl.Diagnostic {
	return failAt(rng, "Invalid key", "%s has no for_each, so there is one without a key: write %s.", n, n)
}

func wantKey(n node, rng hcl.Range) *hcl.Diagnostic {
	return failAt(rng, "Missing key", "%s has for_each: choose one, as in %s[\"KEY\"].", n, n)
}

// checkMoves looks at all moves of a configuration together.
func checkMoves(moves []schema.Move, removals []schema.Removal) hcl.Diagnostics {
	var diags hcl.Diagnostics
	from, to := map[string]schema.Move{}, map[string]schema.Move{}
	for _, m := range moves {
		if before, taken := from[m.From.String()]; taken {
			diags = append(diags, failAt(m.Range, "Two moves from one place",
				"%s moves to %s here, and to %s at %s: an object is in one place.", m.From, m.To, before.To, before.Range))
		} else if before, taken := to[m.To.String()]; taken {
			diags = append(diags, failAt(m.Range, "Two moves to one place",
				"%s moves to %s here, and %s does at %s: only one object can be there.", m.From, m.To, before.From, before.Range))
		}
		from[m.From.String()], to[m.To.String()] = m, m
	}
	gone := map[string]schema.Removal{}
	for _, r := range removals {
		if before, taken := gone[r.From.String()]; taken {
			diags = append(diags, failAt(r.Range, "Duplicate removed block", "%s is removed already at %s.", r.From, before.Range))
		}
		gone[r.From.String()] = r
		if m, moved := from[r.From.String()]; moved {
			diags = append(diags, failAt(r.Range, "Both moved and removed", "%s is removed here, and moves to %s at %s: remove one of the blocks.",
				r.From, m.To, m.Range))
		}
	}
	return append(diags, moveCycle(moves)...)
}

// moveCycle reports moves that lead back to where they start.
func moveCycle(moves []schema.Move) hcl.Diagnostics {
	g := graph.New[int]()
	for i, m := range moves {
		g.Add(i)
		for j, next := range moves {
			if i != j && (next.From.Contains(m.To) || m.To.Contains(next.From)) {
				g.Connect(i, j)
			}
		}
	}
	_, err := g.Order()
	var cycle *graph.CycleError[int]
	if !errors.As(err, &cycle) {
		return nil
	}
	var lines []string
	for _, i := range cycle.Path[:len(cycle.Path)-1] {
		lines = append(lines, fmt.Sprintf("  %s moves to %s at %s", moves[i].From, moves[i].To, moves[i].Range))
	}
	return hcl.Diagnostics{failAt(moves[cycle.Path[0]].Range, "Moves in a circle",
		"These lead back to where they start, so no place is the last one:\n\n%s", strings.Join(lines, "\n"))}
}

// checkRelocations looks at what all moves and removals say together, and at objects that are declared
// where one of them says that nothing is any more.
func (r *run) checkRelocations() {
	if len(r.moves) == 0 && len(r.removals) == 0 {
		return
	}
	r.report(checkMoves(r.moves, r.removals))
	for _, address := range slices.Sorted(maps.Keys(r.instances)) {
		a, err := schema.ParseAddress(address)
		if err != nil {
			continue
		}
		at := r.instances[address].header()
		for _, m := range r.moves {
			if _, moves := a.Rebase(m.From, m.To); moves {
				r.report(hcl.Diagnostics{stillDeclared(m.Range, a, at, "moved")})
			}
		}
		for _, gone := range r.removals {
			if gone.From.Keyed && gone.From.Contains(a) {
				r.report(hcl.Diagnostics{stillDeclared(gone.Range, a, at, "removed")})
			}
		}
	}
}
