package provider

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hcldec"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/qod-io/qod/engine/export"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/terraform"
)

var update = flag.Bool("update", false, "write the derived files")

// The pages of docs/terraform are what the provider tells Terraform of itself, in the layout that registries read.
func TestDocsAreCurrent(t *testing.T) {
	const dir = "../docs/terraform"
	want := pages(t)
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			file := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	have := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		have[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(have, want); diff != "" {
		t.Errorf("docs/terraform differs (-files +provider); run: make docs\n%s", diff)
	}
}

// pages returns every page by its file.
func pages(t *testing.T) map[string]string {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../examples/terraform/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"index.md": page("qod provider", all.Provider, "## Example\n\n"+fenced(string(example)))}
	for name, s := range all.ResourceSchemas {
		k, _ := schema.Lookup(strings.TrimPrefix(name, typeName+"_"))
		resource, imported, _ := strings.Cut(exampleOf(t, k), "import {")
		more := "## Example\n\n" + fenced(resource) + "\n## Import\n\n" + fenced("import {"+imported)
		out["resources/"+k.Name+".md"] = page(name, s, more)
	}
	for name, s := range all.DataSourceSchemas {
		out["data-sources/"+strings.TrimPrefix(name, typeName+"_")+".md"] = page(name+" (data source)", s, "")
	}
	for name, s := range all.ListResourceSchemas {
		out["list-resources/"+strings.TrimPrefix(name, typeName+"_")+".md"] = page(name+" (list, Terraform 1.14)", s, "")
	}
	for name, s := range all.EphemeralResourceSchemas {
		out["ephemeral-resources/"+strings.TrimPrefix(name, typeName+"_")+".md"] = page(name+" (ephemeral, Terraform 1.10)", s, "")
	}
	for name, f := range all.Functions {
		text := fmt.Sprintf("# %s (function)\n\n%s\n\n## Arguments\n\n", name, f.Description)
		for _, p := range f.Parameters {
			text += fmt.Sprintf("- `%s` (%s): %s\n", p.Name, typeWords(p.Type), p.Description)
		}
		out["functions/"+name+".md"] = text
	}
	return out
}

func fenced(text string) string { return "```terraform\n" + strings.TrimSpace(text) + "\n```\n" }

func page(title string, s *tfprotov6.Schema, more string) string {
	out := &strings.Builder{}
	fmt.Fprintf(out, "# %s\n\n%s\n\n%s", title, s.Block.Description, more)
	if more != "" {
		out.WriteString("\n")
	}
	out.WriteString("## Arguments and attributes\n\n")
	describe(out, s.Block.Attributes, "")
	return out.String()
}

// describe lists attributes: those that are required, those that may be written, and those that are read.
func describe(out *strings.Builder, attrs []*tfprotov6.SchemaAttribute, indent string) {
	attrs = slices.Clone(attrs)
	slices.SortFunc(attrs, func(a, b *tfprotov6.SchemaAttribute) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Name, b.Name)) })
	for _, a := range attrs {
		words := []string{"read", "required", "optional"}[rank(a)%3]
		if a.WriteOnly {
			words += ", write-only: it is kept nowhere in Terraform"
		}
		kind := "object"
		if a.NestedType == nil {
			kind = typeWords(a.Type)
		} else if a.NestedType.Nesting != tfprotov6.SchemaObjectNestingModeSingle {
			kind = strings.ToLower(a.NestedType.Nesting.String()) + " of objects"
		}
		fmt.Fprintf(out, "%s- `%s` (%s, %s): %s\n", indent, a.Name, kind, words, a.Description)
		if a.NestedType != nil {
			describe(out, a.NestedType.Attributes, indent+"  ")
		}
	}
}

func rank(a *tfprotov6.SchemaAttribute) int {
	switch {
	case a.Required:
		return 1
	case a.Optional:
		return 2
	}
	return 3
}

func typeWords(t fmt.Stringer) string {
	words := strings.ToLower(strings.ReplaceAll(t.String(), "tftypes.", ""))
	return strings.NewReplacer("[", " of ", "]", "", "bool", "boolean").Replace(words)
}

// exampleOf writes the example of a kind as a resource, with its import.
func exampleOf(t *testing.T, k *schema.Kind) string {
	t.Helper()
	f, diags := hclparse.NewParser().ParseHCLFile(filepath.Join("..", "examples", "kinds", k.Name+".hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	body, diags := f.Body.Content(hcldec.ImpliedSchema(hcldec.ObjectSpec{"x": &hcldec.BlockSpec{TypeName: k.Name, Nested: k.Spec()}}))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := hcldec.Decode(body.Blocks[0].Body, k.Spec(), nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, err := convert.Convert(v, k.Type())
	if err != nil {
		t.Fatal(err)
	}
	out, warnings := export.Terraform("", []export.Object{{Kind: k, Value: v}})
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	return string(out)
}

// Each kind's example is a resource that the provider takes.
func TestExamplesOfKindsAreResources(t *testing.T) {
	w, _ := newStory(t, "")
	var texts []string
	for _, k := range schema.Kinds() {
		texts = append(texts, exampleOf(t, k))
	}
	w.Write(t, "main.tf", strings.Join(texts, "\n\n"))
	w.Must(t, "validate")
}

// The example is applied as it is, in an installation without anything.
func TestExampleApplies(t *testing.T) {
	d := newDouble(t)
	w := terraform.New(t, d.URL, doubleToken)
	if err := os.Remove(filepath.Join(w.Dir, "head.tf")); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../examples/terraform/*.tf")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		w.Write(t, filepath.Base(file), string(data))
	}
	vars := []string{"-var", "ana_password=example-s3cret"}
	w.Apply(t, vars...)
	if out, code := w.Run(t, append([]string{"plan", "-detailed-exitcode"}, vars...)...); code != 0 {
		t.Errorf("ended with %d:\n%s", code, out)
	}
	w.KeepsNoSecret(t, []string{"example-s3cret"})
	kinds := map[string]bool{}
	d.with(func() {
		for _, o := range d.objects {
			kinds[o.Kind] = true
		}
	})
	for _, k := range schema.Kinds() {
		if !kinds[k.Name] {
			t.Errorf("the example has no %s but %v", k.Name, slices.Sorted(maps.Keys(kinds)))
		}
	}
}

// The pipeline shows a plan, makes that and nothing else, and refuses it where the world moved on.
func TestPipeline(t *testing.T) {
	w, d := newStory(t, "")
	if err := os.Remove(filepath.Join(w.Dir, "head.tf")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.tf", "pipeline.sh"} {
		data, err := os.ReadFile(filepath.Join("../examples/terraform", name))
		if err != nil {
			t.Fatal(err)
		}
		w.Write(t, name, string(data))
	}
	step := func(want int, name string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "pipeline.sh", name)
		cmd.Dir, cmd.Env = w.Dir, append(w.Env, "TF_VAR_ana_password=example-s3cret", "TERRAFORM="+w.Program)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%s ended with %v, want %d:\n%s", name, err, want, out)
		}
		return string(out)
	}
	if out := step(2, "plan"); !strings.Contains(out, "7 to add") {
		t.Errorf("the plan is not shown:\n%s", out)
	}
	step(0, "apply")
	step(0, "plan")
	d.putAs(t, "platform", "tenant", `{"name":"acme","display_name":"Other"}`)
	step(2, "plan")
	d.putAs(t, "platform", "tenant", `{"name":"acme","display_name":"Third"}`)
	step(1, "apply")
}
