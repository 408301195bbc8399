package export_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/schema"
)

func newGenerator(source rand.Source, more ...string) *generator {
	return &generator{Rand: rand.New(source), more: more, keys: map[schema.Addr]bool{}, taken: map[string]bool{}}
}

// random returns objects of every kind.
func (g *generator) random(each int) []export.Object {
	for _, k := range schema.Kinds() {
		for range each {
			v, fresh := g.object(k)
			if !fresh {
				continue
			}
			o := export.Object{Kind: k, Value: v, Address: g.address(k, v)}
			o.Lifecycle.PreventDestroy = !strings.Contains(o.Address, "[") && g.IntN(3) == 0
			g.objects = append(g.objects, o)
		}
	}
	g.Shuffle(len(g.objects), func(i, j int) { g.objects[i], g.objects[j] = g.objects[j], g.objects[i] })
	return g.objects
}

// evaluate reads a file back.
func evaluate(t *testing.T, name string, src []byte) schema.Desired {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), src, 0o644); err != nil {
		t.Fatal(err)
	}
	c, diags := config.Load(dir)
	if diags.HasErrors() {
		t.Fatalf("%s\n%v", src, diags)
	}
	desired, diags := c.Evaluate(config.Inputs{})
	if diags.HasErrors() {
		var out strings.Builder
		_ = config.WriteDiagnostics(&out, diags, desired.Files(), false)
		t.Fatalf("%s\n%s", src, out.String())
	}
	return desired.Desired
}

// shape is what has to survive: the value without its secrets, and what the object is protected from. A set
// of nested blocks without elements is none.
func shape(k *schema.Kind, v cty.Value, l schema.Lifecycle) string {
	attrs := v.AsValueMap()
	for _, a := range k.Attrs {
		if a.Secret {
			attrs[a.Name] = cty.NullVal(a.Type)
		}
	}
	for _, b := range k.Blocks {
		if bv := attrs[b.Name]; !b.Single && !bv.IsNull() && bv.LengthInt() == 0 {
			attrs[b.Name] = cty.NullVal(bv.Type())
		}
	}
	raw, err := k.Encode(cty.ObjectVal(attrs))
	if err != nil {
		return err.Error()
	}
	if l.PreventDestroy {
		return string(raw) + " protected"
	}
	return string(raw)
}

// What is exported evaluates to the same objects at the same addresses, and exports to the same bytes.
func TestExportIsTheObjects(t *testing.T) {
	for seed := range uint64(25) {
		g := newGenerator(rand.NewPCG(seed, 7))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { checkExport(t, g.random(9), g.outputs()) })
	}
}

func checkExport(t *testing.T, objects []export.Object, outputs []schema.Output) {
	t.Helper()
	document, err := export.New(export.Options{Stack: "s", Outputs: outputs}, objects)
	if err != nil {
		t.Fatal(err)
	}
	if len(document.Warnings) > 0 {
		t.Fatal(document.Warnings)
	}
	inJSON, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, o := range objects {
		want[o.Address] = shape(o.Kind, o.Value, o.Lifecycle)
	}
	for _, o := range outputs {
		want["output "+o.Name] = plainJSON(t, o.Value)
	}
	for name, src := range map[string][]byte{"main.qod.hcl": document.HCL(), "main.qod.json": inJSON} {
		if formatted, diags := config.Format(name, src); diags.HasErrors() || !bytes.Equal(formatted, src) {
			t.Fatalf("%s is not formatted: %v\n%s", name, diags, cmp.Diff(string(src), string(formatted)))
		}
		desired := evaluate(t, name, src)
		got := map[string]string{}
		var again []export.Object
		for _, o := range desired.Objects {
			got[o.Address] = shape(o.Kind, o.Value, o.Lifecycle)
			again = append(again, export.Object{Kind: o.Kind, Address: o.Address, Value: withSecrets(o, objects), Lifecycle: schema.Lifecycle{
				PreventDestroy: o.Lifecycle.PreventDestroy,
			}})
		}
		for _, o := range desired.Outputs {
			got["output "+o.Name] = plainJSON(t, o.Value)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n%s\n%s", name, src, diff)
		}
		second, err := export.New(export.Options{Stack: "s", Outputs: desired.Outputs}, again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(document.HCL()), string(second.HCL())); diff != "" {
			t.Fatalf("the second export of %s differs\n%s", name, diff)
		}
	}
}

// plainJSON is what has to survive of an output: a list may come back as a tuple.
func plainJSON(t *testing.T, v cty.Value) string {
	t.Helper()
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// withSecrets puts back what the store keeps and no configuration has.
func withSecrets(o schema.Object, stored []export.Object) cty.Value {
	attrs := o.Value.AsValueMap()
	for _, s := range stored {
		for _, a := range o.Kind.Attrs {
			if s.Address == o.Address && a.Secret {
				attrs[a.Name] = s.Value.GetAttr(a.Name)
			}
		}
	}
	return cty.ObjectVal(attrs)
}

// What REST made has its name for an address. It gets a block like any other, and no warning.
func TestObjectsWithoutABlock(t *testing.T) {
	role, _ := schema.Lookup("role")
	v, err := role.Decode([]byte(`{"tenant":"acme","name":"reader"}`))
	if err != nil {
		t.Fatal(err)
	}
	for address, warnings := range map[string]int{"role.acme/reader": 0, "role.acme/other": 1} {
		d, err := export.New(export.Options{Stack: "s"}, []export.Object{{Kind: role, Value: v, Address: address}})
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Warnings) != warnings {
			t.Errorf("at %s: %v", address, d.Warnings)
		}
	}
}
