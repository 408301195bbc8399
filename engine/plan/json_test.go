package plan_test

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

const page = "../../docs/reference/plan-json.md"

func document(t *testing.T, p *plan.Plan) string {
	t.Helper()
	raw, err := plan.JSON(p, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// compareJSON compares the plan with the story's plan.json.
func compareJSON(t *testing.T, archive *txtar.Archive, p *plan.Plan) {
	t.Helper()
	p.Created = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	got := document(t, p)
	if *update {
		setFile(archive, "plan.json", got)
	}
	if diff := cmp.Diff(string(file(archive, "plan.json")), got); diff != "" {
		t.Errorf("JSON differs (-golden +got):\n%s", diff)
	}
}

// Every field of a plan has its place in the document, and no secret has one.
func TestGoldenDocument(t *testing.T) {
	const golden = "testdata/document/full.txtar"
	if *update && os.Getenv("CI") != "" {
		t.Fatal("golden plans are reviewed: -update is refused in CI")
	}
	archive, err := txtar.ParseFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	p := fullPlan(t)
	compareJSON(t, archive, p)
	if *update {
		if err := os.WriteFile(golden, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := document(t, p)
	for _, hidden := range []string{"hush", "hmac:"} {
		if strings.Contains(got, hidden) {
			t.Errorf("the document shows %q", hidden)
		}
	}
	again := fullPlan(t)
	again.Created = p.Created
	if document(t, again) != got {
		t.Error("equal plans have different documents")
	}
}

// A password is kept nowhere, so that no document has a place for it.
func TestDocumentLeavesPasswordsOut(t *testing.T) {
	user := kind(t, "user")
	spec := decode(t, user, []byte(`{"tenant":"acme","name":"ana","password":"hmac:1"}`))
	got := document(t, &plan.Plan{Stack: "s", Changes: []plan.Change{{
		Action: plan.Create, ID: "u", Kind: user, Address: "user.ana", Addr: user.Addr(spec), Spec: spec, Applied: spec,
	}}})
	if strings.Contains(got, `"password"`) || strings.Contains(got, "hmac:") {
		t.Errorf("the document has a password:\n%s", got)
	}
}

// A reader's errors are its own: a plan with problems is errored and not applicable.
func TestDocumentOfProblems(t *testing.T) {
	p := &plan.Plan{Stack: "s", Mode: plan.Destroy, Problems: []plan.Problem{{Summary: "No"}}, Live: []plan.Finding{{Addr: schema.NewAddr("pool", "a", "b")}}}
	d, err := plan.NewDocument(p, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Errored || d.Applicable || d.Complete || d.Mode != "destroy" || len(d.Diagnostics) != 1 || d.Diagnostics[0].Severity != "error" {
		t.Errorf("document: %+v", d)
	}
	given := []schema.Diagnostic{}
	if d, err = plan.NewDocument(p, "1.2.3", given); err != nil || len(d.Diagnostics) != 0 {
		t.Errorf("%d diagnostics beside those that were given, %v", len(d.Diagnostics), err)
	}
}

// The page names every field, and its example is a golden plan. With -update the example is renewed.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fields(reflect.TypeFor[plan.Document](), nil) {
		if !bytes.Contains(text, []byte("`"+field+"`")) {
			t.Errorf("%s does not say what %s is", page, field)
		}
	}
	archive, err := txtar.ParseFile("testdata/document.txtar")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)(<!-- example -->\n\n```json\n).*?(```\n)")
	want := example.ReplaceAllFunc(text, func(old []byte) []byte {
		parts := example.FindSubmatch(old)
		return bytes.Join([][]byte{parts[1], file(archive, "plan.json"), parts[2]}, nil)
	})
	if !example.Match(text) {
		t.Fatalf("%s has no example", page)
	}
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("the example is not the golden plan (-golden +page):\n%s", diff)
	}
}

// fields lists the JSON names of a type and of those in it.
func fields(t reflect.Type, list []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fields(t.Elem(), list)
	case reflect.Struct:
	default:
		return list
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		list = fields(t.Field(i).Type, append(list, name))
	}
	return list
}
