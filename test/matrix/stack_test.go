package matrix

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/export"
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
	return &stack{w, store.Stack{Name: name, Lineage: uuid.NewString()}}
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
	return s.planned(t, source, plan.Normal).Plan
}

func (s *stack) planned(t *testing.T, source string, mode plan.Mode) *engine.Plan {
	t.Helper()
	p, err := s.engine.Plan(t.Context(), s.Stack, s.desired(t, source).Desired, engine.PlanOptions{Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *stack) apply(t *testing.T, source string) {
	t.Helper()
	s.carryOut(t, s.planned(t, source, plan.Normal))
}

func (s *stack) carryOut(t *testing.T, p *engine.Plan) {
	t.Helper()
	if p.Failed() {
		t.Fatalf("the plan fails:\n%s", text(p.Plan))
	}
	if err := s.engine.Commit(t.Context(), p, engine.Who{By: "matrix"}, false); err != nil {
		t.Fatal(err)
	}
	if err := s.engine.Converge(t.Context(), s.Name, func([]plan.Finding) {}); err != nil {
		t.Fatal(err)
	}
}

// destroy ends the stack, and shows that nothing of it is left.
func (s *stack) destroy(t *testing.T) *plan.Plan {
	t.Helper()
	p := s.planned(t, "qod {\n  stack = \""+s.Name+"\"\n}\n", plan.Destroy)
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
		secret := v.AsString()
		v = cty.StringVal(s.sealer.Fingerprint(store.SecretKey{Object: o.ID, Attr: name}, []byte(secret)))
		w.Secrets = map[string][]byte{name: []byte(secret)}
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

func (s *stack) somebodyDeletes(t *testing.T, kind *schema.Kind) {
	t.Helper()
	o := s.object(t, kind)
	op := store.Remove
	if kind.Name == "tenant_db" || kind.Name == "pool" {
		op = store.Bury
	}
	s.commit(t, store.Write{Op: op, ID: o.ID, Kind: o.Kind, Saw: o.Revision})
}

// changesNothing applies what is applied already: no row and nothing outside may change.
func (s *stack) changesNothing(t *testing.T, source string) {
	t.Helper()
	rows, calls := s.dump(t), s.changes.Load()
	s.apply(t, source)
	if diff := cmp.Diff(rows, s.dump(t)); diff != "" {
		t.Errorf("a second apply changed rows (-before +after):\n%s", diff)
	}
	if n := s.changes.Load() - calls; n != 0 {
		t.Errorf("a second apply made %d calls that change something", n)
	}
}

// dump is every row that an apply could change.
func (s *stack) dump(t *testing.T) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	out := &strings.Builder{}
	for _, table := range []string{
		"object", "object_ref", "secret", "stack", "output", "revision",
		"(SELECT id, pool_id, host, role, endpoint, pid, spec_hash, incarnation, phase, reason FROM qodstate_node)",
	} {
		if !strings.HasPrefix(table, "(") {
			table = "qodstate_" + table
		}
		var rows string
		query := "SELECT coalesce(string_agg(x::text, E'\\n' ORDER BY x::text), '') FROM " + table + " x"
		if err := c.QueryRow(t.Context(), query).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		out.WriteString(rows + "\n")
	}
	return out.String()
}

// exports shows that the stack's export asks for exactly the objects of the configuration.
func (s *stack) exports(t *testing.T, source string) {
	t.Helper()
	exported := s.exported(t)
	d := s.desired(t, exported)
	p, err := s.engine.Plan(t.Context(), s.Stack, d.Desired, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Changes) > 0 || p.Failed() {
		t.Errorf("applying the export of\n%s\nwould not be a no-op:\n%s\n%s", source, exported, text(p.Plan))
	}
}

func (s *stack) exported(t *testing.T) string {
	t.Helper()
	var objects []export.Object
	for _, o := range s.objects(t) {
		if o.Stack == s.Name && !o.Tombstone {
			objects = append(objects, export.Object{Kind: o.Kind, Address: o.Address, Value: o.Spec, Protected: o.Protected})
		}
	}
	out, err := export.HCL(s.Name, objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// nothingLeft shows that no database, role or row of anybody is left.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	for what, query := range map[string]string{
		"objects":   `SELECT count(*) FROM qodstate_object`,
		"secrets":   `SELECT count(*) FROM qodstate_secret`,
		"nodes":     `SELECT count(*) FROM qodstate_node`,
		"databases": `SELECT count(*) FROM pg_database WHERE datname ~ '^qod_[0-9a-f]{16}$'`,
		"roles":     `SELECT count(*) FROM pg_roles WHERE rolname ~ '^qod_[0-9a-f]{16}$'`,
	} {
		var n int
		if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}
