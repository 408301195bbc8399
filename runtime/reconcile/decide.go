package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/qod-io/qod/runtime/backend"
)

// desired is what the store asks of one pool.
type desired struct {
	specs map[backend.Role]backend.Spec // of the roles that the pool has nodes of
	count map[backend.Role]int
	// stop says why no node of the pool may run; hold why none is started or ended for now.
	stop, hold string
	// notBefore keeps a pool whose nodes fail from starting the next; failure says how they fail.
	notBefore time.Time
	failure   string
}

// view is what decide sees of a node.
type view struct {
	id     string
	role   backend.Role
	hash   string
	parts  backend.Parts // what its hash stands for; nil: not known
	phase  backend.Phase
	reason string    // why it is quarantined, not ready or gone
	seen   time.Time // when this process saw it first
	silent time.Time // since when probes go unanswered; zero: the last was answered
	drain  time.Time // since when it drains
	idle   bool      // no statement runs and no transaction is open
	load   int       // what would be lost or waited for
	fatal  string    // why its engine is unusable
	// leaving: a step that ends it is under way.
	leaving bool
}

// limits are the times that decide goes by.
type limits struct{ start, silent, drain time.Duration }

// action is what a step does.
type action int

const (
	start  action = iota // a new node
	drain                // take no new statements, and stop once idle
	stop                 // end the process, and remove its remains and its row
	forget               // remove remains and row of one that has ended
)

// step is one thing to do for a pool.
type step struct {
	do     action
	id     string       // but for start
	role   backend.Role // start
	reason string
	failed bool // stop: the node did not do what it was started for
}

// verdict is what decide found besides steps.
type verdict struct {
	converged bool
	message   string    // what is missing or too much, in words; why there are no nodes
	after     time.Time // when to look again if nothing happens before; zero: no need
}

// roles is the order in which roles are looked at.
func roles() []backend.Role { return []backend.Role{backend.Dual, backend.Write, backend.Read} }

// decide says what to do next for a pool. It does no IO, keeps no clock and changes nothing.
func decide(want desired, have []view, now time.Time, lim limits) (verdict, []step) {
	d := &decision{want: want, now: now, lim: lim}
	live := d.triage(have)
	switch {
	case want.stop != "":
		d.stopAll(live)
	case want.hold != "":
		d.count(live)
	default:
		d.count(live)
		for _, r := range roles() {
			d.role(r, live)
		}
	}
	return d.verdict(), d.steps
}

type decision struct {
	want  desired
	now   time.Time
	lim   limits
	steps []step
	after time.Time

	leaving, remains int
	draining         map[backend.Role]int
	// Of the wanted roles: nodes wanted, absent, on their way and failing; nodes to be replaced.
	wanted, absent, starting, quarantined, old int
	outdated                                   []string // what differs between the old nodes and what is wanted
	reason                                     string   // of a quarantined or starting node
	excess                                     int
}

// look asks for another round at t.
func (d *decision) look(t time.Time) {
	if d.after.IsZero() || t.Before(d.after) {
		d.after = t
	}
}

func (d *decision) step(do action, v view, reason string) {
	d.steps = append(d.steps, step{do: do, id: v.id, reason: reason})
}

func (d *decision) fail(v view, reason string) {
	d.leaving++
	d.steps = append(d.steps, step{do: stop, id: v.id, reason: reason, failed: true})
}

// triage deals with nodes that are on their way out or beyond hope, and returns the others.
func (d *decision) triage(have []view) (live []view) {
	d.draining = map[backend.Role]int{}
	for _, v := range have {
		switch {
		case v.leaving:
			d.leaving++
		case v.phase == backend.Gone:
			d.remains++
			d.step(forget, v, v.reason)
		case v.fatal != "":
			d.fail(v, "its engine is unusable: "+v.fatal)
		case v.phase == backend.Draining:
			d.leaving++
			d.draining[v.role]++
			d.drained(v)
		case v.phase == backend.Starting && d.over(v.seen, d.lim.start):
			d.fail(v, fmt.Sprintf("not ready within %s: %s", d.lim.start, cmp.Or(v.reason, "no answer")))
		case v.phase == backend.Quarantined && !v.silent.IsZero() && d.over(v.silent, d.lim.silent):
			d.fail(v, fmt.Sprintf("no answer for %s: %s", d.lim.silent, v.reason))
		default:
			live = append(live, v)
		}
	}
	return live
}

// over reports whether the span since t has passed, and else asks for a round when it has.
func (d *decision) over(t time.Time, span time.Duration) bool {
	end := t.Add(span)
	if !d.now.Before(end) {
		return true
	}
	d.look(end)
	return false
}

func (d *decision) drained(v view) {
	switch {
	case v.idle:
		d.step(stop, v, "drained")
	case d.over(v.drain, d.lim.drain):
		d.step(stop, v, fmt.Sprintf("work did not end within %s", d.lim.drain))
	}
}

func (d *decision) stopAll(live []view) {
	for _, v := range live {
		d.retire(v, d.want.stop)
	}
}

// retire ends a node: at once if it never took traffic.
func (d *decision) retire(v view, reason string) {
	d.excess++
	if v.phase == backend.Starting {
		d.step(stop, v, reason)
		return
	}
	d.step(drain, v, reason)
}

// count fills in what the verdict is made of.
func (d *decision) count(live []view) {
	for _, r := range roles() {
		n := d.want.count[r]
		d.wanted += n
		good, old := d.split(r, live)
		if n > 0 {
			d.old += len(old)
			if spec, known := d.want.specs[r]; known {
				d.compare(old, spec.Parts())
			}
		}
		serving := 0
		for _, v := range good {
			switch v.phase {
			case backend.Serving:
				serving++
			case backend.Starting:
				d.starting++
				d.reason = cmp.Or(d.reason, v.reason)
			default:
				d.quarantined++
				d.reason = v.reason
			}
		}
		d.absent += max(0, n-serving-len(old))
	}
}

// compare notes why nodes are to be replaced, each reason once.
func (d *decision) compare(old []view, wanted backend.Parts) {
	for _, v := range old {
		if why := v.parts.Until(wanted); !slices.Contains(d.outdated, why) {
			d.outdated = append(d.outdated, why)
		}
	}
}

// split returns the nodes of a role that run what is wanted, and those that run something else.
func (d *decision) split(r backend.Role, live []view) (good, old []view) {
	hash := ""
	if spec, ok := d.want.specs[r]; ok {
		hash = spec.Hash()
	}
	for _, v := range live {
		switch {
		case v.role != r:
		case v.hash == hash:
			good = append(good, v)
		default:
			old = append(old, v)
		}
	}
	return good, old
}

// role brings the nodes of one role to their number, and to what they should run: one new node beyond
// the number is started first, and an old one drains only when enough others serve.
func (d *decision) role(r backend.Role, live []view) {
	n := d.want.count[r]
	good, old := d.split(r, live)
	if n == 0 {
		d.removeRole(append(good, old...))
		return
	}
	serving := 0
	for _, v := range good {
		if v.phase == backend.Serving {
			serving++
		}
	}
	missing := n - len(good)
	if len(old) > 0 {
		missing = min(missing, n+1-len(good)-len(old)-d.draining[r])
	}
	d.start(r, missing)
	d.retireMost(old, serving+len(old)-n, "it runs what the pool had before")
	d.retireMost(good, len(good)-n, "the pool has too many")
}

func (d *decision) start(r backend.Role, n int) {
	if n <= 0 {
		return
	}
	if d.now.Before(d.want.notBefore) {
		d.look(d.want.notBefore)
		return
	}
	for range n {
		d.steps = append(d.steps, step{do: start, role: r})
	}
}

// removeRole ends nodes of a role that the pool has no more of, once those of its other roles serve.
func (d *decision) removeRole(nodes []view) {
	if d.absent > 0 {
		d.excess += len(nodes)
		return
	}
	d.retireMost(nodes, len(nodes), "the pool has no nodes of this role")
}

// retireMost ends n of the nodes, those first that are missed least. Old ones that never served and
// good ones that do not yet go before any other.
func (d *decision) retireMost(nodes []view, n int, reason string) {
	order := map[backend.Phase]int{backend.Starting: 0, backend.Quarantined: 1, backend.Serving: 2}
	nodes = slices.SortedFunc(slices.Values(nodes), func(a, b view) int {
		return cmp.Or(
			cmp.Compare(order[a.phase], order[b.phase]),
			cmp.Compare(a.load, b.load),
			b.seen.Compare(a.seen),
			cmp.Compare(a.id, b.id),
		)
	})
	for _, v := range nodes[:max(0, min(n, len(nodes)))] {
		d.retire(v, reason)
	}
}

func (d *decision) verdict() verdict {
	v := verdict{after: d.after, message: d.message()}
	v.converged = len(d.steps) == 0 && d.absent == 0 && d.old == 0 && d.leaving == 0 && d.excess == 0 &&
		d.starting == 0 && d.quarantined == 0
	return v
}
