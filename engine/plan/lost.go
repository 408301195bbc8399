package plan

import "github.com/qod-io/qod/schema"

// Lost is an object that the stack owned and that somebody else deleted.
type Lost struct {
	ID      string
	Addr    schema.Addr
	Address string // where the configuration had it
}

// lost tells what somebody deleted and the configuration still has. Where another object has taken its place
// or its block is gone, nothing is to be told: a plan that leaves nothing out settles that too.
func (b *builder) lost() {
	missed := map[string]bool{}
	for _, p := range b.wanted {
		if p.have != nil {
			continue
		}
		for _, l := range b.lostAt[p.at] {
			missed[l.ID] = true
			if p.kept {
				b.drift = append(b.drift, drifted{p, Drift{Addr: l.Addr, Address: p.at, Deleted: true}})
				b.plan.Settled = append(b.plan.Settled, l.ID)
			}
		}
	}
	for _, l := range b.in.Lost {
		if !missed[l.ID] && !b.plan.Partial {
			b.plan.Settled = append(b.plan.Settled, l.ID)
		}
	}
}

// accepts counts the deletions that a refresh takes as they are.
func (p *Plan) accepts() int {
	n := 0
	for _, d := range p.Drift {
		if d.Deleted && p.Mode == RefreshOnly {
			n++
		}
	}
	return n
}
