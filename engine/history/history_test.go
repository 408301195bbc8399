package history_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
)

// past is a store with its history, for tests.
type past struct {
	*testing.T
	store *store.Memory
}

func newPast(t *testing.T) *past {
	sealer, err := store.NewSealer(bytes.Repeat([]byte{7}, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	return &past{t, store.NewMemory(sealer)}
}

func (p *past) commit(writes ...store.Write) store.Revision {
	p.Helper()
	return p.change(store.Change{Writes: writes})
}

func (p *past) change(c store.Change) store.Revision {
	p.Helper()
	rev, err := p.store.Commit(p.Context(), c)
	if err != nil {
		p.Fatal(err)
	}
	return rev
}

func (p *past) snapshot() *store.Snapshot {
	p.Helper()
	snap, err := p.store.Snapshot(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return snap
}

func (p *past) applies() []store.Apply {
	p.Helper()
	applies, err := p.store.ListApplies(p.Context(), 0, 0)
	if err != nil {
		p.Fatal(err)
	}
	return applies
}

func (p *past) object(w store.Write) store.Object {
	p.Helper()
	for _, o := range p.snapshot().Objects {
		if o.ID == w.ID {
			return o
		}
	}
	p.Fatalf("object %s is gone", w.ID)
	return store.Object{}
}

// next writes another value of an object.
func (p *past) next(w store.Write, json string) store.Write {
	p.Helper()
	return storetest.Next(p, p.object(w), json)
}

func (p *past) remove(w store.Write) store.Write {
	p.Helper()
	return store.Write{Op: store.Remove, ID: w.ID, Saw: p.object(w).Revision}
}

func (p *past) at(rev store.Revision) []store.Object {
	p.Helper()
	objects, err := history.At(p.snapshot().Objects, p.applies(), rev)
	if err != nil {
		p.Fatal(err)
	}
	return objects
}

func addrs(objects []store.Object) string {
	var out []string
	for _, o := range objects {
		out = append(out, o.Addr().String())
	}
	return strings.Join(out, " ")
}

// However a store came about, each of its revisions can be read again.
func TestAtIsWhatThereWas(t *testing.T) {
	for seed := range uint64(20) {
		p, r := newPast(t), rand.New(rand.NewPCG(seed, 0))
		snaps := map[store.Revision][]store.Object{0: nil}
		for range 40 {
			if step(p, r) {
				snap := p.snapshot()
				snaps[snap.Revision] = snap.Objects
			}
		}
		for rev, want := range snaps {
			options := append(storetest.Compare(), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.Object{}, "Status"))
			if diff := cmp.Diff(want, p.at(rev), options...); diff != "" {
				t.Fatalf("seed %d, revision %d (-want +got):\n%s", seed, rev, diff)
			}
		}
	}
}

// step does something to a store of tenants and roles, and reports whether that was possible.
func step(p *past, r *rand.Rand) bool {
	objects := p.snapshot().Objects
	name := func() string { return fmt.Sprintf("n%d", r.IntN(6)) }
	var w store.Write
	if len(objects) == 0 || r.IntN(3) == 0 {
		w = storetest.New(p, "tenant", `{"name":"`+name()+`"}`)
		if len(objects) > 0 && objects[0].Kind.Name == "tenant" {
			w = storetest.New(p, "role", `{"tenant":"`+objects[0].Addr().Name()+`","name":"`+name()+`"}`)
		}
	} else {
		o := objects[r.IntN(len(objects))]
		w = storetest.Next(p, o, strings.Replace(encoded(p, o), `"name":"`, `"name":"x`, 1))
		w.Op = store.Op(r.IntN(3))
		w.Protected = r.IntN(2) == 0
		if r.IntN(4) == 0 {
			w.Stack, w.Address = "", ""
		}
		if r.IntN(3) == 0 {
			if err := p.store.SetStatus(p.Context(), o.ID, store.Status{Message: name()}, nil); err != nil {
				p.Fatal(err)
			}
		}
	}
	_, err := p.store.Commit(p.Context(), store.Change{Writes: []store.Write{w}})
	return err == nil
}

func encoded(p *past, o store.Object) string {
	raw, err := o.Kind.Encode(o.Spec)
	if err != nil {
		p.Fatal(err)
	}
	return string(raw)
}

func TestAtSaysWhereHistoryBegins(t *testing.T) {
	p := newPast(t)
	p.commit(storetest.New(t, "tenant", `{"name":"a"}`))
	p.commit(storetest.New(t, "tenant", `{"name":"b"}`))
	p.commit(storetest.New(t, "tenant", `{"name":"c"}`))
	objects, all := p.snapshot().Objects, p.applies()
	for name, tt := range map[string]struct {
		applies []store.Apply
		rev     store.Revision
		want    string
	}{
		"now":                {all, 3, "tenant.a tenant.b tenant.c"},
		"later":              {all, 9, "tenant.a tenant.b tenant.c"},
		"before all":         {all, 0, ""},
		"pruned, as far":     {all[:2], 1, "tenant.a"},
		"pruned, beyond":     {all[:2], 0, "revision 0 is not known any more: the history reaches back to revision 1"},
		"no records":         {nil, 2, "revision 2 is not known any more: the history reaches back to revision 3"},
		"no records but now": {nil, 3, "tenant.a tenant.b tenant.c"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := history.At(objects, tt.applies, tt.rev)
			got := addrs(at)
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A story with one of everything, as `qod history` and `qod diff` tell it.
func TestStepsAndText(t *testing.T) {
	p := newPast(t)
	stack := store.Stack{Name: "s", Lineage: uuid.NewString()}
	tenant := storetest.New(t, "tenant", `{"name":"acme","display_name":"hidden"}`)
	tenant.Sensitive, tenant.Address = []string{"display_name"}, "tenant.acme"
	role := storetest.New(t, "role", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`)
	role.Address = `role.all["own"]`
	user := storetest.New(t, "user", `{"tenant":"acme","name":"ana","password":"hmac:0123","roles":["owner"]}`)
	db := storetest.New(t, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	outputs := []schema.Output{{Name: "u", Value: cty.StringVal("grpc://x")}, {Name: "s", Value: cty.StringVal("clear"), Sensitive: true}}
	p.change(store.Change{Writes: []store.Write{tenant, role, user, db}, Stack: stack, Outputs: outputs})
	renamed := p.next(role, `{"tenant":"acme","name":"boss","permission":[{"privileges":["read"]}]}`)
	moved := p.next(db, `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	moved.Address = "tenant_db.main"
	p.change(store.Change{Writes: []store.Write{renamed, moved}, Stack: stack, Outputs: []schema.Output{{Name: "u", Value: cty.True}}})
	p.commit(store.Write{Op: store.Bury, ID: db.ID, Saw: 2})
	p.commit(p.remove(db))
	forget := p.object(user)
	p.commit(store.Write{ID: user.ID, Kind: user.Kind, Saw: forget.Revision, Spec: forget.Spec})

	steps := history.Steps(p.snapshot(), p.applies())
	out := &strings.Builder{}
	for _, s := range steps {
		fmt.Fprintf(out, "revision %d, of s: %t, %s\n", s.Revision, s.Touches("s"), history.Summary(s.Changes, s.Outputs))
		if err := (history.Text{}).Write(out, s.Changes, s.Outputs); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "story", "steps.txt", out.String())
	for _, secret := range []string{"hidden", "hmac:", "clear"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	whole := history.Diff(p.at(1), p.at(5), history.EverConcealed(p.snapshot(), p.applies()))
	raw, err := history.EncodeChanges(whole)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "story", "diff.json", indented(t, raw))
}
