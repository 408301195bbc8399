package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// Load is the live work of a pool, over all its nodes.
type Load struct {
	Sessions     int // those that have state on a node
	Transactions int // sessions in a transaction
	Statements   int // that run
	Silent       int // nodes that did not answer: what they do is not known
}

func (l Load) add(other Load) Load {
	l.Sessions += other.Sessions
	l.Transactions += other.Transactions
	l.Statements += other.Statements
	l.Silent += other.Silent
	return l
}

// words says what ends, and how long it has; it is empty when nothing does.
func (l Load) words(limit time.Duration) string {
	var work, out []string
	if l.Sessions > 0 {
		s := count(l.Sessions, "session")
		if l.Transactions > 0 {
			s += fmt.Sprintf(" (%d in a transaction)", l.Transactions)
		}
		work = append(work, s)
	}
	if l.Statements > 0 {
		work = append(work, count(l.Statements, "running statement"))
	}
	if len(work) > 0 {
		out = append(out, fmt.Sprintf("%s: they have up to %s to end", strings.Join(work, ", "), limit))
	}
	switch {
	case l.Silent == 1:
		out = append(out, "1 node does not answer, and what it does is not known")
	case l.Silent > 1:
		out = append(out, fmt.Sprintf("%d nodes do not answer, and what they do is not known", l.Silent))
	}
	return strings.Join(out, "; ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// draining says what live work ends with the changes. Nodes are asked only where some must end.
func (e *Engine) draining(ctx context.Context, snap *store.Snapshot, changes []plan.Change) ([]plan.Finding, error) {
	if e.Runtime == nil {
		return nil, nil
	}
	drains, err := drained(snap, changes)
	if err != nil || len(drains) == 0 {
		return nil, err
	}
	loads, err := e.Runtime.Load(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at live work: %w", err)
	}
	var out []plan.Finding
	for _, d := range drains {
		var sum Load
		for _, pool := range d.pools {
			sum = sum.add(loads[pool])
		}
		if words := sum.words(e.DrainLimit); words != "" {
			out = append(out, plan.Finding{Addr: d.addr, Message: words})
		}
	}
	return out, nil
}

// drain is an object that takes live work with it, and the pools whose work that is.
type drain struct {
	addr  schema.Addr
	pools []string // ids
}

// drained lists what ends live work: pools that lose nodes, by their own change or by that of what they
// refer to, and objects that go and had pools. Each appears once, in the order of the changes.
func drained(snap *store.Snapshot, changes []plan.Change) ([]drain, error) {
	stored, pools := map[string]store.Object{}, map[schema.Addr][]store.Object{}
	for _, o := range snap.Objects {
		stored[o.ID] = o
		if o.Kind.Name != runs || o.Tombstone {
			continue
		}
		pools[o.Addr()] = append(pools[o.Addr()], o)
		for _, ref := range o.Kind.Refs(o.Spec) {
			pools[ref.To] = append(pools[ref.To], o)
		}
	}
	var out []drain
	seen := map[schema.Addr]bool{}
	add := func(addr schema.Addr, ids ...string) {
		if !seen[addr] {
			seen[addr] = true
			out = append(out, drain{addr, ids})
		}
	}
	for _, c := range changes {
		was, ok := stored[c.ID]
		if !ok {
			continue
		}
		users := pools[was.Addr()]
		if len(users) == 0 {
			continue
		}
		ends, err := endsWork(c, was)
		if err != nil {
			return nil, err
		}
		switch {
		case c.Action == plan.Delete || c.Action == plan.Replace:
			ids := make([]string, len(users))
			for i, pool := range users {
				ids[i] = pool.ID
			}
			add(was.Addr(), ids...)
		case ends:
			for _, pool := range users {
				add(pool.Addr(), pool.ID)
			}
		}
	}
	return out, nil
}

// endsWork reports whether an update has nodes end that run now.
func endsWork(c plan.Change, was store.Object) (bool, error) {
	if c.Action != plan.Update {
		return false, nil
	}
	for _, a := range c.Attrs {
		if a.Effect == schema.Roll {
			return true, nil
		}
	}
	before, err := was.Complete()
	if err != nil {
		return false, err
	}
	after, problems := c.Kind.Complete(c.Spec)
	if len(problems) > 0 {
		return false, fmt.Errorf("complete %s: %s", c.Addr, problems[0].Message)
	}
	a, err := open(c.Kind, before)
	if err != nil {
		return false, err
	}
	b, err := open(c.Kind, after)
	if err != nil {
		return false, err
	}
	return b.closed && !a.closed || b.fewer(a), nil
}

// service is what an object says about nodes running at all.
type service struct {
	closed bool
	nodes  schema.PoolNodes
}

func (s service) fewer(before service) bool {
	return s.nodes.Read < before.nodes.Read || s.nodes.Write < before.nodes.Write || s.nodes.Dual < before.nodes.Dual
}

// open reads the service of a complete object.
func open(k *schema.Kind, v cty.Value) (service, error) {
	switch k.Name {
	case runs:
		pool, err := schema.As[schema.Pool](v)
		return service{pool.Disabled || pool.Suspended, pool.Counts()}, err
	case "tenant_db":
		db, err := schema.As[schema.TenantDB](v)
		return service{closed: db.Disabled}, err
	case "tenant":
		tenant, err := schema.As[schema.Tenant](v)
		return service{closed: tenant.Disabled}, err
	}
	return service{}, nil
}
