package test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// secrets are the passwords of the tests; no output may ever show them.
var secrets = map[string]string{
	"loader_password":  "ldr-S3cret-7f1c2b",
	"analyst_password": "ana-S3cret-93d04e",
	"reader_password":  "rdr-S3cret-0b68d1",
	"admin":            "adm-S3cret-55aa17",
}

// installation is a working directory with its own state, driven through the real binary.
type installation struct {
	name string
	dir  string // the working directory
	root string // everything of this installation is below it
	bin  string
	env  []string

	mu  sync.Mutex
	out bytes.Buffer // all that any command printed
}

// binary returns the qod under test. `make test` builds it; a bare `go test` builds it here.
func binary(t testing.TB) string {
	t.Helper()
	if bin := os.Getenv("QOD_TEST_BINARY"); bin != "" {
		return bin
	}
	return buildOnce(t, "qod", "duckdb_arrow")
}

var builds sync.Map

func buildOnce(t testing.TB, name, tags string) string {
	t.Helper()
	build, _ := builds.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "qod-build")
		if err != nil {
			return "", err
		}
		bin := filepath.Join(dir, name)
		out, err := exec.Command("go", "build", "-tags", tags, "-o", bin, "../cmd/qod").CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build qod: %w\n%s", err, out)
		}
		return bin, nil
	}))
	bin, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// needed returns a variable that `make test` sets.
func needed(t testing.TB, name string) string {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		t.Fatalf("%s is not set: run the tests by make test, which fetches what they need", name)
	}
	return v
}

// install copies an example, or none, and makes state for it. It is purged when the test ends.
func install(t testing.TB, example string) *installation {
	t.Helper()
	root, err := os.MkdirTemp("", "qod-test")
	if err != nil {
		t.Fatal(err)
	}
	i := newInstallation(t, root, example)
	t.Cleanup(func() {
		if t.Failed() {
			i.dump(t)
		}
		i.purge(t)
	})
	i.init(t)
	return i
}

func newInstallation(t testing.TB, root, example string) *installation {
	t.Helper()
	i := &installation{name: example, root: root, dir: filepath.Join(root, "work"), bin: binary(t)}
	if err := os.Chmod(root, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(i.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if example != "" {
		if err := os.CopyFS(i.dir, os.DirFS(filepath.Join("..", "examples", example))); err != nil {
			t.Fatal(err)
		}
	}
	i.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "LANG=C.UTF-8",
		"QOD_STATE_DIR=" + filepath.Join(root, "state"), "QOD_RUN_DIR=" + filepath.Join(root, "run"),
		"QOD_FLIGHT_LISTEN=127.0.0.1:0", "QOD_HTTP_LISTEN=127.0.0.1:0", "QOD_DRAIN_TIMEOUT_SEC=5",
		"QOD_ADMIN_PASSWORD=" + secrets["admin"],
		"QOD_VAR_loader_password=" + secrets["loader_password"], "QOD_VAR_analyst_password=" + secrets["analyst_password"],
		"QOD_VAR_reader_password=" + secrets["reader_password"],
		fmt.Sprintf(`QOD_VAR_passwords={acme=%q, globex=%q}`, secrets["loader_password"], secrets["analyst_password"]),
	}
	return i
}

// init makes its state. Whoever made the installation has seen to its end before.
func (i *installation) init(t testing.TB) {
	t.Helper()
	i.must(t, "init", "--extensions-from", needed(t, "QOD_TEST_EXTENSION_DIR"))
}

// purge ends everything and shows that nothing is left.
func (i *installation) purge(t testing.TB) {
	t.Helper()
	i.must(t, "down", "--purge")
	for _, left := range []string{"state", "run", "work/.qod"} {
		if _, err := os.Stat(filepath.Join(i.root, left)); err == nil {
			t.Errorf("down --purge left %s", left)
		}
	}
	if err := os.RemoveAll(i.root); err != nil {
		t.Error(err)
	}
}

func (i *installation) state(name ...string) string {
	return filepath.Join(append([]string{i.root, "state"}, name...)...)
}

func (i *installation) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, i.bin, append([]string{"-C", i.dir}, args...)...)
	cmd.Env = i.env
	return cmd
}

// qod runs a command and returns what it printed, errors included, and its exit code.
func (i *installation) qod(t testing.TB, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if t.Context().Err() != nil { // in a cleanup
		ctx, cancel = context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
	}
	cmd := i.command(ctx, args...)
	raw, err := cmd.CombinedOutput()
	i.mu.Lock()
	fmt.Fprintf(&i.out, "$ qod %s\n%s", strings.Join(args, " "), raw)
	i.mu.Unlock()
	if cmd.ProcessState == nil {
		t.Fatalf("run qod %v: %v", args, err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// must runs a command that has to succeed.
func (i *installation) must(t testing.TB, args ...string) string {
	t.Helper()
	out, code := i.qod(t, args...)
	if code != 0 {
		t.Fatalf("qod %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// expect runs a command and wants an exit code and words in its output.
func (i *installation) expect(t testing.TB, code int, words []string, args ...string) string {
	t.Helper()
	out, got := i.qod(t, args...)
	if got != code {
		t.Errorf("qod %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("qod %s does not say %q:\n%s", strings.Join(args, " "), w, out)
		}
	}
	return out
}

// edit replaces text in the configuration.
func (i *installation) edit(t testing.TB, old, new string) {
	t.Helper()
	name := filepath.Join(i.dir, "main.qod.hcl")
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(old)) {
		t.Fatalf("the configuration has no %q", old)
	}
	if err := os.WriteFile(name, bytes.ReplaceAll(raw, []byte(old), []byte(new)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// serving is a running serve as it describes itself.
type serving struct {
	PID     int
	Started string
	Flight  string
	HTTP    string
}

// serve starts qod serve in the background.
func (i *installation) serve(t testing.TB, args ...string) serving {
	t.Helper()
	before := map[int]bool{}
	for _, s := range i.serves(t) {
		before[s.PID] = true
	}
	i.must(t, append([]string{"serve", "--detach"}, args...)...)
	for _, s := range i.serves(t) {
		if !before[s.PID] {
			return s
		}
	}
	t.Fatal("serve did not announce itself")
	return serving{}
}

func (i *installation) serves(t testing.TB) []serving {
	t.Helper()
	files, err := filepath.Glob(i.state("serves", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []serving
	for _, f := range files {
		var s serving
		raw, err := os.ReadFile(f)
		if err == nil {
			err = json.Unmarshal(raw, &s)
		}
		if err != nil {
			t.Fatal(err)
		}
		if alive(s.PID) {
			out = append(out, s)
		}
	}
	return out
}

// dump shows what the installation's processes logged.
func (i *installation) dump(t testing.TB) {
	logs := []string{i.state("serve.log"), i.state("postgres.log")}
	nodes, _ := filepath.Glob(i.state("nodes", "*", "node.log")) // the pattern is good
	for _, name := range append(logs, nodes...) {
		raw, err := os.ReadFile(name)
		if err == nil {
			t.Logf("--- %s\n%s", name, raw[max(0, len(raw)-4000):])
		}
	}
}

// eventually polls a condition until it holds.
func eventually(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, limit)
		}
		<-tick.C
	}
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return rest != "" && rest[0] != 'Z'
}
