package export_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/schema"
)

// random returns objects of every kind.
func random(seed uint64, each int) []export.Object {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), keys: map[schema.Addr]bool{}, taken: map[string]bool{}}
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
func evaluate(t *testing.T, name string, src []byte) []schema.Object {
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
	return desired.Objects
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
		objects := random(seed, 9)
		document, err := export.New(export.Options{Stack: "s"}, objects)
		if err != nil {
			t.Fatal(err)
		}
		if len(document.Warnings) > 0 {
			t.Fatal(document.Warnings)
		}
		want := map[string]string{}
		for _, o := range objects {
			want[o.Address] = shape(o.Kind, o.Value, o.Lifecycle)
		}
		inJSON, err := document.JSON()
		if err != nil {
			t.Fatal(err)
		}
		for name, src := range map[string][]byte{"main.qod.hcl": document.HCL(), "main.qod.json": inJSON} {
			got := map[string]string{}
			var again []export.Object
			for _, o := range evaluate(t, name, src) {
				got[o.Address] = shape(o.Kind, o.Value, o.Lifecycle)
				again = append(again, export.Object{Kind: o.Kind, Address: o.Address, Value: withSecrets(o, objects), Lifecycle: schema.Lifecycle{
					PreventDestroy: o.Lifecycle.PreventDestroy,
				}})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %s\n%s\n%s", seed, name, src, diff)
			}
			second, err := export.HCL("s", again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(document.HCL()), string(second)); diff != "" {
				t.Fatalf("seed %d: the second export differs\n%s", seed, diff)
			}
		}
	}
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
