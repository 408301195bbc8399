package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"

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

// settled shows that nothing is left to do, that doing it changes nothing, and that the export is what the
// configuration says.
func (r *rows) settled(t *testing.T, source string) {
	t.Helper()
	if p := r.compared(t, source, engine.PlanOptions{Mode: plan.RefreshOnly}); !p.Empty() || len(p.Drift) > 0 {
		t.Errorf("nobody changed anything, and this would be taken as applied:\n%s", text(p))
	}
	r.refersWell(t)
	r.changesNothing(t, source)
	r.exports(t, source)
}

// record adds a plan to the golden ones, as text and as JSON with one change a line.
func (r *rows) record(t *testing.T, title string, p *plan.Plan) {
	t.Helper()
	d, err := plan.NewDocument(p, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	line := func(v any) {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range d.ResourceChanges {
		if (c.ID == "") != (c.Change.Actions[0] == string(plan.Create)) {
			t.Errorf("%s: a stored object has an id and a new one has none", c.Address)
		}
		c.ID = "" // another one in each run
		line(c)
	}
	for _, c := range d.LiveChanges {
		line(c)
	}
	for _, c := range d.Drift {
		line(c)
	}
	line(d.Summary)
	r.out.Files = append(r.out.Files, txtar.File{Name: title, Data: []byte(text(p))}, txtar.File{Name: title + ": json", Data: out.Bytes()})
}

// refersWell shows that the references kept for each object are those of its value.
func (s *stack) refersWell(t *testing.T) {
	t.Helper()
	ids, want := map[schema.Addr]string{}, map[store.ObjectRef]bool{}
	objects := s.objects(t)
	for _, o := range objects {
		if !o.Tombstone {
			ids[o.Addr()] = o.ID
		}
	}
	for _, o := range objects {
		for _, ref := range o.Kind.Refs(o.Spec) {
			if !o.Tombstone {
				want[store.ObjectRef{From: o.ID, Attr: ref.Attr, To: ids[ref.To]}] = true
			}
		}
	}
	c := s.connect(t)
	rows, err := c.Query(t.Context(), `SELECT from_id::text, attribute, to_id::text FROM qodstate_object_ref`)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[store.ObjectRef])
	if err != nil {
		t.Fatal(err)
	}
	have := map[store.ObjectRef]bool{}
	for _, ref := range list {
		have[ref] = true
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("references are not those of the values (-want +got):\n%s", diff)
	}
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
	p := s.planned(t, source, engine.PlanOptions{})
	if !p.Empty() || len(p.Drift) > 0 {
		t.Errorf("the plan after an apply is not empty:\n%s", text(p.Plan))
	}
	s.carryOut(t, p)
	if diff := cmp.Diff(rows, s.dump(t)); diff != "" {
		t.Errorf("a second apply changed rows (-before +after):\n%s", diff)
	}
	if n := s.changes.Load() - calls; n != 0 {
		t.Errorf("a second apply made %d calls that change something", n)
	}
}

// connect returns the world's own connection, for looking at rows.
func (w *world) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	if w.conn == nil {
		c, err := pgx.Connect(t.Context(), w.url)
		if err != nil {
			t.Fatal(err)
		}
		w.conn = c
		w.t.Cleanup(func() { _ = c.Close(context.Background()) }) // it was only for looking
	}
	return w.conn
}

// dump is every row that an apply could change.
func (s *stack) dump(t *testing.T) string {
	t.Helper()
	c := s.connect(t)
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

// exports shows that the stack's export asks for exactly the objects of the configuration, and that
// exporting what it asks for is the same again.
func (s *stack) exports(t *testing.T, source string) {
	t.Helper()
	var objects []export.Object
	for _, o := range s.objects(t) {
		if o.Stack == s.Name && !o.Tombstone {
			objects = append(objects, export.Object{
				Kind: o.Kind, Address: o.Address, Value: o.Spec, Lifecycle: schema.Lifecycle{PreventDestroy: o.Protected},
			})
		}
	}
	exported := s.exported(t, objects)
	p := s.compared(t, exported, engine.PlanOptions{})
	if len(p.Changes) > 0 || p.Failed() {
		t.Errorf("applying the export of\n%s\nwould not be a no-op:\n%s\n%s", source, exported, text(p))
	}
	var again []export.Object
	for _, o := range s.desired(t, exported).Objects {
		again = append(again, export.Object{Kind: o.Kind, Address: o.Address, Value: o.Value, Lifecycle: o.Lifecycle})
	}
	if diff := cmp.Diff(withoutNotes(exported), withoutNotes(s.exported(t, again))); diff != "" {
		t.Errorf("the export of the export differs (-first +second):\n%s", diff)
	}
}

// withoutNotes leaves out the notes on secrets, which an export's own objects do not have.
func withoutNotes(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "  #") }), "\n")
}

func (s *stack) exported(t *testing.T, objects []export.Object) string {
	t.Helper()
	out, err := export.HCL(s.Name, objects)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// nothingLeft shows that no database, role, row, directory or file of anybody is left.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	c := w.connect(t)
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
	for _, dir := range []string{"data", "state/nodes", "run/nodes"} {
		left, err := os.ReadDir(filepath.Join(w.dir, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		for _, e := range left {
			if e.Name() == ".qod.lock" { // of the directory itself
				continue
			}
			t.Errorf("%s is left in %s", e.Name(), dir)
		}
	}
}
