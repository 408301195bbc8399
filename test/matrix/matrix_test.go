// Package matrix tries every attribute of every kind through plan and apply, on a real Postgres, with real
// lakes and nodes. Its rows are generated from the Kinds, so an attribute without a sample fails.
package matrix

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

var update = flag.Bool("update", false, "write the golden plans")

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// Each world runs all rows; what it prints must be the same in all of them.
func TestMatrix(t *testing.T) {
	for _, kind := range schema.Kinds() {
		for _, name := range kind.Names() {
			if _, ok := samples()[kind.Name][name]; !ok {
				t.Errorf("%s.%s has no sample: the matrix cannot try it", kind.Name, name)
			}
		}
	}
	for name, c := range map[string]struct {
		parallelism int
		seed        uint64
	}{"1 in order": {1, 0}, "16 shuffled": {16, 20261130}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.parallelism, c.seed)
			other := w.stack("base")
			other.apply(t, base)
			for _, kind := range schema.Kinds() {
				t.Run(kind.Name, func(t *testing.T) {
					r := &rows{stack: w.stack("matrix"), kind: kind}
					r.run(t)
					golden(t, kind.Name, r.out.String())
				})
			}
			other.destroy(t)
			w.nothingLeft(t)
		})
	}
}

// golden compares the plans of a kind with the reviewed ones.
func golden(t *testing.T, kind, got string) {
	t.Helper()
	path := filepath.Join("testdata", kind+".txt")
	if *update {
		if os.Getenv("CI") != "" {
			t.Fatal("golden plans are reviewed: -update is refused in CI")
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the plans differ (-want +got):\n%s", diff)
	}
}

// rows are those of one kind.
type rows struct {
	*stack
	kind *schema.Kind
	out  strings.Builder
}

func (r *rows) run(t *testing.T) {
	for _, name := range r.kind.Names() {
		t.Run(name, func(t *testing.T) { r.attribute(t, name) })
	}
	t.Run("all at once", r.everything)
	t.Run("import", r.imported)
	t.Run("removed by others", r.removedByOthers)
	if r.kind.Holds != "" {
		t.Run("protected by its data", r.holds)
	}
}

// attribute creates an object with A, changes A to B, takes the attribute out, has somebody else change
// it, and destroys the object.
func (r *rows) attribute(t *testing.T, name string) {
	s := samples()[r.kind.Name][name]
	a := r.body(map[string]string{name: s.A}, s.With)
	r.step(t, name+" = A", a)
	r.becomes(t, name, s, a)
	if !s.Required {
		r.step(t, name+" taken out", r.body(map[string]string{name: ""}, s.With))
	}
	if s.Only == "" {
		r.drift(t, name, s, a)
	}
	r.end(t, name)
}

func (r *rows) becomes(t *testing.T, name string, s sample, a map[string]string) {
	if s.Only != "" {
		return
	}
	b := r.body(map[string]string{name: s.B}, s.With, s.WithB)
	if r.kind.Holds != "" && r.kind.EffectOf(name) == schema.Replace {
		p := r.plan(t, r.source(b))
		if !p.Failed() {
			t.Fatalf("%s.%s would replace an object with data", r.kind.Name, name)
		}
		r.record(name+" = B is refused", p)
		return
	}
	r.step(t, name+" = B", b)
	r.step(t, name+" = A again", a)
}

// drift has somebody else set the attribute to B.
func (r *rows) drift(t *testing.T, name string, s sample, a map[string]string) {
	if r.kind.EffectOf(name) == schema.Replace {
		return // such a change makes another object of it, which Commit has no write for
	}
	r.apply(t, r.source(a))
	r.somebodySets(t, r.kind, name, r.value(t, r.body(map[string]string{name: s.B}, s.With, s.WithB)).GetAttr(name))
	p := r.plan(t, r.source(a))
	if len(p.Drift) == 0 {
		t.Errorf("%s.%s was changed by somebody else, and the plan does not say so", r.kind.Name, name)
	}
	r.record(name+" changed by somebody else", p)
	r.apply(t, r.source(a))
	r.settled(t, a)
}

// everything creates an object with each attribute's A where they go together.
func (r *rows) everything(t *testing.T) {
	all := map[string]string{}
	with := map[string]string{}
	for _, name := range r.kind.Names() {
		s := samples()[r.kind.Name][name]
		if s.With == nil && name != "password_verifier" {
			all[name] = s.A
		}
		maps.Copy(with, s.With)
	}
	if r.kind.Name == "pool_grant" {
		with = nil
	}
	full := r.body(with, all)
	r.step(t, "all at once", full)
	r.end(t, "all at once")
}

// imported takes over an object that nobody owns, and one of another stack.
func (r *rows) imported(t *testing.T) {
	body := r.body(nil)
	r.apply(t, r.source(body))
	id := r.object(t, r.kind).Addr()
	r.forget(t, r.kind)
	block := fmt.Sprintf("import {\n  to = %s.it\n  id = %q\n}\n", r.kind.Name, id.Path)
	p := r.plan(t, r.source(body))
	if !p.Failed() {
		t.Errorf("%s belongs to nobody, and a plan takes it without an import", id)
	}
	r.stepSource(t, "import", r.source(body)+block, body)
	r.end(t, "import")
}

// removedByOthers deletes the object's row behind the configuration's back.
func (r *rows) removedByOthers(t *testing.T) {
	body := r.body(nil)
	r.apply(t, r.source(body))
	r.somebodyDeletes(t, r.kind)
	r.step(t, "deleted by somebody else", body)
	r.end(t, "deleted by somebody else")
}

// holds shows that data is not destroyed unless that was allowed before.
func (r *rows) holds(t *testing.T) {
	kept := r.body(map[string]string{r.kind.Holds: "false"})
	r.apply(t, r.source(kept))
	p := r.plan(t, head)
	if !p.Failed() {
		t.Errorf("a %s that holds data may be destroyed", r.kind.Name)
	}
	r.record("destroying its data is refused", p)
	r.apply(t, r.source(r.body(nil)))
	r.end(t, "its data")
}

// body is the minimal block with other arguments in place; "" leaves one out.
func (r *rows) body(changes ...map[string]string) map[string]string {
	out := minimal()[r.kind.Name]
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

const head = "qod {\n  stack = \"matrix\"\n}\n\n"

// source writes a body as a configuration with that one block, labelled it.
func (r *rows) source(body map[string]string) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "%s%s \"it\" {\n", head, r.kind.Name)
	for _, name := range slices.Sorted(maps.Keys(body)) {
		if _, isBlock := r.kind.Block(name); isBlock {
			fmt.Fprintf(out, "  %s {\n    %s\n  }\n", name, body[name])
			continue
		}
		fmt.Fprintf(out, "  %s = %s\n", name, body[name])
	}
	out.WriteString("}\n")
	return out.String()
}

// step plans, applies and shows that one apply was enough.
func (r *rows) step(t *testing.T, title string, body map[string]string) {
	t.Helper()
	r.stepSource(t, title, r.source(body), body)
}

func (r *rows) stepSource(t *testing.T, title, source string, body map[string]string) {
	t.Helper()
	r.record(title, r.plan(t, source))
	r.apply(t, source)
	r.settled(t, body)
}

// settled shows that nothing is left to do, that doing it changes nothing, and that the export is what the
// configuration says.
func (r *rows) settled(t *testing.T, body map[string]string) {
	t.Helper()
	source := r.source(body)
	if p := r.plan(t, source); !p.Empty() || p.Failed() {
		t.Errorf("the plan after an apply is not empty:\n%s", text(p))
	}
	r.changesNothing(t, source)
	r.exports(t, source)
}

func (r *rows) record(title string, p *plan.Plan) {
	fmt.Fprintf(&r.out, "=== %s\n\n%s\n", title, text(p))
}

func (r *rows) end(t *testing.T, title string) {
	t.Helper()
	r.record(title+": destroy", r.destroy(t))
}
