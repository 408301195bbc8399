package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
)

// rollback says what going back to a revision asks for, and what does not come back, in words.
func (p *past) rollback(rev store.Revision, allow bool) (asked, problems string) {
	p.Helper()
	snap := p.snapshot()
	open, err := p.store.StackOutputs(p.Context(), "s")
	if err != nil {
		p.Fatal(err)
	}
	in := history.Past{
		Stack: "s", Revision: rev, Now: snap.Objects, Then: p.at(rev), AllowEmpty: allow, Open: open,
		Shown: snap.Outputs["s"], ThenShown: history.OutputsAt(snap.Outputs["s"], p.applies(), "s", rev),
	}
	desired, list := in.Desired()
	var lines, said []string
	for _, o := range desired.Objects {
		raw, err := o.Kind.Encode(o.Value)
		if err != nil {
			p.Fatal(err)
		}
		line := o.Address + " " + string(raw)
		for _, path := range o.Lifecycle.IgnoreChanges {
			line += " ignores " + path[0].(cty.GetAttrStep).Name
		}
		if o.Lifecycle.IgnoreAll {
			line += " ignores all"
		}
		if o.Lifecycle.PreventDestroy {
			line += " protected"
		}
		if len(o.DependsOn) > 0 {
			line += " after " + strings.Join(o.DependsOn, " ")
		}
		lines = append(lines, line)
	}
	for _, i := range desired.Imports {
		lines = append(lines, fmt.Sprintf("import %s as %s", i.ID, i.To))
	}
	for _, o := range desired.Outputs {
		lines = append(lines, fmt.Sprintf("output %s = %s", o.Name, plan.Literal(o.Value)))
	}
	for _, problem := range list {
		mark := "error: "
		if problem.Warning {
			mark = "warning: "
		}
		said = append(said, mark+problem.Summary)
	}
	return strings.Join(lines, "\n"), strings.Join(said, "\n")
}

func (p *past) wantRollback(rev store.Revision, asked, problems string) {
	p.Helper()
	gotAsked, gotProblems := p.rollback(rev, false)
	if diff := cmp.Diff(strings.TrimSpace(asked), gotAsked); diff != "" {
		p.Errorf("asked for (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.TrimSpace(problems), gotProblems); diff != "" {
		p.Errorf("problems (-want +got):\n%s", diff)
	}
}

// Names follow the objects: what was renamed gets its name back, also in those that refer to it.
func TestRollbackOfNames(t *testing.T) {
	p := newPast(t)
	a, b := storetest.New(t, "tenant", `{"name":"a"}`), storetest.New(t, "tenant", `{"name":"b"}`)
	role := storetest.New(t, "role", `{"tenant":"a","name":"owner"}`)
	role.Protected = true
	user := storetest.New(t, "user", `{"tenant":"a","name":"ana","roles":["owner"]}`)
	other := storetest.New(t, "user", `{"tenant":"a","name":"eve","roles":["owner"]}`)
	other.Stack = "t"
	p.commit(a, b, role, user, other)
	p.commit(p.next(a, `{"name":"b"}`), p.next(b, `{"name":"a"}`))
	moved := p.next(role, `{"tenant":"b","name":"boss"}`)
	moved.Address = "role.elsewhere"
	p.commit(moved)
	p.commit(storetest.New(t, "tenant", `{"name":"since"}`))
	p.wantRollback(1, `
tenant.a {"name":"a"}
tenant.b {"name":"b"}
role.elsewhere {"name":"owner","tenant":"a"} protected after tenant.a
user.b/ana {"name":"ana","roles":["owner"],"tenant":"a"} ignores password ignores password_verifier after tenant.a role.elsewhere`, "")
}

func TestRollbackKeepsSecrets(t *testing.T) {
	p := newPast(t)
	p.commit(storetest.New(t, "tenant", `{"name":"acme"}`))
	same := storetest.New(t, "user", `{"tenant":"acme","name":"same","password":"hmac:1","email":"a@b"}`)
	changed := storetest.New(t, "user", `{"tenant":"acme","name":"changed","password":"hmac:1","password_version":1}`)
	gone := storetest.New(t, "user", `{"tenant":"acme","name":"gone","password":"hmac:1"}`)
	p.commit(same, changed, gone)
	p.commit(p.next(same, `{"tenant":"acme","name":"same","password":"hmac:1"}`),
		p.next(changed, `{"tenant":"acme","name":"changed","password":"hmac:2","password_version":2}`), p.remove(gone))
	p.wantRollback(2, `
tenant.acme {"name":"acme"}
user.acme/changed {"name":"changed","password_version":2,"tenant":"acme"} ignores password ignores password_verifier after tenant.acme
user.acme/same {"email":"a@b","name":"same","tenant":"acme"} ignores password ignores password_verifier after tenant.acme
user.acme/gone {"name":"gone","tenant":"acme"} after tenant.acme`, `
warning: the password of user.acme/changed is not rolled back: past secrets are not kept
warning: the password of user.acme/gone is not rolled back: past secrets are not kept`)
}

func TestRollbackLeavesOthersAlone(t *testing.T) {
	p := newPast(t)
	tenant := storetest.New(t, "tenant", `{"name":"acme"}`)
	given, came := storetest.New(t, "role", `{"tenant":"acme","name":"given"}`), storetest.New(t, "role", `{"tenant":"acme","name":"came"}`)
	came.Stack, came.Address = "t", "role.came"
	forgotten := storetest.New(t, "role", `{"tenant":"acme","name":"forgotten"}`)
	forgotten.Address = "role.forgotten"
	user := storetest.New(t, "user", `{"tenant":"acme","name":"ana","roles":["given","came"]}`)
	p.commit(tenant, given, came, forgotten, user)
	take := func(w store.Write, stack, address, json string) store.Write {
		next := p.next(w, json)
		next.Stack, next.Address = stack, address
		return next
	}
	p.commit(take(given, "t", "role.mine", `{"tenant":"acme","name":"taken"}`),
		take(came, "s", "role.new", `{"tenant":"acme","name":"arrived","description":"x"}`),
		take(forgotten, "", "", `{"tenant":"acme","name":"forlorn"}`))
	p.wantRollback(1, `
tenant.acme {"name":"acme"}
role.new {"description":"x","name":"arrived","tenant":"acme"} ignores all after tenant.acme
role.forgotten {"name":"forgotten","tenant":"acme"} after tenant.acme
user.acme/ana {"name":"ana","roles":["arrived","taken"],"tenant":"acme"} ignores password ignores password_verifier after tenant.acme role.new
import role.acme/forlorn as role.forgotten`, `
warning: role.acme/arrived is left alone
warning: role.acme/taken is left alone`)
}

func TestRollbackOfDatabases(t *testing.T) {
	p := newPast(t)
	tenant, db := storetest.New(t, "tenant", `{"name":"acme"}`), storetest.New(t, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	db.Address = "tenant_db.sales"
	p.commit(tenant, db)
	p.commit(store.Write{Op: store.Bury, ID: db.ID, Saw: 1})
	desired := `
tenant.acme {"name":"acme"}
tenant_db.sales {"kind":"ducklake","name":"sales","tenant":"acme"} after tenant.acme`
	p.wantRollback(1, desired, `error: tenant_db.acme/sales would come back empty`)
	if _, problems := p.rollback(1, true); problems != `warning: tenant_db.acme/sales COMES BACK EMPTY` {
		t.Errorf("allowed: %s", problems)
	}
	second := storetest.New(t, "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake","default_schema":"x"}`)
	second.Address = "tenant_db.second"
	p.commit(second)
	p.wantRollback(1, desired, `warning: tenant_db.acme/sales is not the one that it was`)
	third := storetest.New(t, "tenant", `{"name":"third"}`)
	third.Address = "tenant.third"
	p.commit(third)
	moved := p.next(third, `{"name":"third"}`)
	p.commit(p.remove(second), store.Write{Op: store.Remove, ID: db.ID, Saw: 2})
	p.commit(moved)
	// What is gone cannot have an address that another one has taken.
	fourth := storetest.New(t, "tenant", `{"name":"fourth"}`)
	fourth.Address = "tenant.fourth"
	p.commit(fourth)
	rev := p.snapshot().Revision
	p.commit(p.remove(fourth))
	moved = p.next(third, `{"name":"third"}`)
	moved.Address = "tenant.fourth"
	p.commit(moved)
	if _, problems := p.rollback(rev, false); problems != "error: tenant.fourth cannot come back to tenant.fourth" {
		t.Errorf("taken address: %s", problems)
	}
}

func TestRollbackOfOutputs(t *testing.T) {
	p := newPast(t)
	stack := store.Stack{Name: "s", Lineage: uuid.NewString()}
	output := func(name, value string, sensitive bool) schema.Output {
		return schema.Output{Name: name, Value: cty.StringVal(value), Sensitive: sensitive}
	}
	p.change(store.Change{Stack: stack, Outputs: []schema.Output{
		output("plain", "1", false), output("same", "a", true), output("changed", "a", true), output("gone", "a", true),
	}})
	p.change(store.Change{Stack: stack, Outputs: []schema.Output{
		output("plain", "2", false), output("same", "a", true), output("changed", "b", true), output("new", "x", false),
	}})
	p.wantRollback(1, "output changed = \"b\"\noutput plain = \"1\"\noutput same = \"a\"", `
warning: output changed is not rolled back: past secrets are not kept
warning: output gone does not come back: past secrets are not kept`)
}

// What a rollback asks for is what there was: planned and committed, the store is as it was.
func TestRollbackIsAPlan(t *testing.T) {
	p := newPast(t)
	stack := store.Stack{Name: "s", Lineage: uuid.NewString()}
	tenant := storetest.New(t, "tenant", `{"name":"acme","display_name":"Acme"}`)
	role := storetest.New(t, "role", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`)
	gone := storetest.New(t, "role", `{"tenant":"acme","name":"gone"}`)
	p.change(store.Change{Writes: []store.Write{tenant, role, gone}, Stack: stack})
	want := p.at(1)
	p.commit(p.next(tenant, `{"name":"apex"}`), p.remove(gone), storetest.New(t, "role", `{"tenant":"apex","name":"since"}`))
	p.commit(p.next(role, `{"tenant":"apex","name":"boss","permission":[{"privileges":["read"]}]}`))
	past := history.Past{Stack: "s", Revision: 1, Now: p.snapshot().Objects, Then: want}
	desired, problems := past.Desired()
	var actual []plan.Actual
	for _, o := range past.Now {
		actual = append(actual, plan.Actual{ID: o.ID, Kind: o.Kind, Spec: o.Spec, Applied: o.Applied, Address: o.Address, Stack: o.Stack, Revision: int64(o.Revision)})
	}
	built := plan.Build(plan.Input{Stack: "s", Desired: desired, Actual: actual, NewID: uuid.NewString})
	if len(problems) > 0 || built.Failed() {
		t.Fatalf("problems: %v, %v", problems, built.Problems)
	}
	var writes []store.Write
	for _, c := range built.Changes {
		w := store.Write{Op: store.Put, ID: c.ID, Kind: c.Kind, Saw: store.Revision(c.Saw), Spec: c.Spec, Applied: c.Applied, Address: c.Address, Stack: "s"}
		if c.Action == plan.Delete {
			w.Op = store.Remove
		}
		writes = append(writes, w)
	}
	p.change(store.Change{Writes: writes, Stack: stack})
	values := func(objects []store.Object) []string {
		var out []string
		for _, o := range objects {
			out = append(out, o.Address+" "+o.Kind.Name+encoded(p, o))
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(values(want), values(p.snapshot().Objects)); diff != "" {
		t.Errorf("after the rollback (-want +got):\n%s", diff)
	}
}
