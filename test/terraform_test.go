package test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// documented are the commands of a section of a page, in its order.
func documented(t *testing.T, page, section string) string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, page), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var script strings.Builder
	for _, m := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		script.WriteString(m[1])
	}
	if !found || script.Len() == 0 {
		t.Fatalf("%s has no commands in its section %s", page, section)
	}
	return script.String()
}

// cloned is this tree as somebody else has it who built qod, without what Git does not have of it.
func cloned(t *testing.T, i *installation) string {
	t.Helper()
	files, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(i.root, "clone")
	for _, name := range strings.Split(strings.TrimRight(string(files), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // it is deleted, and not yet committed
		}
		if err := errors.Join(err, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin", "qod")
	if err := errors.Join(os.MkdirAll(filepath.Dir(bin), 0o755), os.Symlink(i.bin, bin)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// followed runs the commands of docs/terraform.md as somebody who has a clone and a serve, and returns the project that they
// make. Only the server's port is another one, and OpenTofu stands in the place of Terraform where it is to.
func followed(t *testing.T, i *installation, place *terraform.Place) string {
	t.Helper()
	const server = "http://127.0.0.1:20900"
	script := documented(t, "../docs/terraform.md", "Install")
	if !strings.Contains(script, server) {
		t.Fatalf("the commands do not name the server %s", server)
	}
	script = regexp.MustCompile(`(?m)^terraform (init|apply)$`).ReplaceAllString(script, terraform.Program(t)+" $1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // nobody stays for longer
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", strings.ReplaceAll(script, server, place.Server))
	cmd.Dir, cmd.Env = cloned(t, i), i.env
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN"} { // which another HOME would change
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, name+"="+strings.TrimSpace(string(value)))
	}
	cmd.Stdin = strings.NewReader("yes\n") // what terraform apply asks for
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands of docs/terraform.md: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "Resources: 1 added") {
		t.Errorf("the last command added nothing:\n%s", out)
	}
	return filepath.Join(i.root, "platform")
}

// Who follows docs/terraform.md has a project that works, and can go on to the example. What Terraform wrote is a
// configuration of qod as it is, and goes from one to the other and back.
func TestTerraformFromTheDocumentation(t *testing.T) {
	i, place := terraformed(t)
	w := terraform.New(t, place.Server, place.Token)
	w.Dir = followed(t, i, place)
	w.Write(t, "terraform.rc", "disable_checkpoint = true\n")
	w.Env = append(w.Env, "HOME="+i.root, "TF_CLI_CONFIG_FILE="+filepath.Join(w.Dir, "terraform.rc"), "TF_VAR_ana_password=ana-S3cret-93d04e")
	w.Unchanged(t)
	w.Write(t, "main.tf", readFile(t, "../examples/terraform/main.tf"))
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
