package matrix

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// stack is a configuration of the world.
type stack struct {
	*world
	store.Stack
}

func (w *world) stack(name string) *stack {
	return &stack{w, store.Stack{Name: name, Lineage: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String()}}
}

// step plans and applies, and shows that one apply was enough.
func (r *rows) step(t *testing.T, title string, body map[string]string) {
	t.Helper()
	r.stepSource(t, title, r.source(body))
}

func (r *rows) stepSource(t *testing.T, title, source string) *plan.Plan {
	t.Helper()
	p := r.planned(t, source, engine.PlanOptions{})
	r.record(t, title, p.Plan)
	r.carryOut(t, p)
	r.settled(t, source)
	return p.Plan
}

// refused shows that a configuration has no plan.
func (r *rows) refused(t *testing.T, title, source string) {
	t.Helper()
	p := r.plan(t, source)
	if !p.Failed() {
		t.Errorf("%s has a plan:\n%s", source, text(p))
	}
	r.record(t, title, p)
}

// desired evaluates a configuration, which must be good.
func (s *stack) desired(t *testing.T, source string) *config.Desired {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, diags := config.Load(dir)
	d, more := loaded.Evaluate(config.Inputs{})
	if diags = append(diags, more...); diags.HasErrors() {
		out := &bytes.Buffer{}
		_ = config.WriteDiagnostics(out, diags, d.Files(), false) // to memory
		t.Fatalf("%s\n%s", out, source)
	}
	return d
}

func (s *stack) plan(t *testing.T, source string) *plan.Plan {
	t.Helper()
	return s.planned(t, source, engine.PlanOptions{}).Plan
}

func (s *stack) planned(t *testing.T, source string, o engine.PlanOptions) *engine.Plan {
	t.Helper()
	p, err := s.engine.Plan(t.Context(), s.Stack, s.desired(t, source).Desired, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// compared plans without a look at the live world, which takes most of the time.
func (s *stack) compared(t *testing.T, source string, o engine.PlanOptions) *plan.Plan {
	t.Helper()
	c := s.engine.Config
	c.Runtime, c.Lifecycles = nil, nil
	p, err := engine.New(c).Plan(t.Context(), s.Stack, s.desired(t, source).Desired, o)
	if err != nil {
		t.Fatal(err)
	}
	return p.Plan
}

func (s *stack) apply(t *testing.T, source string) {
	t.Helper()
	s.carryOut(t, s.planned(t, source, engine.PlanOptions{}))
}

func (s *stack) carryOut(t *testing.T, p *engine.Plan) {
	t.Helper()
	if p.Failed() {
		t.Fatalf("the plan fails:\n%s", text(p.Plan))
	}
	if err := s.engine.Commit(t.Context(), p, engine.Who{By: "matrix"}, false); err != nil {
		t.Fatal(err)
	}
	defer s.nodes.rest()
	err := s.engine.Converge(t.Context(), engine.Convergence{
		Stack: s.Name, Pending: func([]plan.Finding) {}, Held: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// destroy ends the stack, and shows that nothing of it is left.
func (s *stack) destroy(t *testing.T) *plan.Plan {
	t.Helper()
	p := s.planned(t, head(s.Name), engine.PlanOptions{Mode: plan.Destroy})
	s.carryOut(t, p)
	for _, o := range s.objects(t) {
		if o.Stack == s.Name {
			t.Errorf("destroy left %s", o.Addr())
		}
	}
	return p.Plan
}

func text(p *plan.Plan) string {
	out := &bytes.Buffer{}
	_ = plan.Text{}.Write(out, p) // to memory
	for _, problem := range p.Problems {
		word := "Error"
		if problem.Warning {
			word = "Warning"
		}
		fmt.Fprintf(out, "%s: %s\n%s\n", word, problem.Summary, problem.Detail)
	}
	return out.String()
}

func (s *stack) objects(t *testing.T) []store.Object {
	t.Helper()
	snap, err := s.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap.Objects
}

// object returns the stack's one object of a kind.
func (s *stack) object(t *testing.T, kind *schema.Kind) store.Object {
	t.Helper()
	for _, o := range s.objects(t) {
		if o.Kind == kind && o.Stack == s.Name && !o.Tombstone {
			return o
		}
	}
	t.Fatalf("there is no %s", kind.Name)
	return store.Object{}
}

// value is what a body evaluates to.
func (r *rows) value(t *testing.T, body map[string]string) cty.Value {
	t.Helper()
	return r.desired(t, r.source(body)).Objects[0].Value
}

// somebodySets changes one attribute as another surface would.
func (s *stack) somebodySets(t *testing.T, kind *schema.Kind, name string, v cty.Value) {
	t.Helper()
	o := s.object(t, kind)
	attrs := o.Spec.AsValueMap()
	w := store.Write{
		Op: store.Put, ID: o.ID, Kind: o.Kind, Saw: o.Revision, Applied: o.Applied, Address: o.Address, Stack: o.Stack,
		Protected: o.Protected,
	}
	if a, ok := kind.Attr(name); ok && a.Secret {
		secret := []byte(v.AsString())
		v = cty.StringVal(s.sealer.Fingerprint(store.SecretKey{Object: o.ID, Attr: name}, secret))
		w.Secrets = map[string][]byte{name: secret}
		if a.StoredAs != "" {
			w.Secrets = map[string][]byte{a.StoredAs: []byte("what is derived from it")}
		}
	}
	attrs[name] = v
	w.Spec = cty.ObjectVal(attrs)
	s.commit(t, w)
}

func (s *stack) commit(t *testing.T, writes ...store.Write) {
	t.Helper()
	if _, err := s.store.Commit(t.Context(), store.Change{Writes: writes, By: "somebody else"}); err != nil {
		t.Fatal(err)
	}
}

func (s *stack) forget(t *testing.T, kind *schema.Kind) {
	t.Helper()
	o := s.object(t, kind)
	s.commit(t, store.Write{Op: store.Put, ID: o.ID, Kind: o.Kind, Saw: o.Revision, Spec: o.Spec, Applied: cty.NilVal})
}

// somebodyDeletes deletes the stack's one object of a kind as another surface would.
func (s *stack) somebodyDeletes(t *testing.T, kind *schema.Kind) schema.Addr {
	t.Helper()
	o := s.object(t, kind)
	op := store.Remove
	if kind.Name == "tenant_db" || kind.Name == "pool" {
		op = store.Bury
	}
	s.commit(t, store.Write{Op: op, ID: o.ID, Kind: o.Kind, Saw: o.Revision})
	return o.Addr()
}
