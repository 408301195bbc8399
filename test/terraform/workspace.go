// Package terraform runs the real Terraform, or OpenTofu, with the provider of this tree, for tests.
package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
)

// addresses are what "qod-io/qod" stands for in a configuration: to Terraform, and to OpenTofu.
func addresses() []string {
	return []string{"registry.terraform.io/qod-io/qod", "registry.opentofu.org/qod-io/qod"}
}

// tofu names the variable with the path of the OpenTofu that all runs use in place of Terraform.
const tofu = "QOD_TEST_TOFU"

// Program returns the path of what to run.
func Program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(tofu); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			t.Fatalf("%s: %v", tofu, err)
		}
		return path
	}
	path, err := exec.LookPath("terraform")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatal("terraform is not installed")
	}
	t.Skip("terraform is not installed")
	return ""
}

// built is the directory of the provider's binary, which is made once.
var built = sync.OnceValues(build)

// build makes the provider as it is released: without CGO, which DuckDB would need. Where it is stays from run to run,
// since nobody knows which test is the last.
func build() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("qod-provider-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("build the provider: %w", err)
	}
	made := filepath.Join(dir, fmt.Sprintf("terraform-provider-qod.%d", os.Getpid()))
	cmd := exec.Command("go", "build", "-o", made, "github.com/qod-io/qod/provider/terraform-provider-qod")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the provider: %w: %s", err, out)
	}
	if err := os.Rename(made, filepath.Join(dir, "terraform-provider-qod")); err != nil {
		return "", fmt.Errorf("build the provider: %w", err)
	}
	return dir, nil
}

// Provider returns the directory that has the provider's binary.
func Provider(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Workspace is a directory in which the real Terraform or OpenTofu runs.
type Workspace struct {
	Dir     string
	Program string
	Env     []string

	parallelism int // of plans and applies; zero is Terraform's default
}

// Head says where the provider comes from.
const Head = `
terraform {
  required_providers {
    qod = {
      source = "qod-io/qod"
    }
  }
}
`

// New has Terraform use the provider that was built, without init.
func New(t *testing.T, server, token string) *Workspace {
	t.Helper()
	run, dir := Program(t), Provider(t)
	t.Parallel() // Terraform mostly waits for its processes to start
	w := &Workspace{Dir: t.TempDir(), Program: run}
	rc := filepath.Join(w.Dir, "terraform.rc")
	overrides := "disable_checkpoint = true\nprovider_installation {\n  dev_overrides {\n"
	for _, address := range addresses() {
		overrides += fmt.Sprintf("    %q = %q\n", address, dir)
	}
	overrides += "  }\n  direct {}\n}\n"
	if err := os.WriteFile(rc, []byte(overrides), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "QOD_SERVER="+server, "QOD_TOKEN="+token)
	w.Write(t, "head.tf", Head+"provider \"qod\" {\n  stack = \"core\"\n}\n")
	return w
}

func (w *Workspace) Write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w *Workspace) command(ctx context.Context, args ...string) *exec.Cmd {
	if w.parallelism > 0 && (args[0] == "plan" || args[0] == "apply") {
		args = slices.Insert(args, 1, fmt.Sprintf("-parallelism=%d", w.parallelism))
	}
	cmd := exec.CommandContext(ctx, w.Program, args...)
	cmd.Dir, cmd.Env = w.Dir, w.Env
	return cmd
}

// Run returns what Terraform printed, and how it ended.
func (w *Workspace) Run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := w.command(ctx, append(args, "-no-color")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// Must runs what has to succeed.
func (w *Workspace) Must(t *testing.T, args ...string) string {
	t.Helper()
	out, code := w.Run(t, args...)
	if code != 0 {
		t.Fatalf("terraform %s ended with %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

func (w *Workspace) Apply(t *testing.T, more ...string) string {
	t.Helper()
	return w.Must(t, append([]string{"apply", "-auto-approve", "-input=false"}, more...)...)
}

// Fails runs what has to fail with the words.
func (w *Workspace) Fails(t *testing.T, words string, args ...string) string {
	t.Helper()
	out, code := w.Run(t, args...)
	if code == 0 || !strings.Contains(Flat(out), words) {
		t.Errorf("terraform %s ended with %d, want a failure with %q:\n%s", strings.Join(args, " "), code, words, out)
	}
	return out
}

// Flat undoes how Terraform breaks and frames the lines of its messages.
func Flat(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(s)), " ")
}

// Unchanged shows that nothing is left to do.
func (w *Workspace) Unchanged(t *testing.T) {
	t.Helper()
	if out, code := w.Run(t, "plan", "-detailed-exitcode", "-input=false"); code != 0 {
		t.Errorf("the plan after an apply ended with %d:\n%s", code, out)
	}
}

// Action is what a plan does with a resource.
type Action struct {
	Address string `json:"address"`
	Change  struct {
		Actions   []string `json:"actions"`
		Importing *struct {
			ID string `json:"id"`
		} `json:"importing"`
	} `json:"change"`
}

func (a Action) String() string { return strings.Join(a.Change.Actions, "+") }

// Plan returns what would be done, by address.
func (w *Workspace) Plan(t *testing.T) map[string]Action {
	t.Helper()
	w.Must(t, "plan", "-input=false", "-out=p")
	var doc struct {
		Changes []Action `json:"resource_changes"`
	}
	w.Show(t, &doc, "p")
	out := map[string]Action{}
	for _, c := range doc.Changes {
		out[c.Address] = c
	}
	return out
}

// Show reads a saved plan, or the state.
func (w *Workspace) Show(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := w.command(t.Context(), append([]string{"show", "-json"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("terraform show: %v", err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// State returns the attributes of the resources that Terraform knows, by address.
func (w *Workspace) State(t *testing.T) map[string]map[string]any {
	t.Helper()
	var doc struct {
		Values struct {
			Root struct {
				Resources []struct {
					Address string         `json:"address"`
					Values  map[string]any `json:"values"`
				} `json:"resources"`
			} `json:"root_module"`
		} `json:"values"`
	}
	w.Show(t, &doc)
	out := map[string]map[string]any{}
	for _, r := range doc.Values.Root.Resources {
		out[r.Address] = r.Values
	}
	return out
}

// statuses says how the resources are of which Terraform keeps a state, by address: "" is well. It reads the file, so that
// what an interrupted Terraform left is seen as it is.
func (w *Workspace) statuses() (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(w.Dir, "terraform.tfstate"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // it was interrupted before it had one
	}
	if err == nil && len(raw) == 0 && os.Getenv(tofu) != "" {
		return nil, nil // OpenTofu makes the file at once, and writes what it has made 20 seconds later
	}
	var state struct {
		Resources []struct {
			Type, Name string
			Instances  []struct {
				Key    any    `json:"index_key"`
				Status string `json:"status"`
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &state)
	}
	if err != nil {
		return nil, fmt.Errorf("read Terraform's state: %w", err)
	}
	out := map[string]string{}
	for _, r := range state.Resources {
		for _, i := range r.Instances {
			out[fmt.Sprintf("%s.%s[%v]", r.Type, r.Name, i.Key)] = i.Status
		}
	}
	return out, nil
}

// KeepsNoSecret searches every file that Terraform left.
func (w *Workspace) KeepsNoSecret(t *testing.T, secrets []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.Dir, "*tfstate*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no state: %v", err)
	}
	for _, file := range append(files, filepath.Join(w.Dir, "p")) {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s has a secret", filepath.Base(file))
			}
		}
	}
}

// Ask returns a client of the server as somebody else uses it.
func Ask(t *testing.T, server, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: server, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Enters reports whether the server knows the token by now.
func Enters(t *testing.T, server, token string) bool {
	t.Helper()
	for _, err := range Ask(t, server, token).List(t.Context(), "tenant", client.Filter{}) {
		return !client.Is(err, client.Unauthenticated)
	}
	return true
}
