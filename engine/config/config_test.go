package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/txtar"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/qod-io/qod/engine/config"
	"github.com/qod-io/qod/schema"
)

var update = flag.Bool("update", false, "write what the tests get into testdata as what they want")

// secret is the value of every secret in testdata: no diagnostic may show it.
const secret = "hunter2-secret"

// TestConfigurations runs testdata/*.txtar: configuration files, optional args (-var, -var-file and
// QOD_VAR_x=... lines), and either the wanted objects or the wanted diagnostics.
func TestConfigurations(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			name, got := run(t, archive)
			if strings.HasPrefix(name, "diagnostics") && strings.Contains(got, secret) {
				t.Errorf("the diagnostics show a secret:\n%s", got)
			}
			if *update {
				write(t, path, archive, name, got)
				return
			}
			if diff := cmp.Diff(wanted(archive, name), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

func isWanted(name string) bool { return name == "objects.json" || name == "diagnostics.txt" }

func wanted(archive *txtar.Archive, name string) string {
	for _, f := range archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func write(t *testing.T, path string, archive *txtar.Archive, name, got string) {
	t.Helper()
	kept := archive.Files[:0]
	for _, f := range archive.Files {
		if !isWanted(f.Name) {
			kept = append(kept, f)
		}
	}
	archive.Files = append(kept, txtar.File{Name: name, Data: []byte(got)})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run evaluates the archive's files in a directory of their own.
func run(t *testing.T, archive *txtar.Archive) (name, got string) {
	t.Helper()
	dir := t.TempDir()
	var in config.Inputs
	for _, f := range archive.Files {
		switch {
		case isWanted(f.Name):
		case f.Name == "args":
			in = inputs(t, string(f.Data))
		default:
			file := filepath.Join(dir, f.Name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, bytes.TrimSuffix(f.Data, []byte("<no newline>\n")), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Chdir(dir)
	c, diags := config.Load(".")
	desired, more := c.Evaluate(in)
	diags = append(diags, more...)
	if len(diags) > 0 {
		if len(desired.Objects) > 0 {
			t.Errorf("%d objects beside errors", len(desired.Objects))
		}
		return "diagnostics.txt", render(t, diags, desired.Files())
	}
	return "objects.json", encode(t, desired)
}

func inputs(t *testing.T, args string) config.Inputs {
	t.Helper()
	env := map[string]string{}
	var in config.Inputs
	for line := range strings.Lines(args) {
		flag, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, text, isEnv := strings.Cut(flag, "=")
		switch {
		case flag == "-var":
			name, text, _ := strings.Cut(value, "=")
			in.Given = append(in.Given, config.Given{Name: name, Value: text})
		case flag == "-var-file":
			in.Given = append(in.Given, config.Given{File: value})
		case isEnv:
			env[name] = text + strings.TrimPrefix(" "+value, " ")
		default:
			t.Fatalf("args: %q", line)
		}
	}
	in.Env = func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	return in
}

func render(t *testing.T, diags hcl.Diagnostics, files map[string]*hcl.File) string {
	t.Helper()
	var plain, colored bytes.Buffer
	if err := config.WriteDiagnostics(&plain, diags, files, false); err != nil {
		t.Fatal(err)
	}
	if err := config.WriteDiagnostics(&colored, diags, files, true); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(colored.String(), secret) {
		t.Error("the colored diagnostics show a secret")
	}
	forPrograms, err := json.Marshal(config.Diagnostics(diags, files))
	if err != nil || strings.Contains(string(forPrograms), secret) {
		t.Errorf("the diagnostics for programs show a secret, or %v: %s", err, forPrograms)
	}
	return plain.String()
}

type object struct {
	Address   string
	Addr      string
	Value     json.RawMessage
	Sensitive []string `json:",omitempty"`
	DependsOn []string `json:",omitempty"`
}

type output struct {
	Name        string
	Value       json.RawMessage
	Sensitive   bool   `json:",omitempty"`
	Description string `json:",omitempty"`
}

func encode(t *testing.T, desired *config.Desired) string {
	t.Helper()
	var objects []object
	for _, o := range desired.Objects {
		if _, problems := o.Kind.Complete(o.Value); len(problems) > 0 {
			t.Errorf("%s has problems: %v", o.Address, problems)
		}
		value, err := o.Kind.Encode(o.Value)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object{o.Address, o.Addr().String(), value, o.Sensitive, o.DependsOn})
	}
	checkOrder(t, desired.Objects)
	var outputs []output
	for _, o := range desired.Outputs {
		value, err := ctyjson.Marshal(o.Value, o.Value.Type())
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, output{o.Name, value, o.Sensitive, o.Description})
	}
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(objects); err != nil {
		t.Fatal(err)
	}
	if len(outputs) > 0 {
		if err := enc.Encode(outputs); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func checkOrder(t *testing.T, objects []schema.Object) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range objects {
		for _, address := range o.DependsOn {
			if !seen[address] {
				t.Errorf("%s comes before %s, which it depends on", o.Address, address)
			}
		}
		seen[o.Address] = true
	}
}
