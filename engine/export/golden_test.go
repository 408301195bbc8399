package export_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"

	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/schema"
)

var update = flag.Bool("update", false, "write the golden exports")

type story struct {
	Stack         string
	Import, Shown bool
	Objects       []struct {
		Kind, Address string
		Value         json.RawMessage
		Sensitive     []string
		Protected     bool
		IgnoreAll     bool
		Triggers      []string
	}
}

// Each testdata/*.txtar is what is stored, and what is exported of it in both syntaxes.
func TestGolden(t *testing.T) {
	if *update && os.Getenv("CI") != "" {
		t.Fatal("golden exports are reviewed: -update is refused in CI")
	}
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := written(t, archive.Files[0].Data)
			if *update {
				archive.Files = append(archive.Files[:1], got...)
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want := &txtar.Archive{Files: archive.Files[1:]}
			if diff := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(&txtar.Archive{Files: got}))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func written(t *testing.T, objects []byte) []txtar.File {
	t.Helper()
	var s story
	dec := json.NewDecoder(bytes.NewReader(objects))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		t.Fatal(err)
	}
	var list []export.Object
	for _, o := range s.Objects {
		kind, ok := schema.Lookup(o.Kind)
		if !ok {
			t.Fatalf("there is no kind %s", o.Kind)
		}
		v, err := kind.Decode(o.Value)
		if err != nil {
			t.Fatal(err)
		}
		object := export.Object{Kind: kind, Address: o.Address, Value: v, Sensitive: o.Sensitive}
		object.Lifecycle = schema.Lifecycle{PreventDestroy: o.Protected, IgnoreAll: o.IgnoreAll}
		for _, at := range o.Triggers {
			a, err := schema.ParseAddress(at)
			if err != nil {
				t.Fatal(err)
			}
			object.Lifecycle.ReplaceTriggeredBy = append(object.Lifecycle.ReplaceTriggeredBy, schema.Trigger{Address: a})
		}
		list = append(list, object)
	}
	d, err := export.New(export.Options{Stack: s.Stack, Import: s.Import, Shown: s.Shown}, list)
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	files := []txtar.File{{Name: "main.qod.hcl", Data: d.HCL()}, {Name: "main.qod.json", Data: inJSON}}
	if len(d.Warnings) > 0 {
		files = append(files, txtar.File{Name: "warnings", Data: []byte(strings.Join(d.Warnings, "\n") + "\n")})
	}
	return files
}

// A number is written with all its digits, and a text so that it means nothing but itself.
func TestOutputs(t *testing.T) {
	d, err := export.New(export.Options{Outputs: []schema.Output{
		{Name: "big", Value: cty.MustParseNumberVal("9007199254740993")},
		{Name: "odd", Value: cty.ListVal([]cty.Value{cty.StringVal("${x} %{y}\n$${z}")}), Description: "odd"},
		{Name: "secret", Value: cty.StringVal("hunter22"), Sensitive: true},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{string(d.HCL()), string(inJSON)} {
		if !strings.Contains(text, "9007199254740993") || !strings.Contains(text, "(sensitive value)") || strings.Contains(text, "hunter22") {
			t.Error(text)
		}
	}
}

// What is no value of the kind is refused, not written as something else.
func TestRefused(t *testing.T) {
	kind := schema.Kinds()[0]
	attrs := kind.Empty().AsValueMap()
	attrs["name"] = cty.UnknownVal(cty.String)
	for name, v := range map[string]cty.Value{"unknown": cty.ObjectVal(attrs), "another type": cty.StringVal("acme")} {
		if text, err := export.HCL("s", []export.Object{{Kind: kind, Value: v}}); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
}
