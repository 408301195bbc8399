package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/history"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
)

// A value that has become sensitive is not shown of the time before, in no form, and stays hidden when a
// rollback brings it back.
func TestBecomesSensitive(t *testing.T) {
	p := newPast(t)
	stack := store.Stack{Name: "s", Lineage: uuid.NewString()}
	output := func(value string, sensitive bool) []schema.Output {
		return []schema.Output{{Name: "o", Value: cty.StringVal(value), Sensitive: sensitive}}
	}
	tenant := storetest.New(t, "tenant", `{"name":"acme","display_name":"hunter2"}`)
	tenant.Address, tenant.Stack = "tenant.acme", "s"
	other := storetest.New(t, "tenant", `{"name":"open","display_name":"shown"}`)
	other.Address, other.Stack = "tenant.open", "s"
	p.change(store.Change{Writes: []store.Write{tenant}, Stack: stack, Note: "+ hunter2", Outputs: output("hunter2", false)})
	p.change(store.Change{Writes: []store.Write{other}, Stack: stack, Note: "+ shown"})
	hidden := p.next(tenant, `{"name":"acme","display_name":"hunter2"}`)
	hidden.Sensitive = []string{"display_name"}
	p.change(store.Change{Writes: []store.Write{hidden}, Stack: stack, Note: "no longer shown", Outputs: output("hunter2", true)})
	p.change(store.Change{Writes: []store.Write{p.remove(tenant)}, Stack: stack, Note: "- tenant", Outputs: []schema.Output{}})

	ever := history.EverConcealed(p.snapshot(), p.applies())
	out := &strings.Builder{}
	write := func(changes []history.Change, outputs []history.OutputChange) {
		if err := (history.Text{}).Write(out, changes, outputs); err != nil {
			t.Fatal(err)
		}
		attrs, err := history.EncodeChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		results, err := history.EncodeOutputs(outputs)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(out, "%+v %+v\n", attrs, results)
	}
	for _, s := range history.Steps(p.snapshot(), p.applies()) {
		out.WriteString(s.Note + "\n")
		write(s.Changes, s.Outputs)
	}
	was, is := history.OutputsAt(nil, p.applies(), "s", 1), history.OutputsAt(nil, p.applies(), "s", 2)
	write(history.Diff(p.at(0), p.at(1), ever), history.DiffOutputs("s", nil, was, ever))
	write(history.Diff(p.at(1), p.at(4), ever), history.DiffOutputs("s", is, nil, ever))
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("the value is shown:\n%s", out)
	}
	for _, want := range []string{"shown\n", "no longer shown", "- tenant", "values in it have become sensitive since"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not shown:\n%s", want, out)
		}
	}

	desired, _ := history.Past{Stack: "s", Revision: 1, Now: p.snapshot().Objects, Then: p.at(1), ThenShown: was, Ever: ever}.Desired()
	if len(desired.Objects) != 1 || len(desired.Outputs) != 1 {
		t.Fatalf("%d objects and %d outputs", len(desired.Objects), len(desired.Outputs))
	}
	if o := desired.Objects[0]; len(o.Sensitive) != 1 || o.Value.GetAttr("display_name").AsString() != "hunter2" {
		t.Errorf("%v of %#v are sensitive", o.Sensitive, o.Value)
	}
	if !desired.Outputs[0].Sensitive {
		t.Error("the output is shown again")
	}
}
