package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/runtime/api"
	"github.com/qod-io/qod/schema"
)

func noon() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// everything writes each event once.
func everything(t *testing.T, s *stream) {
	t.Helper()
	tenant, _ := schema.Lookup("tenant")
	acme, err := tenant.Decode([]byte(`{"name":"acme"}`))
	if err != nil {
		t.Fatal(err)
	}
	change := plan.Change{Action: plan.Create, ID: "t", Kind: tenant, Address: "tenant.acme", Addr: tenant.Addr(acme), Spec: acme, Applied: acme}
	live := plan.Finding{Addr: schema.NewAddr("pool", "acme", "bi"), Message: "a node is missing"}
	d, err := plan.NewDocument(&plan.Plan{Stack: "s", Changes: []plan.Change{change}, Live: []plan.Finding{live}, Drift: []plan.Drift{{
		Addr: change.Addr, Address: change.Address, Attr: plan.Attr{Name: "display_name", Before: cty.StringVal("<a>"), After: cty.NullVal(cty.String)},
	}, {
		Addr: change.Addr, Address: change.Address, Deleted: true,
	}}}, version, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Version()
	s.Diagnostic(schema.Diagnostic{Severity: "warning", Summary: "So"})
	s.Plan(d)
	s.ApplyStart(hookOf(change, 0))
	s.ApplyComplete(hookOf(change, 1234567*time.Microsecond))
	s.ApplyProgress(hookOfLive(live, time.Second), live.Message)
	s.ApplyErrored(hookOfLive(live, time.Minute), "it would not start")
	s.ApplySkipped(hookOfLive(live, 0), "its database failed")
	s.ChangeSummary("apply", d.Summary)
	err = s.Outputs([]schema.Output{
		{Name: "port", Value: cty.MustParseNumberVal("9007199254740993")},
		{Name: "token", Value: cty.StringVal("hush"), Sensitive: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Done(0, "Apply complete.")
}

func TestStream(t *testing.T) {
	out := &bytes.Buffer{}
	s := newStream(out, noon)
	everything(t, s)
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	want := `{"type":"version","level":"info","message":"qod dev","timestamp":"2026-11-30T12:00:00Z","format_version":"1.1","qod_version":"dev"}
{"type":"diagnostic","level":"warn","message":"So","timestamp":"2026-11-30T12:00:00Z","diagnostic":{"severity":"warning","summary":"So","detail":""}}
{"type":"resource_drift","level":"info","message":"tenant.acme: display_name has changed","timestamp":"2026-11-30T12:00:00Z","drift":{"address":"tenant.acme","kind":"tenant","object":"acme","attribute":"display_name","before":"\u003ca\u003e","after":null,"sensitive":false}}
{"type":"resource_drift","level":"info","message":"tenant.acme: has been deleted outside of this configuration","timestamp":"2026-11-30T12:00:00Z","drift":{"address":"tenant.acme","kind":"tenant","object":"acme","deleted":true,"attribute":"","before":null,"after":null,"sensitive":false}}
{"type":"planned_change","level":"info","message":"tenant.acme: plan to create","timestamp":"2026-11-30T12:00:00Z","resource_change":{"address":"tenant.acme","kind":"tenant","object":"acme","change":{"actions":["create"],"before":null,"after":{"name":"acme"},"effective":{"disabled":false,"name":"acme"},"before_sensitive":{},"after_sensitive":{}},"protected":false,"was_protected":false,"effects":{}}}
{"type":"live_change","level":"info","message":"pool.acme/bi: a node is missing","timestamp":"2026-11-30T12:00:00Z","live_change":{"kind":"pool","object":"acme/bi","message":"a node is missing"}}
{"type":"change_summary","level":"info","message":"1 to add, 0 to change, 0 to destroy","timestamp":"2026-11-30T12:00:00Z","operation":"plan","changes":{"add":1,"change":0,"destroy":0,"import":0,"forget":0,"live":1}}
{"type":"apply_start","level":"info","message":"tenant.acme: create","timestamp":"2026-11-30T12:00:00Z","hook":{"address":"tenant.acme","kind":"tenant","object":"acme","action":"create","elapsed_seconds":0}}
{"type":"apply_complete","level":"info","message":"tenant.acme: done","timestamp":"2026-11-30T12:00:00Z","hook":{"address":"tenant.acme","kind":"tenant","object":"acme","action":"create","elapsed_seconds":1.235}}
{"type":"apply_progress","level":"info","message":"pool.acme/bi: a node is missing","timestamp":"2026-11-30T12:00:00Z","hook":{"kind":"pool","object":"acme/bi","action":"live","elapsed_seconds":1}}
{"type":"apply_errored","level":"error","message":"pool.acme/bi: it would not start","timestamp":"2026-11-30T12:00:00Z","hook":{"kind":"pool","object":"acme/bi","action":"live","elapsed_seconds":60}}
{"type":"apply_skipped","level":"warn","message":"pool.acme/bi: its database failed","timestamp":"2026-11-30T12:00:00Z","hook":{"kind":"pool","object":"acme/bi","action":"live","elapsed_seconds":0}}
{"type":"change_summary","level":"info","message":"1 added, 0 changed, 0 destroyed","timestamp":"2026-11-30T12:00:00Z","operation":"apply","changes":{"add":1,"change":0,"destroy":0,"import":0,"forget":0,"live":1}}
{"type":"outputs","level":"info","message":"Outputs: 2","timestamp":"2026-11-30T12:00:00Z","outputs":{"port":{"sensitive":false,"type":"number","value":9007199254740993},"token":{"sensitive":true}}}
{"type":"done","level":"info","message":"Apply complete.","timestamp":"2026-11-30T12:00:00Z","exit_code":0}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

// Lines of goroutines that write at the same time do not run into each other.
func TestStreamOfManyWriters(t *testing.T) {
	out := &bytes.Buffer{}
	s := newStream(out, noon)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				s.Diagnostic(schema.Diagnostic{Severity: "error", Summary: strings.Repeat("x", 1000)})
			}
		})
	}
	all.Wait()
	lines := 0
	for line := range strings.Lines(out.String()) {
		lines++
		if !json.Valid([]byte(line)) {
			t.Fatalf("not a line of JSON: %s", line)
		}
	}
	if lines != 400 {
		t.Errorf("%d lines", lines)
	}
}

type brokenPipe struct{ calls int }

func (b *brokenPipe) Write([]byte) (int, error) { b.calls++; return 0, errors.New("broken pipe") }

func TestStreamStopsAtAnError(t *testing.T) {
	pipe := &brokenPipe{}
	s := newStream(pipe, noon)
	everything(t, s)
	if s.Err() == nil || pipe.calls != 1 {
		t.Errorf("error %v after %d writes", s.Err(), pipe.calls)
	}
}

// The page names every field of what the commands print.
func TestPageOfJSONIsCurrent(t *testing.T) {
	const page = "../../docs/reference/plan-json.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range []reflect.Type{
		reflect.TypeFor[event](), reflect.TypeFor[hook](), reflect.TypeFor[streamOutput](), reflect.TypeFor[validation](),
		reflect.TypeFor[api.Status](), reflect.TypeFor[api.StatusServe](), reflect.TypeFor[api.StatusObject](),
		reflect.TypeFor[api.StatusPool](), reflect.TypeFor[api.StatusNode](), reflect.TypeFor[api.StatusLoad](),
		reflect.TypeFor[storedStack](), reflect.TypeFor[storedObject](), reflect.TypeFor[schema.Diagnostic](),
		reflect.TypeFor[schema.SourceRange](), reflect.TypeFor[schema.SourcePosition](), reflect.TypeFor[schema.Snippet](),
	} {
		for i := range document.NumField() {
			name, _, _ := strings.Cut(document.Field(i).Tag.Get("json"), ",")
			if !bytes.Contains(text, []byte("`"+name+"`")) {
				t.Errorf("%s does not say what %s of a %s is", page, name, document.Name())
			}
		}
	}
	for line := range strings.Lines(streamed(t)) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("| `"+e.Type+"` |")) {
			t.Errorf("%s does not say what a line of type %s is", page, e.Type)
		}
	}
}

func streamed(t *testing.T) string {
	t.Helper()
	out := &bytes.Buffer{}
	everything(t, newStream(out, noon))
	return out.String()
}
