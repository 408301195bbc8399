package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// What is wrong with flags is said in words, and with the way out.
func TestFlagErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for line, want := range map[string]string{
		"plan --traget=pool.bi":          "unknown flag --traget: did you mean --target?",
		"plan -traget=pool.bi":           "unknown flag -traget: did you mean --target?",
		"plan -input=false":              "unknown flag -input: qod asks for nothing",
		"apply -refresh=false":           "unknown flag -refresh: every plan reads",
		"plan --zzzzzz":                  "unknown flag --zzzzzz: see qod plan --help",
		"apply --parallelism x":          `--parallelism "x": want a whole number`,
		"apply --lock-timeout 3":         `--lock-timeout "3": want a duration like 90s`,
		"apply --auto-approve=perhaps":   `--auto-approve "perhaps": want true or false`,
		"plan --var memory":              "--var: want NAME=VALUE",
		"plan --destroy --refresh-only":  "--destroy and --refresh-only exclude each other",
		"plan --target user.acme/bob/x":  `--target: "acme/bob/x" does not name a user: want TENANT/NAME`,
		"plan --target pool":             `parse address "pool"`,
		"state lst":                      `qod state has no command "lst". Did you mean "list"?`,
		"wait --for ever":                `--for "ever": want converged or gone`,
		"plan --target pool.bi --out":    "flag needs an argument: --out",
		"serve --flight-listen= -nosuch": "unknown flag -nosuch",
	} {
		code, out := command(t, "", strings.Fields(line)...)
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("qod %s: exit code %d, want 1 with %q:\n%s", line, code, want, out)
		}
	}
	if code, out := command(t, "", "state"); code != 0 || !strings.Contains(out, "qod state [command]") {
		t.Errorf("qod state: exit code %d:\n%s", code, out)
	}
}

// The process that serve --detach starts does not detach again, however the flag is written.
func TestDetachesOnce(t *testing.T) {
	got := withoutDetach([]string{"serve", "--detach", "-detach", "-detach=true", "--detach=true", "-C", "detach"})
	if want := []string{"serve", "-C", "detach"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestColor(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminals here: ", err)
	}
	defer pty.Close()
	for name, tt := range map[string]struct {
		env   map[string]string
		plain bool
		want  bool
	}{
		"terminal":       {want: true},
		"empty NO_COLOR": {env: map[string]string{"NO_COLOR": "", "TERM": "xterm"}, want: true},
		"NO_COLOR":       {env: map[string]string{"NO_COLOR": "1"}},
		"dumb":           {env: map[string]string{"TERM": "dumb"}},
		"flag":           {plain: true},
	} {
		a := &app{plain: tt.plain, env: func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }}
		if got := a.colored(pty); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
		if a.colored(&strings.Builder{}) {
			t.Errorf("%s: colour although it is no terminal", name)
		}
	}
}

// A node that does not answer has a row as wide as the others.
func TestStatusOfSilentNodes(t *testing.T) {
	out := &strings.Builder{}
	a := &app{stdout: out}
	kind, _ := schema.Lookup("pool")
	rows := []store.Node{{ID: "11111111", PoolID: "p", Role: "dual"}, {ID: "22222222", PoolID: "p", Role: "dual", PID: 4711}}
	reports := map[string]nodeReport{"11111111": {err: os.ErrClosed}, "22222222": {Status: wire.Status{Ready: true, PID: 4711}}}
	if err := a.printPool((seen{rows: rows, reports: reports}).pool(store.Object{ID: "p", Kind: kind, Spec: kind.Empty()})); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	head, silent, serving := lines[1], lines[2], lines[3]
	at := strings.Index(head, "PID")
	if silent[at] != '-' || serving[at] != '4' || strings.Index(head, "MEMORY") != strings.Index(serving, "0 MiB") {
		t.Errorf("columns:\n%s", out)
	}
}

// Programs get of a node that does not answer what was recorded of it, and no load.
func TestStatusAsJSON(t *testing.T) {
	pool, _ := schema.Lookup("pool")
	database, _ := schema.Lookup("tenant_db")
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	s := seen{
		snap: &store.Snapshot{Revision: 7, Objects: []store.Object{
			{ID: "d", Kind: database, Spec: database.Empty(), Status: store.Status{Phase: store.Ready}},
			{ID: "p", Kind: pool, Spec: pool.Empty()},
		}},
		rows: []store.Node{
			{ID: "1", PoolID: "p", Role: "dual", Phase: "quarantined", Reason: "slow", Seen: at, PID: 17},
			{ID: "2", PoolID: "p", Role: "read", Phase: "starting", PID: 18, Host: "h"},
			{ID: "3", PoolID: "another"},
		},
		reports: map[string]nodeReport{
			"1": {err: os.ErrClosed},
			"2": {Status: wire.Status{Ready: true, Served: 3, P50: 1500 * time.Microsecond}},
		},
	}
	raw, err := json.Marshal(s.document([]presence{{PID: 4, Flight: "f:1", HTTP: "h:2"}}))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"format_version":"1.1","qod_version":"dev","revision":7,"serves":[{"pid":4,"flight":"f:1","http":"h:2"}],` +
		`"objects":[{"kind":"tenant_db","object":"","id":"d","deleting":false,"status":{"phase":"ready"}}],` +
		`"pools":[{"object":"","id":"p","serving":1,"nodes":[` +
		`{"id":"1","role":"dual","phase":"quarantined","pid":17,"host":"","silent":"file already closed","seen":"2030-01-02T03:04:05Z","message":"slow"},` +
		`{"id":"2","role":"read","phase":"serving","pid":18,"host":"h","load":{"served":3,"in_flight":0,"sessions":0,"transactions":0,` +
		`"p50_seconds":0.0015,"p95_seconds":0,"p99_seconds":0,"memory_bytes":0}}]}]}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

// Places are named as seen from where qod runs.
func TestPlacesAreShort(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, at := range []string{".", "prod"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "main.qod.hcl"), []byte("qod {\n  stak = \"s\"\n}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		want := "\n  on " + filepath.Join(at, "main.qod.hcl") + " line 2, in qod:\n"
		if code, out := command(t, "", "-C", at, "validate"); code != 1 || !strings.Contains(out, want) {
			t.Errorf("-C %s: exit code %d, want 1 with %q:\n%s", at, code, want, out)
		}
	}
}

func TestWaitingNamesTheOtherProcess(t *testing.T) {
	out := &strings.Builder{}
	a := &app{stdout: out}
	held := &store.HeldError{Name: "outside", Holder: "process 7 on host-1", Since: time.Now()}
	newText(a).held(fmt.Errorf("acquire lease: %w", held))
	if got := out.String(); !strings.HasPrefix(got, "  Waiting for process 7 on host-1, which ") || strings.Contains(got, "lease") {
		t.Errorf("%q", got)
	}
	if got := another([]presence{{PID: 7, Flight: "localhost:31338"}}); !strings.Contains(got, "process 7 with Flight SQL on localhost:31338") {
		t.Errorf("%q", got)
	}
	if got := another(nil); got != "" {
		t.Errorf("%q although no other serve runs", got)
	}
}
