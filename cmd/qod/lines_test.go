package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// An apply as programs see it: each object starts and completes once, however often it is looked at.
func TestLinesOfAnApply(t *testing.T) {
	tenant, _ := schema.Lookup("tenant")
	acme, err := tenant.Decode([]byte(`{"name":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	p := &plan.Plan{Stack: "s", Problems: []plan.Problem{{Warning: true, Summary: "So"}}, Changes: []plan.Change{{
		Action: plan.Create, ID: "t", Kind: tenant, Address: "tenant.acme", Addr: tenant.Addr(acme), Spec: acme, Applied: acme,
	}}}
	db := plan.Finding{Addr: schema.NewAddr("tenant_db", "acme", "d"), Message: "its database is missing"}
	pool := plan.Finding{Addr: schema.NewAddr("pool", "acme", "bi"), Message: "2 of 2 nodes missing"}
	half := plan.Finding{Addr: pool.Addr, Message: "1 of 2 nodes missing"}
	out, aside := &bytes.Buffer{}, &bytes.Buffer{}
	l := newLines(&app{stdout: out, stderr: aside})
	if err := l.planned(p, nil); err != nil {
		t.Fatal(err)
	}
	l.aside("Interrupted.\n")
	l.committed()
	l.pending([]plan.Finding{db, pool}, time.Second)
	l.pending([]plan.Finding{db, pool}, 2*time.Second)
	l.pending([]plan.Finding{half}, 3*time.Second)
	l.still([]plan.Finding{half}, 10*time.Second)
	l.pending(nil, 11*time.Second)
	if err := l.done(p, "apply"); err != nil {
		t.Fatal(err)
	}
	if err := l.outputs(nil); err != nil {
		t.Fatal(err)
	}
	want := `version
planned_change
change_summary plan
diagnostic
apply_start tenant.acme 0
apply_complete tenant.acme 0
apply_start tenant_db.acme/d 1
apply_progress tenant_db.acme/d 1
apply_start pool.acme/bi 1
apply_progress pool.acme/bi 1
apply_complete tenant_db.acme/d 3
apply_progress pool.acme/bi 3
apply_progress pool.acme/bi 10
apply_complete pool.acme/bi 11
change_summary apply
outputs
`
	if diff := cmp.Diff(want, about(t, out.String())); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if aside.String() != "Interrupted.\n" {
		t.Errorf("standard error has %q", aside)
	}
}

// about is a line's type and what it is about.
func about(t *testing.T, stream string) string {
	t.Helper()
	out := &strings.Builder{}
	for line := range strings.Lines(stream) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		words := []string{e.Type}
		if e.Operation != "" {
			words = append(words, e.Operation)
		}
		if e.Hook != nil {
			words = append(words, e.Hook.name(), fmt.Sprint(e.Hook.ElapsedSeconds))
		}
		fmt.Fprintln(out, strings.Join(words, " "))
	}
	return out.String()
}
