package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/backend"
)

var (
	noon       = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	testLimits = limits{start: time.Minute, silent: 30 * time.Second, drain: time.Minute}
)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// want asks for nodes of one spec per role.
func want(dual, write, read int) desired {
	d := desired{specs: map[backend.Role]backend.Spec{}, count: map[backend.Role]int{}}
	for role, n := range map[backend.Role]int{backend.Dual: dual, backend.Write: write, backend.Read: read} {
		if n > 0 {
			d.count[role] = n
			d.specs[role] = specOf(role)
		}
	}
	return d
}

func specOf(r backend.Role) backend.Spec { return backend.Spec{PoolID: "p", Role: r} }

// node is a node of the wanted spec that was seen an hour ago.
func node(id string, phase backend.Phase, change ...func(*view)) view {
	v := view{id: id, role: backend.Dual, phase: phase, seen: ago(time.Hour)}
	for _, c := range change {
		c(&v)
	}
	if v.hash == "" {
		v.hash = specOf(v.role).Hash()
	}
	return v
}

func old(v *view) { v.hash = "old" }

// bigger is an old one of which it is known what it was started with.
func bigger(threads int) func(*view) {
	return func(v *view) {
		spec := specOf(v.role)
		spec.Threads = threads
		v.hash, v.parts = spec.Hash(), spec.Parts()
	}
}

func writer(v *view)  { v.role = backend.Write }
func reader(v *view)  { v.role = backend.Read }
func fresh(v *view)   { v.seen = ago(10 * time.Second) }
func idle(v *view)    { v.idle, v.drain = true, ago(time.Second) }
func busy(v *view)    { v.load, v.drain = 5, ago(10*time.Second) }
func tardy(v *view)   { v.drain = ago(time.Minute) }
func leaving(v *view) { v.leaving = true }

func silent(d time.Duration) func(*view) { return func(v *view) { v.silent = ago(d) } }
func says(s string) func(*view)          { return func(v *view) { v.reason = s } }

func with(d desired, change func(*desired)) desired {
	change(&d)
	return d
}

// decideTest is an arrow: what is wanted and there, and what is done about it.
type decideTest struct {
	want  desired
	have  []view
	steps []step
	after time.Duration // from noon; 0: none
	text  string
	done  bool
}

const (
	gone     = backend.Gone
	replaced = "it runs what the pool had before"
	tooMany  = "the pool has too many"
	noRole   = "the pool has no nodes of this role"

	unrecorded = " (what it was started with is not recorded here)"
)

var begin = step{do: start, role: backend.Dual}

func runDecide(t *testing.T, tests map[string]decideTest) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v, steps := decide(test.want, test.have, noon, testLimits)
			if diff := cmp.Diff(test.steps, steps, cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			want := verdict{converged: test.done, message: test.text}
			if test.after > 0 {
				want.after = noon.Add(test.after)
			}
			if diff := cmp.Diff(want, v, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideStart(t *testing.T) {
	runDecide(t, map[string]decideTest{
		"nothing wanted, nothing there": {done: true},
		"start what is missing": {
			want: want(2, 0, 0), steps: []step{begin, begin}, text: "2 of 2 nodes missing",
		},
		"start only what is missing": {
			want: want(2, 0, 0), have: []view{node("a", serving)}, steps: []step{begin}, text: "1 of 2 nodes missing",
		},
		"start each role": {
			want:  want(0, 1, 2),
			steps: []step{{do: start, role: backend.Write}, {do: start, role: backend.Read}, {do: start, role: backend.Read}},
			text:  "3 of 3 nodes missing",
		},
		"all serve": {want: want(2, 0, 0), have: []view{node("a", serving), node("b", serving)}, done: true},
		"wait while starting": {
			want: want(2, 0, 0), have: []view{node("a", serving), node("b", starting, fresh, says("no answer within 2s"))},
			after: 50 * time.Second, text: "1 of 2 nodes missing: 1 starting, no answer within 2s",
		},
	})
}

func TestDecideFailures(t *testing.T) {
	runDecide(t, map[string]decideTest{
		"give up starting": {
			want: want(1, 0, 0), have: []view{node("a", starting, says("lake is away"))},
			steps: []step{
				{do: stop, id: "a", reason: "not ready within 1m0s: lake is away", failed: true}, begin,
			},
			text: "1 of 1 node missing, 1 node to stop",
		},
		"back off": {
			want:  with(want(1, 0, 0), func(d *desired) { d.notBefore, d.failure = noon.Add(4*time.Second), "killed" }),
			after: 4 * time.Second, text: "1 of 1 node missing: killed; next start at 12:00:04Z",
		},
		"back-off is over": {
			want:  with(want(1, 0, 0), func(d *desired) { d.notBefore, d.failure = noon, "killed" }),
			steps: []step{begin}, text: "1 of 1 node missing",
		},
		"remove remains and replace": {
			want: want(1, 0, 0), have: []view{node("a", gone, says("exit status 1"))},
			steps: []step{{do: forget, id: "a", reason: "exit status 1"}, begin},
			text:  "1 of 1 node missing, remains of 1 node to remove",
		},
		"quarantined nodes are waited for": {
			want: want(1, 0, 0), have: []view{node("a", quarantined, silent(10*time.Second), says("no answer within 2s"))},
			after: 20 * time.Second, text: "1 of 1 node missing: 1 quarantined, no answer within 2s",
		},
		"quarantined nodes that answer are waited for without end": {
			want: want(1, 0, 0), have: []view{node("a", quarantined, says("its catalog is away"))},
			text: "1 of 1 node missing: 1 quarantined, its catalog is away",
		},
		"silent nodes are replaced": {
			want: want(1, 0, 0), have: []view{node("a", quarantined, silent(30*time.Second), says("no answer within 2s"))},
			steps: []step{
				{do: stop, id: "a", reason: "no answer for 30s: no answer within 2s", failed: true}, begin,
			},
			text: "1 of 1 node missing, 1 node to stop",
		},
		"unusable nodes are replaced": {
			want: want(1, 0, 0), have: []view{node("a", quarantined, func(v *view) { v.fatal = "invalidated" })},
			steps: []step{{do: stop, id: "a", reason: "its engine is unusable: invalidated", failed: true}, begin},
			text:  "1 of 1 node missing, 1 node to stop",
		},
	})
}

func TestDecideDrain(t *testing.T) {
	runDecide(t, map[string]decideTest{
		"drain the least loaded of too many": {
			want: want(1, 0, 0), have: []view{node("a", serving, busy), node("b", serving)},
			steps: []step{{do: drain, id: "b", reason: tooMany}}, text: "1 node to stop",
		},
		"of equal nodes drain the youngest": {
			want: want(1, 0, 0), have: []view{node("a", serving, fresh), node("b", serving)},
			steps: []step{{do: drain, id: "a", reason: tooMany}}, text: "1 node to stop",
		},
		"stop a starting one of too many at once": {
			want: want(1, 0, 0), have: []view{node("a", serving), node("b", starting, fresh)}, after: 50 * time.Second,
			steps: []step{{do: stop, id: "b", reason: tooMany}}, text: "1 node to stop",
		},
		"drained": {
			want: want(0, 0, 0), have: []view{node("a", draining, idle)},
			steps: []step{{do: stop, id: "a", reason: "drained"}}, text: "1 node to stop",
		},
		"draining": {
			want: want(0, 0, 0), have: []view{node("a", draining, busy)}, after: 50 * time.Second, text: "1 node to stop",
		},
		"drain limit": {
			want: want(0, 0, 0), have: []view{node("a", draining, tardy)},
			steps: []step{{do: stop, id: "a", reason: "work did not end within 1m0s"}}, text: "1 node to stop",
		},
		"a draining node does not come back": {
			want: want(1, 0, 0), have: []view{node("a", draining, busy)}, after: 50 * time.Second,
			steps: []step{begin}, text: "1 of 1 node missing, 1 node to stop",
		},
		"a step under way is not repeated": {
			want: want(1, 0, 0), have: []view{node("a", serving), node("b", gone, leaving)}, text: "1 node to stop",
		},
	})
}

func TestDecideRoll(t *testing.T) {
	runDecide(t, map[string]decideTest{
		"roll: new first": {
			want: want(2, 0, 0), have: []view{node("a", serving, old), node("b", serving, old)},
			steps: []step{begin}, text: "2 nodes to replace" + unrecorded,
		},
		"roll: what differs": {
			want: want(3, 0, 0), have: []view{node("a", serving, bigger(1)), node("b", serving, bigger(1)), node("c", serving, bigger(2))},
			steps: []step{begin}, text: `3 nodes to replace (threads: "1" -> "0"; threads: "2" -> "0")`,
		},
		"roll: what is wanted is not known": {
			want: with(want(1, 0, 0), func(d *desired) { d.hold, d.specs = "x", nil }),
			have: []view{node("a", serving, bigger(1))},
			text: "1 node to replace: x",
		},
		"roll: wait for the new one": {
			want:  want(2, 0, 0),
			have:  []view{node("a", serving, old), node("b", serving, old), node("c", starting, fresh)},
			after: 50 * time.Second, text: "2 nodes to replace" + unrecorded + ": 1 starting",
		},
		"roll: one old drains": {
			want:  want(2, 0, 0),
			have:  []view{node("a", serving, old, busy), node("b", serving, old), node("c", serving)},
			steps: []step{{do: drain, id: "b", reason: replaced}}, text: "2 nodes to replace" + unrecorded + ", 1 node to stop",
		},
		"roll: the next waits for the drained one": {
			want:  want(2, 0, 0),
			have:  []view{node("a", serving, old), node("b", draining, old, busy), node("c", serving)},
			after: 50 * time.Second, text: "1 node to replace" + unrecorded + ", 1 node to stop",
		},
		"roll: the next": {
			want: want(2, 0, 0), have: []view{node("a", serving, old), node("c", serving)},
			steps: []step{begin}, text: "1 node to replace" + unrecorded,
		},
		"roll: a quarantined old one goes first": {
			want:  want(2, 0, 0),
			have:  []view{node("a", serving, old), node("b", quarantined, old, busy), node("c", serving)},
			steps: []step{{do: drain, id: "b", reason: replaced}}, text: "2 nodes to replace" + unrecorded + ", 1 node to stop",
		},
		"roll: old ones stay while new ones fail": {
			want:  with(want(1, 0, 0), func(d *desired) { d.notBefore, d.failure = noon.Add(time.Second), "x" }),
			have:  []view{node("a", serving, old)},
			after: time.Second, text: "1 node to replace" + unrecorded + ": x; next start at 12:00:01Z",
		},
		"scale down while rolling": {
			want:  want(1, 0, 0),
			have:  []view{node("a", serving, old), node("b", serving, old), node("c", serving, old)},
			steps: []step{{do: drain, id: "a", reason: replaced}, {do: drain, id: "b", reason: replaced}},
			text:  "3 nodes to replace" + unrecorded + ", 2 nodes to stop",
		},
		"roles change: old roles stay until new ones serve": {
			want: want(0, 1, 0), have: []view{node("a", serving), node("b", starting, writer, fresh)},
			after: 50 * time.Second, text: "1 of 1 node missing: 1 starting, 1 node to stop",
		},
		"roles change: then they drain": {
			want: want(0, 1, 0),
			have: []view{node("a", serving), node("b", serving, writer), node("c", serving, reader)},
			steps: []step{
				{do: drain, id: "a", reason: noRole},
				{do: drain, id: "c", reason: noRole},
			},
			text: "2 nodes to stop",
		},
	})
}

func TestDecideStop(t *testing.T) {
	runDecide(t, map[string]decideTest{
		"zero nodes": {
			want: want(0, 0, 0), have: []view{node("a", serving)},
			steps: []step{{do: drain, id: "a", reason: noRole}}, text: "1 node to stop",
		},
		"suspended: drain": {
			want: stopFor("suspended"), have: []view{node("a", serving, busy), node("b", starting, fresh), node("c", quarantined)},
			steps: []step{
				{do: drain, id: "a", reason: "suspended"}, {do: stop, id: "b", reason: "suspended"},
				{do: drain, id: "c", reason: "suspended"},
			},
			after: 50 * time.Second, text: "suspended: 3 nodes to stop",
		},
		"suspended: done": {want: stopFor("suspended"), text: "suspended", done: true},
		"deleted: remains": {
			want: stopFor("the pool is deleted"), have: []view{node("a", gone)},
			steps: []step{{do: forget, id: "a"}}, text: "the pool is deleted: remains of 1 node to remove",
		},
		"held: nothing is started": {
			want: with(want(1, 0, 0), func(d *desired) { d.hold = "tenant_db.acme/sales is not ready" }),
			text: "1 of 1 node missing: tenant_db.acme/sales is not ready",
		},
		"held: what runs goes on": {
			want: with(want(1, 0, 0), func(d *desired) { d.hold = "x" }), have: []view{node("a", serving)}, done: true,
		},
	})
}

func stopFor(why string) desired { return desired{stop: why} }

func TestDelay(t *testing.T) {
	for earlier, want := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		16 * time.Second, 30 * time.Second, 30 * time.Second} {
		if got := delay(earlier, 0); got != want {
			t.Errorf("delay after %d failures is %s, want %s", earlier, got, want)
		}
		if got := delay(earlier, 1); got != want+want/5 {
			t.Errorf("longest delay after %d failures is %s, want %s", earlier, got, want+want/5)
		}
	}
	if got := delay(1000, 0.5); got != 33*time.Second {
		t.Errorf("delay after many failures is %s", got)
	}
}
