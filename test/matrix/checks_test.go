package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

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
	add := func(name string, data []byte) {
		r.out.Files = append(r.out.Files, txtar.File{Name: name, Data: outsideName.ReplaceAll(data, []byte("qod_ID"))})
	}
	add(title, []byte(text(p)))
	add(title+": json", out.Bytes())
}

// outsideName is that of a database and its role, which has the object's id in it: another one in each run.
var outsideName = regexp.MustCompile(`qod_[0-9a-f]{16}`)

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
		"object", "object_ref", "secret", "stack", "output", "revision", "lost",
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

// nothingLeft shows that no row, directory or file of anybody is left.
func (w *world) nothingLeft(t *testing.T) {
	t.Helper()
	none(t, w.connect(t), map[string]string{
		"objects": `SELECT count(*) FROM qodstate_object`,
		"secrets": `SELECT count(*) FROM qodstate_secret`,
		"nodes":   `SELECT count(*) FROM qodstate_node`,
		"losses":  `SELECT count(*) FROM qodstate_lost`,
	})
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

// noDatabaseLeft shows that no database and no role of any world is left.
func noDatabaseLeft(t *testing.T) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pgtest.Server(t).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	none(t, c, map[string]string{
		"databases": `SELECT count(*) FROM pg_database WHERE datname ~ '^qod_[0-9a-f]{16}$'`,
		"roles":     `SELECT count(*) FROM pg_roles WHERE rolname ~ '^qod_[0-9a-f]{16}$'`,
	})
}

// none runs queries that count what should not be there.
func none(t *testing.T, c *pgx.Conn, queries map[string]string) {
	t.Helper()
	for what, query := range queries {
		var n int
		if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
}
