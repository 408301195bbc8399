package plan_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

var update = flag.Bool("update", false, "write the golden plans")

type desiredFile struct {
	Kind, Address string
	Value         json.RawMessage
	DependsOn     []string
	Sensitive     []string
	Lifecycle     lifecycleFile
}

type actualFile struct {
	ID, Kind, Address, Stack string
	Spec, Applied            json.RawMessage
	Revision                 int64
	Tombstone, Protected     bool
	Sensitive                []string
	Unapplied                bool // nobody applied it
}

// Each testdata/*.txtar is a story: what is desired, what is stored, and the plan as people read it.
func TestGoldenPlans(t *testing.T) {
	if *update && os.Getenv("CI") != "" {
		t.Fatal("golden plans are reviewed: -update is refused in CI")
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			p := plan.Build(input(t, archive))
			enliven(t, archive, p)
			got := render(t, p)
			checkFileForm(t, p)
			if file(archive, "plan.json") != nil {
				compareJSON(t, archive, p)
			}
			if *update {
				setFile(archive, "plan.txt", got)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(file(archive, "plan.txt")), got); diff != "" {
				t.Errorf("plan differs (-golden +got):\n%s", diff)
			}
			in := input(t, archive)
			slices.Reverse(in.Actual)
			p = plan.Build(in)
			enliven(t, archive, p)
			if diff := cmp.Diff(got, render(t, p)); diff != "" {
				t.Errorf("plan depends on the order of what is stored (-as given +in reverse):\n%s", diff)
			}
		})
	}
}

func render(t *testing.T, p *plan.Plan) string {
	t.Helper()
	out := &strings.Builder{}
	for _, problem := range p.Problems {
		word := "Error"
		if problem.Warning {
			word = "Warning"
		}
		fmt.Fprintf(out, "%s: %s\n  %s\n\n", word, problem.Summary, strings.ReplaceAll(strings.TrimSpace(problem.Detail), "\n", "\n  "))
	}
	if err := (plan.Text{}).Write(out, p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func input(t *testing.T, archive *txtar.Archive) plan.Input {
	t.Helper()
	var desired []desiredFile
	var actual []actualFile
	parse(t, archive, "desired.json", &desired)
	parse(t, archive, "actual.json", &actual)
	in := plan.Input{Stack: "s", Fingerprint: func(id, attr, secret string) string {
		return fmt.Sprintf("print(%s.%s=%s)", id, attr, secret)
	}}
	next := 0
	in.NewID = func() string { next++; return fmt.Sprintf("new-%d", next) }
	for _, d := range desired {
		k := kind(t, d.Kind)
		in.Desired.Objects = append(in.Desired.Objects, schema.Object{
			Kind: k, Address: d.Address, Value: decode(t, k, d.Value), DependsOn: d.DependsOn, Sensitive: d.Sensitive,
			Lifecycle: d.Lifecycle.lifecycle(t),
		})
	}
	for _, a := range actual {
		k := kind(t, a.Kind)
		object := plan.Actual{ID: a.ID, Kind: k, Address: a.Address, Stack: a.Stack, Revision: a.Revision,
			Tombstone: a.Tombstone, Protected: a.Protected, Sensitive: a.Sensitive}
		object.Spec = decode(t, k, a.Spec)
		object.Applied = object.Spec
		if a.Applied != nil {
			object.Applied = decode(t, k, a.Applied)
		}
		if a.Unapplied {
			object.Applied = cty.NilVal
		}
		in.Actual = append(in.Actual, object)
	}
	extend(t, archive, &in)
	return in
}

func parse(t *testing.T, archive *txtar.Archive, name string, into any) {
	t.Helper()
	if raw := file(archive, name); raw != nil {
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func kind(t testing.TB, name string) *schema.Kind {
	t.Helper()
	k, ok := schema.Lookup(name)
	if !ok {
		t.Fatalf("no kind %q", name)
	}
	return k
}

func decode(t testing.TB, k *schema.Kind, raw json.RawMessage) cty.Value {
	t.Helper()
	v, err := k.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func file(archive *txtar.Archive, name string) []byte {
	for _, f := range archive.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func setFile(archive *txtar.Archive, name, data string) {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			archive.Files[i].Data = []byte(data)
			return
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(data)})
}
