// Package matrix tries every attribute of every kind through plan and apply, on a real Postgres, with real
// lakes and nodes. Its rows are generated from the Kinds, so an attribute without a sample fails.
//
// Each row writes its plans, as text and as JSON, to the golden file of its kind. After each apply nothing
// is left to do, doing it again changes nothing, and the export asks for what there is.
package matrix

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
	"github.com/qod-io/qod/test/samples"
)

var update = flag.Bool("update", false, "write the golden plans")

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestEveryAttributeHasASample(t *testing.T) {
	for _, kind := range schema.Kinds() {
		for _, name := range kind.Names() {
			if _, ok := samples.All()[kind.Name][name]; !ok {
				t.Errorf("%s.%s has no sample: the matrix cannot try it", kind.Name, name)
			}
		}
	}
}

// Each world runs all rows; what it prints must be the same in both.
func TestMatrix(t *testing.T) {
	worlds := []struct {
		name        string
		parallelism int
		seed        uint64
	}{{"1 in order", 1, 0}, {"16 shuffled", 16, 20261130}}
	plans := make([]map[string]txtar.Archive, len(worlds))
	t.Run("worlds", func(t *testing.T) {
		for i, c := range worlds {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				plans[i] = newWorld(t, c.parallelism, c.seed).run(t)
			})
		}
	})
	for i, c := range worlds {
		for kind, got := range plans[i] {
			t.Run(c.name+" "+kind, func(t *testing.T) { golden(t, kind, got) })
		}
	}
	noDatabaseLeft(t)
}

// run runs all rows and returns the plans of the kinds of which no row failed.
func (w *world) run(t *testing.T) map[string]txtar.Archive {
	plans := map[string]txtar.Archive{}
	other := w.stack("base")
	other.apply(t, base)
	for _, kind := range schema.Kinds() {
		r := &rows{stack: w.stack("matrix"), kind: kind}
		if t.Run(kind.Name, r.run) {
			plans[kind.Name] = r.out
		}
	}
	other.destroy(t)
	w.nothingLeft(t)
	return plans
}

// golden compares the plans of a kind with the reviewed ones.
func golden(t *testing.T, kind string, got txtar.Archive) {
	t.Helper()
	path := filepath.Join("testdata", kind+".txtar")
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatal("golden plans are reviewed: -update is refused in CI")
		}
		if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
		t.Errorf("the plans differ (-want +got):\n%s", diff)
	}
}

// rows are those of one kind.
type rows struct {
	*stack
	kind *schema.Kind
	out  txtar.Archive
}

func (r *rows) run(t *testing.T) {
	for _, name := range r.kind.Names() {
		r.row(t, name, func(t *testing.T) { r.attribute(t, name) })
	}
	r.row(t, "all at once", r.everything)
	r.row(t, "imported", r.imported)
	r.row(t, "of another stack", r.takenOver)
	r.row(t, "deleted by somebody else", r.deletedByOthers)
	if r.kind.Holds != "" {
		r.row(t, "its data", r.holds)
	}
	r.row(t, "renamed", r.renamed)
	r.row(t, "replaced", r.replaced)
	r.row(t, "swapped", r.swapped)
	r.row(t, "swapped below a name", r.swappedBelowAName)
	r.row(t, "in two tenants", r.twins)
	r.row(t, "another tenant", r.movedAway)
	r.row(t, "its tenant renamed", r.tenantRenamed)
}

// row runs one row and ends what it made.
func (r *rows) row(t *testing.T, title string, f func(*testing.T)) {
	t.Run(title, func(t *testing.T) {
		before := len(r.out.Files)
		f(t)
		if len(r.out.Files) > before {
			r.record(t, title+": destroy", r.destroy(t))
		}
	})
}

// attribute creates an object with A, changes A to B, takes the attribute out, and has somebody else change
// it.
func (r *rows) attribute(t *testing.T, name string) {
	s := samples.All()[r.kind.Name][name]
	a := r.body(s.With, map[string]string{name: s.A})
	r.step(t, name+" = A", a)
	r.inAnotherCase(t, name, s)
	if s.Only == "" {
		r.becomes(t, name, s, a)
	}
	if !s.Required {
		r.step(t, name+" taken out", r.body(s.With, map[string]string{name: ""}))
	}
	if s.Only == "" && r.kind.EffectOf(name) != schema.Replace { // else it would be another object
		r.drift(t, name, s, a)
	}
}

func (r *rows) becomes(t *testing.T, name string, s sample, a map[string]string) {
	b := r.body(s.With, map[string]string{name: s.B}, s.WithB)
	if r.kind.Holds != "" && r.kind.EffectOf(name) == schema.Replace {
		r.refused(t, name+" = B is refused", r.source(b))
		return
	}
	r.step(t, name+" = B", b)
	r.step(t, name+" = A again", a)
}

// inAnotherCase writes a name as it is not stored: it means the same.
func (r *rows) inAnotherCase(t *testing.T, name string, s sample) {
	a, ok := r.kind.Attr(name)
	if !ok || a.Ref == "" && !(name == "name" && r.kind.Name == "user") {
		return
	}
	b := r.body(s.With, map[string]string{name: strings.ToUpper(s.A)})
	if p := r.compared(t, r.source(b), engine.PlanOptions{}); !p.Empty() || p.Failed() {
		t.Errorf("%s.%s in another case is a change:\n%s", r.kind.Name, name, text(p))
	}
}

// drift has somebody else set the attribute to B.
func (r *rows) drift(t *testing.T, name string, s sample, a map[string]string) {
	r.apply(t, r.source(a))
	r.somebodySets(t, r.kind, name, r.value(t, r.body(s.With, map[string]string{name: s.B}, s.WithB)).GetAttr(name))
	p := r.plan(t, r.source(a))
	if len(p.Drift) == 0 {
		t.Errorf("%s.%s was changed by somebody else, and the plan does not say so", r.kind.Name, name)
	}
	r.record(t, name+" changed by somebody else", p)
	r.record(t, name+" changed by somebody else: refresh only",
		r.planned(t, r.source(a), engine.PlanOptions{Mode: plan.RefreshOnly}).Plan)
	r.apply(t, r.source(a))
	if s.Kept {
		r.carryOut(t, r.planned(t, r.source(a), engine.PlanOptions{Mode: plan.RefreshOnly}))
		r.apply(t, r.source(r.body(s.With, map[string]string{name: s.B}, s.WithB)))
		return
	}
	r.settled(t, r.source(a))
}

// everything creates an object with each attribute's A where they go together.
func (r *rows) everything(t *testing.T) {
	all, with := map[string]string{}, map[string]string{}
	for _, name := range r.kind.Names() {
		s := samples.All()[r.kind.Name][name]
		if s.Apart {
			continue
		}
		all[name] = s.A
		maps.Copy(with, s.With)
	}
	r.step(t, "all at once", r.body(all, with))
}

// imported takes over an object that nobody owns.
func (r *rows) imported(t *testing.T) {
	source := r.source(r.body())
	r.apply(t, source)
	id := r.object(t, r.kind).Addr()
	r.forget(t, r.kind)
	r.refused(t, "without an import it is refused", source)
	r.stepSource(t, "import", source+importBlock(r.kind, id))
	r.settled(t, source)
}

// takenOver imports the object of another stack.
func (r *rows) takenOver(t *testing.T) {
	donor := r.world.stack("donor")
	body := strings.TrimPrefix(r.source(r.body()), head(r.Name))
	donor.apply(t, head(donor.Name)+body)
	id := donor.object(t, r.kind).Addr()
	r.refused(t, "of another stack without an import it is refused", head(r.Name)+body)
	r.stepSource(t, "import from another stack", head(r.Name)+body+importBlock(r.kind, id))
	if p := donor.planned(t, head(donor.Name), engine.PlanOptions{Mode: plan.Destroy}); !p.Empty() {
		t.Errorf("the stack that gave %s away would still destroy it:\n%s", id, text(p.Plan))
	}
}

func importBlock(kind *schema.Kind, id schema.Addr) string {
	return fmt.Sprintf("\nimport {\n  to = %s.it\n  id = %q\n}\n", kind.Name, id.Path)
}

// deletedByOthers deletes the object behind the configuration's back.
func (r *rows) deletedByOthers(t *testing.T) {
	body := r.body()
	r.apply(t, r.source(body))
	gone := r.somebodyDeletes(t, r.kind)
	want := []plan.Drift{{Addr: gone, Address: r.kind.Name + ".it", Deleted: true}}
	for _, mode := range []plan.Mode{plan.Normal, plan.RefreshOnly} {
		p := r.compared(t, r.source(body), engine.PlanOptions{Mode: mode})
		if diff := cmp.Diff(want, p.Drift, cmp.Comparer(func(a, b plan.Attr) bool { return a.Name == b.Name })); diff != "" {
			t.Errorf("mode %q: drift (-want +got):\n%s", mode, diff)
		}
	}
	r.step(t, "deleted by somebody else", body)
	r.deletionAccepted(t, body)
}

// deletionAccepted has a refresh take a deletion as it is: the object is new afterwards.
func (r *rows) deletionAccepted(t *testing.T, body map[string]string) {
	r.somebodyDeletes(t, r.kind)
	r.carryOut(t, r.planned(t, r.source(body), engine.PlanOptions{Mode: plan.RefreshOnly}))
	p := r.planned(t, r.source(body), engine.PlanOptions{})
	if add, change, destroy := p.Counts(); len(p.Drift) > 0 || add != 1 || change+destroy > 0 {
		t.Errorf("after a refresh the deleted object is not just new:\n%s", text(p.Plan))
	}
	r.carryOut(t, p)
	r.settled(t, r.source(body))
}

// holds shows that data is not destroyed unless that was allowed before.
func (r *rows) holds(t *testing.T) {
	r.apply(t, r.source(r.body(map[string]string{r.kind.Holds: "false"})))
	r.refused(t, "destroying its data is refused", head(r.Name))
	r.step(t, "destroying its data is allowed", r.body())
}

// body is the minimal block with other arguments in place; "" leaves one out.
func (r *rows) body(changes ...map[string]string) map[string]string {
	out := samples.Minimal()[r.kind.Name]
	for _, c := range changes {
		for name, v := range c {
			if v == "" {
				delete(out, name)
				continue
			}
			out[name] = v
		}
	}
	return out
}

func head(stack string) string { return fmt.Sprintf("qod {\n  stack = %q\n}\n\n", stack) }

// source writes a body as a configuration with that one block, labelled it.
func (r *rows) source(body map[string]string) string { return head(r.Name) + r.block("it", body) }

func (r *rows) block(label string, body map[string]string) string {
	return samples.Block(r.kind, label, body)
}
