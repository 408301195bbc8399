package provider

import (
	"encoding/json"
	"flag"
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

// pluginDocs names the variable with the path of tfplugindocs, which make builds.
const pluginDocs = "QOD_TEST_TFPLUGINDOCS"

// The pages of docs/terraform are what tfplugindocs makes of what the provider tells Terraform of itself. The schemas are
// handed to it, since a Terraform before 1.14 knows of no actions and no lists.
func TestDocsAreCurrent(t *testing.T) {
	program := os.Getenv(pluginDocs)
	switch {
	case program == "" && os.Getenv("CI") != "":
		t.Fatalf("%s names no tfplugindocs", pluginDocs)
	case program == "":
		t.Skipf("%s names no tfplugindocs: make docs has one", pluginDocs)
	}
	root := sources(t)
	for _, verb := range []string{"generate", "validate"} {
		cmd := exec.CommandContext(t.Context(), program, verb, "--provider-dir="+root, "--provider-name="+typeName,
			"--providers-schema="+filepath.Join(root, "schema.json"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("tfplugindocs %s: %v\n%s", verb, err, out)
		}
	}
	const dir = "../docs/terraform"
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "docs"))); err != nil {
			t.Fatal(err)
		}
	}
	if diff := gocmp.Diff(files(t, dir), files(t, filepath.Join(root, "docs"))); diff != "" {
		t.Errorf("docs/terraform differs (-files +provider); run: make docs\n%s", diff)
	}
}

// files returns what is in a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
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
	return have
}

// sources writes what tfplugindocs reads, and returns where: the schemas as `terraform providers schema -json` does, and
// examples in the layout that it wants.
func sources(t *testing.T) string {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	all, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	actions := map[string]object{}
	for name, s := range all.ActionSchemas {
		actions[name] = schemaJSON(s.Schema)
	}
	functions := map[string]object{}
	for name, f := range all.Functions {
		params := []object{}
		for _, p := range f.Parameters {
			params = append(params, object{"name": p.Name, "description": p.Description, "type": p.Type})
		}
		functions[name] = object{"description": f.Description, "summary": f.Summary, "return_type": f.Return.Type, "parameters": params}
	}
	raw, err := json.Marshal(object{"format_version": "1.0", "provider_schemas": object{"registry.terraform.io/hashicorp/" + typeName: object{
		"provider": schemaJSON(all.Provider), "resource_schemas": schemasJSON(all.ResourceSchemas),
		"data_source_schemas": schemasJSON(all.DataSourceSchemas), "ephemeral_resource_schemas": schemasJSON(all.EphemeralResourceSchemas),
		"list_resource_schemas": schemasJSON(all.ListResourceSchemas), "action_schemas": actions, "functions": functions,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"schema.json": string(raw)}
	for k, v := range map[string]string{"provider/provider.tf": "main.tf", "actions/qod_pool_restart/action.tf": "actions/pool_restart.tf"} {
		example, err := os.ReadFile(filepath.Join("../examples/terraform", v))
		if err != nil {
			t.Fatal(err)
		}
		texts["examples/"+k] = string(example)
	}
	for _, k := range schema.Kinds() {
		resource, imported, _ := strings.Cut(exampleOf(t, k), "import {")
		dir := "examples/resources/" + typeName + "_" + k.Name
		texts[dir+"/resource.tf"], texts[dir+"/import-by-string-id.tf"] = strings.TrimSpace(resource), "import {"+imported
	}
	root := t.TempDir()
	for name, text := range texts {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// object is a part of a JSON document.
type object = map[string]any

func schemasJSON(all map[string]*tfprotov6.Schema) map[string]object {
	out := map[string]object{}
	for name, s := range all {
		out[name] = schemaJSON(s)
	}
	return out
}

func schemaJSON(s *tfprotov6.Schema) object {
	return object{"version": s.Version, "block": object{
		"attributes": attributesJSON(s.Block.Attributes), "description": s.Block.Description, "description_kind": "markdown",
	}}
}

func attributesJSON(attrs []*tfprotov6.SchemaAttribute) object {
	out := object{}
	for _, a := range attrs {
		one := object{
			"description": a.Description, "description_kind": "markdown", "required": a.Required, "optional": a.Optional,
			"computed": a.Computed, "sensitive": a.Sensitive, "write_only": a.WriteOnly,
		}
		if a.NestedType == nil {
			one["type"] = a.Type
		} else {
			one["nested_type"] = object{
				"attributes": attributesJSON(a.NestedType.Attributes), "nesting_mode": strings.ToLower(a.NestedType.Nesting.String()),
			}
		}
		out[a.Name] = one
	}
	return out
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
