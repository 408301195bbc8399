package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
)

// The provider is built once, as it is released: without CGO, which DuckDB would need.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// buildProvider returns the directory that has the provider's binary.
func buildProvider(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "qod-provider-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "terraform-provider-qod"), "./terraform-provider-qod")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func TestBuildsWithoutCGO(t *testing.T) { buildProvider(t) }

// workspace is a directory in which the real Terraform runs.
type workspace struct {
	dir     string
	program string
	env     []string
}

const head = `
terraform {
  required_providers {
    qod = {
      source = "qod-io/qod"
    }
  }
}
`

// newWorkspace has Terraform use the provider that was built, without init.
func newWorkspace(t *testing.T, server, token string) *workspace {
	t.Helper()
	program, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("terraform is not installed")
	}
	t.Parallel() // Terraform mostly waits for its processes to start
	w := &workspace{dir: t.TempDir(), program: program}
	rc := filepath.Join(w.dir, "terraform.rc")
	overrides := fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n",
		Address, buildProvider(t))
	if err := os.WriteFile(rc, []byte(overrides), 0o600); err != nil {
		t.Fatal(err)
	}
	w.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "QOD_SERVER="+server, "QOD_TOKEN="+token)
	w.write(t, "head.tf", head+"provider \"qod\" {\n  stack = \"core\"\n}\n")
	return w
}

func (w *workspace) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run returns what Terraform printed, and how it ended.
func (w *workspace) run(t *testing.T, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program, append(args, "-no-color")...)
	cmd.Dir, cmd.Env = w.dir, w.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// must runs what has to succeed.
func (w *workspace) must(t *testing.T, args ...string) string {
	t.Helper()
	out, code := w.run(t, args...)
	if code != 0 {
		t.Fatalf("terraform %s ended with %d:\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

func (w *workspace) apply(t *testing.T, more ...string) string {
	t.Helper()
	return w.must(t, append([]string{"apply", "-auto-approve", "-input=false"}, more...)...)
}

// fails runs what has to fail with the words.
func (w *workspace) fails(t *testing.T, words string, args ...string) string {
	t.Helper()
	out, code := w.run(t, args...)
	if code == 0 || !strings.Contains(flat(out), words) {
		t.Errorf("terraform %s ended with %d, want a failure with %q:\n%s", strings.Join(args, " "), code, words, out)
	}
	return out
}

// flat undoes how Terraform breaks and frames the lines of its messages.
func flat(s string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("│", " ", "╷", " ", "╵", " ").Replace(s)), " ")
}

// unchanged shows that nothing is left to do.
func (w *workspace) unchanged(t *testing.T) {
	t.Helper()
	if out, code := w.run(t, "plan", "-detailed-exitcode", "-input=false"); code != 0 {
		t.Errorf("the plan after an apply ended with %d:\n%s", code, out)
	}
}

// action is what a plan does with a resource.
type action struct {
	Address string `json:"address"`
	Change  struct {
		Actions   []string `json:"actions"`
		Importing *struct {
			ID string `json:"id"`
		} `json:"importing"`
	} `json:"change"`
}

func (a action) String() string { return strings.Join(a.Change.Actions, "+") }

// plan returns what would be done, by address.
func (w *workspace) plan(t *testing.T) map[string]action {
	t.Helper()
	w.must(t, "plan", "-input=false", "-out=p")
	var doc struct {
		Changes []action `json:"resource_changes"`
	}
	w.show(t, &doc, "p")
	out := map[string]action{}
	for _, c := range doc.Changes {
		out[c.Address] = c
	}
	return out
}

// show reads a saved plan, or the state.
func (w *workspace) show(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), w.program, append([]string{"show", "-json"}, args...)...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("terraform show: %v", err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatal(err)
	}
}

// state returns the attributes of the resources that Terraform knows, by address.
func (w *workspace) state(t *testing.T) map[string]map[string]any {
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
	w.show(t, &doc)
	out := map[string]map[string]any{}
	for _, r := range doc.Values.Root.Resources {
		out[r.Address] = r.Values
	}
	return out
}

// keepsNoSecret searches every file that Terraform left.
func (w *workspace) keepsNoSecret(t *testing.T, secrets []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "*tfstate*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no state: %v", err)
	}
	for _, file := range append(files, filepath.Join(w.dir, "p")) {
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

// ask returns a client of the server as somebody else uses it.
func ask(t *testing.T, server, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{Server: server, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
