package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// An attribute that was once computed from a sensitive value is not shown after its block has left the
// configuration either, nor in a conflict; and saying later that a value is sensitive is enough.
func TestSensitiveOutlivesItsBlock(t *testing.T) {
	b := newBed(t)
	desired := estate(t)
	desired[0] = object(t, "tenant", "tenant.acme", `{"name":"acme","display_name":"s3cret"}`)
	b.commit(t, desired)
	desired[0].Sensitive = []string{"display_name"}
	p := b.plan(t, desired)
	if len(p.Changes) != 1 || p.Changes[0].Detail != "no longer shown from now on: display_name" {
		t.Fatalf("changes %+v", p.Changes)
	}
	if err := b.Commit(t.Context(), p, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	if p := b.plan(t, desired); len(p.Changes) != 0 {
		t.Errorf("the second plan has %+v", p.Changes)
	}
	stale := b.plan(t, nil)
	desired[0] = object(t, "tenant", "tenant.acme", `{"name":"acme","display_name":"an0ther"}`)
	b.commit(t, desired)
	out := &strings.Builder{}
	if err := (plan.Text{}).Write(out, b.plan(t, nil).Plan); err != nil {
		t.Fatal(err)
	}
	err := b.Commit(t.Context(), stale, engine.Who{}, false)
	if err == nil || !strings.Contains(err.Error(), "display_name was changed") {
		t.Errorf("the stale plan: %v", err)
	}
	for where, text := range map[string]string{"the plan": out.String(), "the conflict": err.Error()} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "an0ther") {
			t.Errorf("%s shows it:\n%s", where, text)
		}
	}
}

// Outputs, protection and an apply of nothing but outputs reach the store.
func TestOutputsAndProtection(t *testing.T) {
	b := newBed(t)
	desired := estate(t)
	desired[0].Lifecycle.PreventDestroy = true
	b.commit(t, desired)
	if o := find(t, b, "tenant.acme"); !o.Protected {
		t.Error("the tenant is not protected")
	}
	c := schema.Desired{Objects: desired, Outputs: []schema.Output{{Name: "tenant", Value: cty.StringVal("acme")}}}
	p, err := b.Plan(t.Context(), b.stack, c, engine.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Changes) != 0 || len(p.Outputs) != 1 || p.Empty() {
		t.Fatalf("changes %+v, outputs %+v", p.Changes, p.Outputs)
	}
	if err := b.Commit(t.Context(), p, engine.Who{}, false); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range snapshot(t, b).Outputs["s"] {
		got = append(got, o.Name+" "+o.Value.AsString())
	}
	if diff := cmp.Diff([]string{"tenant acme"}, got); diff != "" {
		t.Error(diff)
	}
	if again, err := b.Plan(t.Context(), b.stack, c, engine.PlanOptions{}); err != nil || len(again.Changes)+len(again.Outputs) > 0 {
		t.Errorf("%v, the second plan has outputs %+v", err, again.Outputs)
	}
	if err := b.Repeats(t.Context(), p, b.stack, c, engine.PlanOptions{}); err != nil {
		t.Error(err)
	}
}
