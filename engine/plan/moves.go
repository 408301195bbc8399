package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/qod-io/qod/schema"
)

// area is an address with what it contains. Its printed form is a cheap first test: parsing the address
// of every object would cost more than all the rest of a plan.
type area struct {
	schema.Address
	prefix string
}

func areaOf(a schema.Address) area { return area{a, a.String()} }

// holds reports whether a printed address is in the area.
func (a area) holds(at string) bool {
	parsed, ok := a.parse(at)
	return ok && a.Contains(parsed)
}

func (a area) parse(at string) (schema.Address, bool) {
	if !strings.HasPrefix(at, a.prefix) {
		return schema.Address{}, false
	}
	parsed, err := schema.ParseAddress(at)
	return parsed, err == nil
}

func within(areas []area, at string) bool {
	return slices.ContainsFunc(areas, func(a area) bool { return a.holds(at) })
}

// step is a moved block in a form that is fast to apply.
type step struct {
	from area
	to   schema.Address
	at   hcl.Range
	used bool
}

func (s *step) move(at string) (string, bool) {
	parsed, ok := s.from.parse(at)
	if !ok {
		return at, false
	}
	moved, ok := parsed.Rebase(s.from.Address, s.to)
	now := moved.String()
	return now, ok && now != at
}

// move gives the objects that the stack has, or has lost, the addresses that moved blocks say, and fills byBlock
// and lostAt.
func (b *builder) move() {
	steps := make([]*step, len(b.in.Desired.Moves))
	for i, m := range b.in.Desired.Moves {
		steps[i] = &step{from: areaOf(m.From), to: m.To, at: m.Range}
	}
	for _, l := range b.in.Lost {
		at, _ := follow(steps, l.Address, true)
		b.lostAt[at] = append(b.lostAt[at], l)
	}
	var moved []mover
	for _, p := range b.stored {
		if !p.own || p.at == "" {
			continue
		}
		if to, hops := follow(steps, p.at, true); hops > 0 {
			moved = append(moved, mover{p, to, hops})
			continue
		}
		b.byBlock[p.at] = p
	}
	slices.SortStableFunc(moved, func(x, y mover) int { return x.hops - y.hops })
	for _, m := range moved {
		b.settleMove(m)
	}
	if b.in.Mode == Normal {
		b.checkMoves(steps)
	}
}

// mover is an object that moved blocks give another address.
type mover struct {
	*pair
	to   string
	hops int
}

// settleMove lets an object stay where it is if another one is at the address it moves to.
func (b *builder) settleMove(m mover) {
	if other := b.byBlock[m.to]; other != nil {
		b.problem(m.pair, Problem{
			Warning: true, Address: m.to,
			Summary: fmt.Sprintf("%s stays at %s", m.addr, m.at),
			Detail: fmt.Sprintf("A moved block says that %s is now %s, but %s has that address already. Remove the one of the two "+
				"that is not wanted, or give one of them another address.", m.at, m.to, other.addr),
		})
		m.to = m.at
	}
	m.at = m.to
	m.pair.at = m.to
	b.byBlock[m.to] = m.pair
}

// follow applies moves until none says more, and counts them. A circle, which the configuration refuses,
// ends where it began.
func follow(steps []*step, at string, use bool) (string, int) {
	seen := map[string]bool{}
	hops := 0
	for !seen[at] {
		i := slices.IndexFunc(steps, func(s *step) bool { _, ok := s.move(at); return ok })
		if i < 0 {
			break
		}
		seen[at] = true
		at, _ = steps[i].move(at)
		steps[i].used = steps[i].used || use
		hops++
	}
	return at, hops
}

// checkMoves warns of moves that matched nothing, and refuses those whose object is desired where it was.
func (b *builder) checkMoves(steps []*step) {
	for _, s := range steps {
		for _, p := range b.wanted {
			if _, ok := s.move(p.at); ok {
				b.problem(nil, Problem{
					Address: p.at, Range: &s.at,
					Summary: fmt.Sprintf("%s is still in the configuration", p.at),
					Detail: fmt.Sprintf("A moved block says that %s is now %s, but there is still a block at %s. "+
						"Remove the block or the moved block.", s.from, s.to, p.at),
				})
				break
			}
		}
		if s.used || b.arrived(steps, s) {
			continue
		}
		b.problem(nil, Problem{
			Warning: true, Address: s.to.String(), Range: &s.at,
			Summary: fmt.Sprintf("The move from %s to %s matched nothing", s.from, s.to),
			Detail: fmt.Sprintf("Nothing of stack %q is at %s or at %s.%s If nothing had that address, remove the moved block.",
				b.in.Stack, s.from, s.to, schema.DidYouMean(s.from.String(), b.storedAddresses())),
		})
	}
}

// arrived reports whether something is where a move leads, or where further moves led it from there.
func (b *builder) arrived(steps []*step, s *step) bool {
	areas := []area{areaOf(s.to)}
	for range steps {
		next, hops := follow(steps, areas[len(areas)-1].prefix, false)
		if hops == 0 {
			break
		}
		parsed, err := schema.ParseAddress(next)
		if err != nil {
			break
		}
		areas = append(areas, areaOf(parsed))
	}
	return slices.ContainsFunc(b.stored, func(p *pair) bool {
		return p.own && (within(areas, p.at) || within(areas, p.have.Address))
	})
}

func (b *builder) storedAddresses() []string {
	var list []string
	for _, p := range b.stored {
		if p.own && p.at != "" {
			list = append(list, p.have.Address)
		}
	}
	slices.Sort(list)
	return list
}
