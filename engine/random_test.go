package engine_test

import (
	"bytes"
	"encoding/base64"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var (
	seeds     = flag.Int("seeds", 120, "how many random configurations to try")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

// passage is one configuration that becomes another, and what there was before.
type passage struct {
	testing.TB
	seed   uint64
	a, b   *sketch
	texts  [2]map[string]string
	before []found
}

// found is an object that nobody owns.
type found struct {
	kind  *schema.Kind
	value cty.Value
}

func newPassage(t testing.TB, seed uint64) *passage {
	a := newSketch(rand.New(rand.NewPCG(seed, 1)))
	p := &passage{TB: t, seed: seed, a: a}
	if a.one(4) {
		p.meet()
	}
	p.b = a.changed()
	if len(p.before) > 0 {
		p.adopt()
	}
	p.texts = [2]map[string]string{a.written(seed), p.b.written(seed + 1)}
	return p
}

// meet has a tenant that nobody owns, with a role; the first configuration may use the name in no other way.
func (p *passage) meet() {
	tenant, _ := schema.Lookup("tenant")
	role, _ := schema.Lookup("role")
	value := func(k *schema.Kind, attrs map[string]string) cty.Value {
		all := k.Empty().AsValueMap()
		for name, v := range attrs {
			all[name] = cty.StringVal(v)
		}
		return cty.ObjectVal(all)
	}
	p.before = []found{
		{tenant, value(tenant, map[string]string{"name": "found", "display_name": "Found"})},
		{role, value(role, map[string]string{"tenant": "found", "name": "lost", "description": "x"})},
	}
}

// adopt has the second configuration take over what was there.
func (p *passage) adopt() {
	tenant := &item{number: 1000, kind: p.before[0].kind, attrs: map[string]cty.Value{"name": cty.StringVal("found")}, held: true}
	tenant.at = schema.Step{Name: "adopted"}
	role := &item{number: 1001, kind: p.before[1].kind, attrs: map[string]cty.Value{"name": cty.StringVal("kept")}, held: true}
	role.at, role.refs = schema.Step{Name: "every9", Key: "lo st", Keyed: true}, map[string][]int{"tenant": {1000}}
	p.b.items = append(p.b.items, tenant, role)
	p.b.imports[tenant.address().String()], p.b.imports[role.address().String()] = "found", "found/lost"
}

// report prints what it takes to see the failure again.
func (p *passage) report() {
	if !p.Failed() {
		return
	}
	for i, files := range p.texts {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			p.Logf("--- %c/%s\n%s", 'a'+i, name, files[name])
		}
	}
	p.Logf("again: go test ./engine -run %s -seeds 1 -seed %d", strings.Split(p.Name(), "/")[0], p.seed)
}

// realm is a store in which the first configuration is applied.
func (p *passage) realm(k keeper) *realm {
	r := newRealm(p, k)
	for _, f := range p.before {
		r.unowned(f.kind, f.value)
	}
	first := r.plan(evaluated(p, p.texts[0]), engine.PlanOptions{})
	if first.Failed() {
		p.Fatalf("the first configuration is refused:\n%s", text(first))
	}
	before := r.snapshot()
	r.carry(first)
	checkDone(p, first, before, r.snapshot())
	return r
}

func memory(t testing.TB) keeper { return store.NewMemory(newSealer(t)) }

// expected reports whether the problems of a plan are those that a configuration can have: what is protected
// goes, another database is at an address and what refers to it has none, or what is left as it is refers to what
// goes or has the name of something else.
func (p *passage) expected(made *engine.Plan) bool {
	left, gone, blocked := map[string]bool{}, false, false
	for _, it := range p.b.items {
		left[it.address().String()] = len(it.ignore) > 0
	}
	for _, c := range made.Changes {
		left[c.Address] = left[c.Address] || c.Action == plan.Forget
		gone = gone || c.Action == plan.Delete
	}
	for _, problem := range made.Problems {
		stays := strings.HasSuffix(problem.Summary, "cannot be replaced")
		left[problem.Address], blocked = left[problem.Address] || stays, blocked || stays
	}
	named := func(detail string) bool {
		for at, stays := range left {
			if stays && strings.Contains(detail, at) {
				return true
			}
		}
		return false
	}
	for _, problem := range made.Problems {
		switch {
		case problem.Warning, strings.Contains(problem.Summary, "is protected and may not be"),
			strings.HasPrefix(problem.Summary, "tenant_db.") && strings.HasSuffix(problem.Summary, "cannot be replaced"),
			strings.HasSuffix(problem.Summary, " does not exist") && left[problem.Address] && gone,
			strings.HasSuffix(problem.Detail, "which this plan does not make.") && blocked,
			strings.HasSuffix(problem.Summary, " would be the name of two objects") && named(problem.Detail):
		default:
			return false
		}
	}
	return true
}

// same compares two states.
func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// check goes from a to b on a store, and reports false where the plan is refused for a good reason.
func (p *passage) check(k keeper) bool {
	second := store.NewMemory(newSealer(p))
	r := p.realm(doubled{k, second})
	first := r.snapshot()
	p.checkSettled(r, p.a.written(p.seed+7))
	other := p.b.written(p.seed + 1)
	desired := evaluated(p, other)
	made := r.plan(desired, engine.PlanOptions{})
	if made.Failed() {
		if !p.expected(made) {
			p.Errorf("the second configuration is refused:\n%s", text(made))
		}
		return false
	}
	p.checkSaved(r, newRealm(p, second), made, k)
	r = newRealm(p, k)
	r.settle()
	last := r.snapshot()
	checkDone(p, made, first, last)
	p.checkSettled(r, other)
	p.checkTargets(desired, last)
	p.checkFresh(desired, last)
	p.checkBack(r, first)
	p.checkExport(r)
	return !p.Failed()
}

// checkSettled wants nothing to be left, however the configuration is written.
func (p *passage) checkSettled(r *realm, files map[string]string) {
	again := r.plan(evaluated(p, files), engine.PlanOptions{})
	if !again.Empty() || again.Failed() {
		p.Errorf("the second plan is not empty:\n%s", text(again))
	}
}

// checkSaved commits a plan here, and there what is read of its file.
func (p *passage) checkSaved(here, there *realm, made *engine.Plan, k keeper) {
	raw, err := here.Marshal(made)
	if err != nil {
		p.Fatal(err)
	}
	_, inside, _ := bytes.Cut(raw, []byte("\n"))
	if inside, err = base64.StdEncoding.DecodeString(string(inside)); err != nil {
		p.Fatal(err)
	}
	checkHidden(p, "the saved plan", string(raw)+string(inside))
	read, err := there.Unmarshal(raw)
	if err != nil {
		p.Fatal(err)
	}
	if text(made) != text(read) {
		p.Errorf("the saved plan reads %s\nand was %s", text(read), text(made))
	}
	for r, plan := range map[*realm]*engine.Plan{newRealm(p, k): made, there: read} {
		if err := r.Engine.Commit(p.Context(), plan, engine.Who{}, false); err != nil {
			p.Fatalf("commit: %v\n%s", err, text(plan))
		}
	}
	same(p, "the saved plan comes to another state", state(here.snapshot(), traits{}), state(there.snapshot(), traits{}))
	same(p, "the saved plan writes other secrets", opened(p, here.snapshot()), opened(p, there.snapshot()))
}

func opened(t testing.TB, snap *store.Snapshot) map[string]string {
	t.Helper()
	out := map[string]string{}
	for key, sealed := range snap.Secrets {
		plain, err := newSealer(t).Open(key, sealed)
		if err != nil {
			t.Fatal(err)
		}
		out[key.Object+" "+key.Attr] = string(plain)
	}
	return out
}

// checkTargets applies some of b first, and then all.
func (p *passage) checkTargets(desired schema.Desired, want *store.Snapshot) {
	r := p.realm(memory(p))
	rnd := rand.New(rand.NewPCG(p.seed, 3))
	var s plan.Selection
	for range 1 + rnd.IntN(3) {
		if len(desired.Objects) > 0 {
			at, err := schema.ParseAddress(desired.Objects[rnd.IntN(len(desired.Objects))].Address)
			if err != nil {
				p.Fatal(err)
			}
			s.Targets = append(s.Targets, at)
		}
	}
	before := r.snapshot()
	if part := r.plan(desired, engine.PlanOptions{Selection: s}); !part.Failed() {
		r.carry(part)
		checkDone(p, part, before, r.snapshot())
	}
	full := r.plan(desired, engine.PlanOptions{})
	if full.Failed() {
		p.Errorf("after -target %v the whole plan is refused:\n%s", s.Targets, text(full))
		return
	}
	r.carry(full)
	same(p, fmt.Sprintf("after -target %v", s.Targets), state(want, traits{ids: true, secrets: true}), state(r.snapshot(), traits{ids: true, secrets: true}))
}

// checkFresh destroys a and applies b: that is the same as going from one to the other.
func (p *passage) checkFresh(desired schema.Desired, want *store.Snapshot) {
	for _, it := range p.b.items {
		if len(it.ignore) > 0 || len(p.before) > 0 {
			return
		}
	}
	if keepsCase(desired, want) {
		return
	}
	r := p.realm(memory(p))
	gone := r.plan(evaluated(p, p.texts[0]), engine.PlanOptions{Mode: plan.Destroy})
	if gone.Failed() {
		if !p.expected(gone) {
			p.Errorf("destroying is refused:\n%s", text(gone))
		}
		return
	}
	before := r.snapshot()
	r.carry(gone)
	checkDone(p, gone, before, r.snapshot())
	if left := r.snapshot(); len(left.Objects) > 0 || len(left.Secrets) > 0 || len(left.Outputs["s"]) > 0 {
		p.Errorf("destroying leaves %v, %v", left.Objects, left.Outputs)
	}
	if !r.apply(desired, engine.PlanOptions{}) {
		p.Errorf("after a destroy the second configuration is refused")
		return
	}
	without := traits{ids: true, secrets: true}
	same(p, "destroyed and made anew it is another state", state(r.snapshot(), without), state(want, without))
}

// keepsCase reports whether a name is stored in another case than it is written, as it was first: made anew
// it has the case of the configuration.
func keepsCase(desired schema.Desired, stored *store.Snapshot) bool {
	names := map[string]string{}
	for _, o := range desired.Objects {
		names[o.Address] = o.Kind.NameOf(o.Value)
	}
	return slices.ContainsFunc(stored.Objects, func(o store.Object) bool {
		name, written := names[o.Address]
		return written && name != o.Kind.NameOf(o.Spec)
	})
}

// checkBack rolls back. What is given away does not come back, nor do past secrets and protections.
func (p *passage) checkBack(r *realm, want *store.Snapshot) {
	desired, problems := r.rollback(want.Revision)
	for _, problem := range problems {
		if !problem.Warning && !strings.Contains(problem.Summary, "cannot come back to") {
			p.Errorf("no way back: %s", problem.Summary)
		}
		if !problem.Warning {
			return
		}
	}
	back := r.plan(desired, engine.PlanOptions{})
	if back.Failed() {
		if !p.expected(back) {
			p.Errorf("the rollback is refused:\n%s", text(back))
		}
		return
	}
	before := r.snapshot()
	r.carry(back)
	checkDone(p, back, before, r.snapshot())
	without := traits{ids: true, versions: true, applied: true, address: true, protected: true}
	got := state(r.snapshot(), without)
	maps.DeleteFunc(got, func(key, _ string) bool { return strings.Contains(key, "found") }) // what was imported stays
	past := state(want, without)
	delete(past, "output hush") // a sensitive output comes back only where it has not changed
	delete(got, "output hush")
	same(p, "after the rollback", past, got)
}

// checkExport applies what is exported, which changes nothing, and exports again.
func (p *passage) checkExport(r *realm) {
	first, ok := p.exported(r)
	if !ok {
		return
	}
	moves := r.plan(evaluated(p, map[string]string{"main.qod.hcl": first}), engine.PlanOptions{})
	for _, c := range moves.Changes {
		changed := slices.ContainsFunc(c.Attrs, func(a plan.Attr) bool { return a.Note == "" })
		if c.Action != plan.Update || changed || c.Moved == "" && len(c.Attrs) == 0 || c.Was.Kind != "" {
			p.Errorf("what is exported changes something:\n%s\n%s", first, text(moves))
			return
		}
	}
	if moves.Failed() || len(moves.Outputs) > 0 {
		p.Errorf("what is exported cannot be applied or changes outputs:\n%s\n%s", first, text(moves))
		return
	}
	r.carry(moves)
	if again := r.plan(evaluated(p, map[string]string{"main.qod.hcl": first}), engine.PlanOptions{}); !again.Empty() {
		p.Errorf("applied, what is exported still changes something:\n%s\n%s", first, text(again))
	}
	again, _ := p.exported(r)
	if !strings.Contains(first, "\nmoved {") && again != first {
		p.Errorf("the second export differs:\n%s", cmp.Diff(first, again))
	}
	if left := r.plan(evaluated(p, map[string]string{"main.qod.hcl": again}), engine.PlanOptions{}); !left.Empty() {
		p.Errorf("the second export changes something:\n%s", text(left))
	}
}

// exported writes the stack as configuration, and reports whether one can say all of it.
func (p *passage) exported(r *realm) (string, bool) {
	snap := r.snapshot()
	if slices.ContainsFunc(snap.Outputs["s"], func(o schema.Output) bool { return o.Sensitive }) {
		return "", false
	}
	var objects []export.Object
	for _, o := range snap.Objects {
		if len(o.Sensitive) > 0 { // an export leaves it out
			return "", false
		}
		if o.Stack == "s" && !o.Tombstone {
			objects = append(objects, export.Object{
				Kind: o.Kind, Address: o.Address, Value: o.Spec, Sensitive: o.Sensitive, Lifecycle: schema.Lifecycle{PreventDestroy: o.Protected},
			})
		}
	}
	document, err := export.New(export.Options{Stack: "s", Outputs: snap.Outputs["s"]}, objects)
	if err != nil {
		p.Fatal(err)
	}
	return string(document.HCL()), len(document.Warnings) == 0
}

// Whatever a configuration says and becomes: plans are true, and all ways to a state lead to the same one.
func TestRandomConfigurations(t *testing.T) {
	refused := 0
	for i := range *seeds {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPassage(t, seed)
			defer p.report()
			if !p.check(memory(t)) {
				refused++
			}
		})
	}
	if refused > *seeds/4 {
		t.Errorf("%d of %d second plans are refused", refused, *seeds)
	}
}

// The store in Postgres comes to the same states as the one in memory, which repeats all its changes.
func TestRandomConfigurationsInPostgres(t *testing.T) {
	for i := range max(1, *seeds/30) {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := newPassage(t, seed)
			defer p.report()
			s, err := postgres.Open(t.Context(), postgres.Config{URL: pgtest.Database(t), Sealer: newSealer(t)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			p.check(s)
		})
	}
}
