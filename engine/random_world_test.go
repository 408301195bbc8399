package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// keeper is a store with its history.
type keeper interface {
	store.Store
	store.Nodes
	store.Applies
}

// doubled is a store whose changes a second one repeats.
type doubled struct {
	keeper
	second *store.Memory
}

func (d doubled) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	rev, err := d.keeper.Commit(ctx, c)
	c.Lease = nil // the second has no such lease
	if err == nil {
		_, err = d.second.Commit(ctx, c)
	}
	return rev, err
}

func (d doubled) SetStatus(ctx context.Context, id string, s store.Status, l store.Lease) error {
	if err := d.keeper.SetStatus(ctx, id, s, l); err != nil {
		return err
	}
	return d.second.SetStatus(ctx, id, s, nil)
}

// realm is an engine with a store of its own.
type realm struct {
	testing.TB
	*engine.Engine
	keeper
	stack store.Stack
}

func newSealer(t testing.TB) *store.Sealer {
	t.Helper()
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

func newRealm(t testing.TB, k keeper) *realm {
	return &realm{t, engine.New(engine.Config{
		Store: k, Nodes: k, Sealer: newSealer(t), Holder: "test", Log: slog.New(slog.DiscardHandler),
		Hash: func(password string) (string, error) { return "$argon2id$v=19$of-" + password, nil },
	}), k, store.Stack{Name: "s", Lineage: "lineage"}}
}

// evaluated reads a configuration. Files are below a fresh directory.
func evaluated(t testing.TB, files map[string]string) schema.Desired {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, diags := config.Load(dir)
	if !diags.HasErrors() {
		desired, more := c.Evaluate(config.Inputs{})
		if diags = append(diags, more...); !diags.HasErrors() {
			return overTheWire(t, desired.Desired)
		}
	}
	out := &strings.Builder{}
	if err := config.WriteDiagnostics(out, diags, c.Files(), false); err != nil {
		t.Fatal(err)
	}
	t.Fatalf("the configuration is refused:\n%s", out)
	return schema.Desired{}
}

func (r *realm) plan(d schema.Desired, o engine.PlanOptions) *engine.Plan {
	r.Helper()
	p, err := r.Plan(r.Context(), r.stack, d, o)
	if err != nil {
		r.Fatal(err)
	}
	document, err := plan.JSON(p.Plan, "dev", nil)
	if err != nil {
		r.Fatal(err)
	}
	checkHidden(r, "the text of the plan", text(p))
	checkHidden(r, "the JSON of the plan", string(document))
	checkSent(r, p, document)
	return p
}

// checkHidden wants nothing in a text that came from a sensitive variable.
func checkHidden(t testing.TB, what, text string) {
	t.Helper()
	if at := strings.Index(text, secretWords); at >= 0 {
		t.Errorf("%s shows a sensitive value: %.200s", what, text[max(0, at-100):])
	}
}

// carry commits a plan and does what follows from it.
func (r *realm) carry(p *engine.Plan) {
	r.Helper()
	if err := r.Engine.Commit(r.Context(), p, engine.Who{By: "me"}, false); err != nil {
		r.Fatalf("commit: %v\n%s", err, text(p))
	}
	r.settle()
}

func (r *realm) settle() {
	r.Helper()
	lease, err := r.Acquire(r.Context(), "outside", "test")
	if err != nil {
		r.Fatal(err)
	}
	defer lease.Release()
	if err := r.Settle(r.Context(), lease); err != nil {
		r.Fatal(err)
	}
}

// apply makes the store as the configuration says, or reports false where the plan is refused.
func (r *realm) apply(d schema.Desired, o engine.PlanOptions) bool {
	r.Helper()
	p := r.plan(d, o)
	if p.Failed() {
		return false
	}
	r.carry(p)
	return true
}

func text(p *engine.Plan) string {
	out := &strings.Builder{}
	if err := (plan.Text{}).Write(out, p.Plan); err != nil {
		return err.Error()
	}
	for _, problem := range p.Problems {
		fmt.Fprintf(out, "%s (warning: %t): %s\n%s\n", problem.Address, problem.Warning, problem.Summary, problem.Detail)
	}
	return out.String()
}

func (r *realm) snapshot() *store.Snapshot {
	r.Helper()
	snap, err := r.Snapshot(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return snap
}

// rollback asks for the stack as it was. Databases may come back empty.
func (r *realm) rollback(rev store.Revision) (schema.Desired, []plan.Problem) {
	r.Helper()
	snap := r.snapshot()
	applies, err := r.ListApplies(r.Context(), 0, 0)
	if err != nil {
		r.Fatal(err)
	}
	r.checkPast(snap, applies)
	then, err := history.At(snap.Objects, applies, rev)
	if err != nil {
		r.Fatal(err)
	}
	open, err := r.StackOutputs(r.Context(), "s")
	if err != nil {
		r.Fatal(err)
	}
	return history.Past{
		Stack: "s", Revision: rev, Now: snap.Objects, Then: then, AllowEmpty: true, Open: open,
		Shown: snap.Outputs["s"], ThenShown: history.OutputsAt(snap.Outputs["s"], applies, "s", rev),
	}.Desired()
}

// unowned puts an object that belongs to nobody.
func (r *realm) unowned(k *schema.Kind, v cty.Value) {
	r.Helper()
	w := store.Write{Op: store.Put, ID: uuid.NewString(), Kind: k, Spec: v, Applied: cty.NilVal}
	if _, err := r.keeper.Commit(r.Context(), store.Change{Writes: []store.Write{w}, By: "me"}); err != nil {
		r.Fatal(err)
	}
}

// traits are what a comparison of states leaves out.
type traits struct{ secrets, versions, applied, address, protected, outputs, ids bool }

// state is what a stack has, in a form in which two can be compared.
func state(snap *store.Snapshot, without traits) map[string]string {
	out := map[string]string{}
	for _, o := range snap.Objects {
		if o.Tombstone || o.Stack != "s" {
			continue
		}
		key := o.Address
		if without.address {
			key = o.Addr().String()
		}
		line := form(o.Kind, o.Spec, without)
		if !without.applied {
			line += " applied " + form(o.Kind, o.Applied, without)
		}
		if !without.protected {
			line += fmt.Sprint(" protected ", o.Protected)
		}
		if !without.ids {
			line += fmt.Sprint(o.ID, o.Revision, o.Generation)
		}
		out[key] = line
	}
	for _, o := range snap.Outputs["s"] {
		if !without.outputs {
			out["output "+o.Name] = fmt.Sprintf("%#v", o.Value)
		}
	}
	return out
}

// form prints a value; a set without elements is none.
func form(k *schema.Kind, v cty.Value, without traits) string {
	if v == cty.NilVal {
		return "nothing"
	}
	attrs := v.AsValueMap()
	for _, a := range k.Attrs {
		switch {
		case a.Secret && without.secrets && !attrs[a.Name].IsNull():
			attrs[a.Name] = cty.StringVal("secret")
		case without.versions && (a.Secret || strings.HasSuffix(a.Name, "_version")):
			attrs[a.Name] = cty.NullVal(a.Type)
		}
	}
	for name, av := range attrs {
		if empty(av) {
			attrs[name] = cty.NullVal(av.Type())
		}
	}
	raw, err := k.Encode(cty.ObjectVal(attrs))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// empty reports whether nothing is written.
func empty(v cty.Value) bool {
	return v.IsNull() || v.Type().IsSetType() && v.LengthInt() == 0
}

// links are the references of each object by id: what they mean, whatever names the targets have.
func links(snap *store.Snapshot) map[string]map[string][]string {
	ids := map[schema.Addr]string{}
	for _, o := range snap.Objects {
		if !o.Tombstone {
			ids[o.Addr()] = o.ID
		}
	}
	out := map[string]map[string][]string{}
	for _, o := range snap.Objects {
		out[o.ID] = map[string][]string{}
		for _, ref := range o.Kind.Refs(o.Spec) {
			out[o.ID][ref.Attr] = append(out[o.ID][ref.Attr], ids[ref.To])
		}
		for attr := range out[o.ID] {
			slices.Sort(out[o.ID][attr])
		}
	}
	return out
}

// byID are the objects that are there.
func byID(snap *store.Snapshot) map[string]store.Object {
	out := map[string]store.Object{}
	for _, o := range snap.Objects {
		if !o.Tombstone {
			out[o.ID] = o
		}
	}
	return out
}

// differing lists the attributes that mean something else afterwards.
func differing(was, is store.Object, before, after map[string]map[string][]string) []string {
	var list []string
	for _, name := range is.Kind.Names() {
		wv, iv := was.Spec.GetAttr(name), is.Spec.GetAttr(name)
		if a, ok := is.Kind.Attr(name); ok {
			if a.Default != cty.NilVal && wv.IsNull() {
				wv = a.Default
			}
			if a.Default != cty.NilVal && iv.IsNull() {
				iv = a.Default
			}
			if to := before[was.ID][name]; a.Ref != "" && len(to) > 0 {
				if !slices.Equal(to, after[is.ID][name]) || !slices.Equal(a.Literals(wv), a.Literals(iv)) {
					list = append(list, name)
				}
				continue
			}
		}
		if empty(wv) != empty(iv) || !empty(wv) && !wv.RawEquals(iv) {
			list = append(list, name)
		}
	}
	return list
}

// checkDone holds a plan against what there was and what there is.
func checkDone(t testing.TB, p *engine.Plan, before, after *store.Snapshot) {
	t.Helper()
	was, is := byID(before), byID(after)
	wasLinks, isLinks := links(before), links(after)
	planned := map[string]bool{}
	for _, c := range p.Changes {
		checkChange(t, c, was, is, wasLinks, isLinks)
		planned[c.ID], planned[c.NewID] = true, true
	}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		now, stays := is[id]
		switch {
		case planned[id]:
		case !stays:
			t.Errorf("%s is gone, and no plan said so", was[id].Addr())
		default:
			old := was[id]
			if list := differing(old, now, wasLinks, isLinks); len(list) > 0 || old.Address != now.Address || old.Stack != now.Stack || old.Protected != now.Protected {
				t.Errorf("%s changed without a plan: %v, %+v, %+v", old.Addr(), list, old, now)
			}
		}
	}
	for id, o := range is {
		if _, there := was[id]; !there && !planned[id] {
			t.Errorf("%s was made, and no plan said so", o.Addr())
		}
	}
}

// checkChange holds one change against what became of its object.
func checkChange(t testing.TB, c plan.Change, was, is map[string]store.Object, wasLinks, isLinks map[string]map[string][]string) {
	t.Helper()
	id := c.ID
	if c.NewID != "" {
		id = c.NewID
	}
	old, had := was[c.ID]
	now, has := is[id]
	_, left := is[c.ID]
	want := map[plan.Action][3]bool{
		plan.Create: {false, true, true}, plan.Update: {true, true, true}, plan.Forget: {true, true, true},
		plan.Replace: {true, true, false}, plan.Delete: {true, false, false},
	}[c.Action]
	if got := [3]bool{had, has, left}; got != want {
		t.Errorf("%s of %s: was there, is there, the old one is there: %v, want %v", c.Action, c.Addr, got, want)
		return
	}
	if c.Action == plan.Delete {
		return
	}
	if now.Addr() != c.Addr || now.Address != c.Address && c.Action != plan.Forget || now.Protected != c.Protected && c.Action != plan.Forget {
		t.Errorf("%s of %s comes to %s at %q, protected %t", c.Action, c.Addr, now.Addr(), now.Address, now.Protected)
	}
	if c.Action == plan.Forget && (now.Stack != "" || now.Address != "" || now.Applied != cty.NilVal) {
		t.Errorf("%s is forgotten and still owned: %+v", c.Addr, now)
	}
	if c.Action == plan.Update {
		checkUpdate(t, c, old, now, wasLinks, isLinks)
	}
}

// checkUpdate wants the attributes of the plan to be those that differ, with the values that are stored.
func checkUpdate(t testing.TB, c plan.Change, old, now store.Object, wasLinks, isLinks map[string]map[string][]string) {
	t.Helper()
	var said []string
	for _, a := range c.Attrs {
		if a.Note == "" {
			said = append(said, a.Name)
		}
		if after := now.Spec.GetAttr(a.Name); !a.Sensitive && a.Note == "" && empty(a.After) != empty(after) {
			t.Errorf("%s of %s: the plan said %#v, and there is %#v", a.Name, c.Addr, a.After, after)
		} else if !a.Sensitive && a.Note == "" && !empty(after) && !a.After.RawEquals(after) {
			t.Errorf("%s of %s: the plan said %#v, and there is %#v", a.Name, c.Addr, a.After, after)
		}
	}
	done := differing(old, now, wasLinks, isLinks)
	if !slices.Equal(said, done) {
		t.Errorf("%s: the plan said %v, and what changed is %v", c.Addr, said, done)
	}
	if len(c.Attrs) == 0 && old.Revision == now.Revision {
		t.Errorf("update of %s did nothing", c.Addr)
	}
}
