package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/qod-io/qod/test/terraform"
)

// terraformed starts a server without objects, and makes a token of its administrator.
func terraformed(t *testing.T) (*installation, *terraform.Place) {
	t.Helper()
	i := install(t, "")
	s := i.serve(t)
	token := strings.TrimSpace(lastLine(i.must(t, "token", "create", "admin")))
	eventually(t, 10*time.Second, "serve knows the token", func() bool { return terraform.Enters(t, "http://"+s.HTTP, token) })
	return i, &terraform.Place{
		Server: "http://" + s.HTTP, Token: token, Secrets: func() []string { return []string{token, secrets["admin"], "matrix-S3cret"} },
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// The real Terraform and a real serve: what the provider's own tests show against a double.
func TestTerraform(t *testing.T) {
	for name, suite := range terraform.Suites() {
		t.Run(name, func(t *testing.T) {
			_, place := terraformed(t)
			suite(t, place)
		})
	}
}

// Who follows docs/terraform.md has the example running: the provider comes from a directory, and terraform init finds it
// there. What Terraform wrote is a configuration of qod as it is, and goes from one to the other and back.
func TestTerraformFromTheDocumentation(t *testing.T) {
	i, place := terraformed(t)
	plugins := filepath.Join(i.root, "plugins")
	install := exec.CommandContext(t.Context(), "make", "-C", "..", "install-provider", "PLUGINS="+plugins)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("make install-provider: %v\n%s", err, out)
	}
	w := terraform.New(t, place.Server, place.Token)
	w.Write(t, "terraform.rc", "disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = \""+plugins+"\"\n  }\n}\n")
	w.Env = append(w.Env, "TF_VAR_ana_password=ana-S3cret-93d04e")
	if err := os.Remove(filepath.Join(w.Dir, "head.tf")); err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("../examples/terraform/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t, "main.tf", string(example))
	w.Must(t, "init", "-input=false")
	w.Apply(t)
	w.Unchanged(t)
	w.KeepsNoSecret(t, []string{place.Token, "ana-S3cret-93d04e"})
	before := w.State(t)

	// To qod: its configuration has the same objects, under its own names for them.
	text := i.must(t, "export", "--stack", "platform")
	if err := os.WriteFile(filepath.Join(i.dir, "main.qod.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	i.must(t, "apply", "--adopt-stack", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	if again := i.must(t, "export"); again != text {
		t.Errorf("the export was\n%s\nand is\n%s", text, again)
	}
	// And back: nothing was made anew, and nothing is left to do.
	w.Unchanged(t)
	for address, now := range w.State(t) {
		if now["id"] != before[address]["id"] {
			t.Errorf("%s was made anew", address)
		}
	}
	w.Apply(t, "-destroy")
}

// What qod exports for Terraform is there as it is: it is imported, and nothing changes.
func TestExportForTerraform(t *testing.T) {
	i, place := terraformed(t)
	config := `qod {
  stack = "core"
}

` + strings.ReplaceAll(kindsTogether(t), "correct horse battery staple", secrets["analyst_password"])
	if err := os.WriteFile(filepath.Join(i.dir, "main.qod.hcl"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	i.must(t, "apply", "--auto-approve")
	before := i.must(t, "export")
	w := terraform.New(t, place.Server, place.Token)
	if err := os.Remove(filepath.Join(w.Dir, "head.tf")); err != nil {
		t.Fatal(err)
	}
	i.must(t, "export", "--format", "terraform", "-o", w.Dir)
	for address, a := range w.Plan(t) {
		if a.String() != "no-op" || a.Change.Importing == nil {
			t.Errorf("%s: %s", address, a)
		}
	}
	w.Apply(t)
	w.Unchanged(t)
	if after := i.must(t, "export"); after != before {
		t.Errorf("the export was\n%s\nand is\n%s", before, after)
	}
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
}

// kindsTogether are the examples of all kinds as one configuration.
func kindsTogether(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../examples/kinds/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(filepath.Base(file), ".hcl")
		out.WriteString(strings.Replace(string(text), kind+" {", kind+" \"it\" {", 1) + "\n")
	}
	return out.String() + "role \"owner\" {\n  tenant = \"acme\"\n}\n" // whom the example of a user names
}
