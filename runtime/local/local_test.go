package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/fakenode"
)

func TestStartCutShort(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	n, err := b.Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.readRecord(n.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.Process = process{} // the starter died between start and record
	if err := b.writeRecord(r); err != nil {
		t.Fatal(err)
	}
	again := p.open(t)
	nodes, err := again.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]backend.Node{n}, nodes); diff != "" {
		t.Errorf("the node was not found (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.spec("").Parts(), nodes[0].Parts); diff != "" {
		t.Errorf("what it was started with is lost (-want +got):\n%s", diff)
	}
	adopted, err := again.Start(t.Context(), n.ID, p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, adopted); diff != "" {
		t.Errorf("the node was not adopted (-want +got):\n%s", diff)
	}
}

func TestIntentWithoutProcess(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	id := uuid.NewString()
	if err := os.MkdirAll(b.nodeDir(id), 0o711); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func() error{
		"directory only": func() error { return nil },
		"damaged record": func() error { return os.WriteFile(b.recordPath(id), []byte("{"), 0o600) },
		"intent":         func() error { return b.writeRecord(record{ID: id, Endpoint: b.endpoint(id)}) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		nodes, err := b.List(t.Context())
		if err != nil || len(nodes) != 1 || !nodes[0].Exited {
			t.Errorf("%s: listed %+v, %v", name, nodes, err)
		}
	}
	if _, err := b.Start(t.Context(), id, p.spec("")); err != nil {
		t.Errorf("start over an intent: %v", err)
	}
}

func TestNodeWithoutRecordIsFound(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	n, err := b.Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(b.nodeDir(n.ID)); err != nil {
		t.Fatal(err)
	}
	nodes, err := b.List(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].PID != n.PID || nodes[0].Exited {
		t.Fatalf("listed %+v, %v", nodes, err)
	}
	if err := b.Stop(t.Context(), n.ID, time.Second); err != nil {
		t.Fatal(err)
	}
	if alive(t, n) {
		t.Error("it runs after stop")
	}
}

func TestNodeOfAnotherStateDirectoryIsForeign(t *testing.T) {
	p, other := newPlace(t), newPlace(t)
	n, err := p.open(t).Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := other.open(t).List(t.Context())
	if err != nil || len(nodes) != 0 {
		t.Errorf("listed %+v, %v", nodes, err)
	}
	if err := other.open(t).Stop(t.Context(), n.ID, 0); err != nil {
		t.Fatal(err)
	}
	if !alive(t, n) {
		t.Error("it was stopped from another state directory")
	}
}

func TestNodeIsAlone(t *testing.T) {
	p := newPlace(t)
	t.Setenv("QOD_ADMIN_PASSWORD", "canary-password")
	b := p.open(t)
	n, err := b.Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	await(t, n)
	proc := filepath.Join("/proc", strconv.Itoa(n.PID))
	for _, name := range []string{"environ", "cmdline"} {
		raw, err := os.ReadFile(filepath.Join(proc, name))
		if err != nil || len(raw) == 0 || strings.Contains(string(raw), "canary") {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if sid, err := syscall.Getpgid(n.PID); err != nil || sid != n.PID {
		t.Errorf("its process group is %d, not its own: %v", sid, err)
	}
	fds, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
		if err == nil && (strings.HasPrefix(target, "pipe:") && inherited(target) || strings.HasSuffix(target, "act.lock")) {
			t.Errorf("it holds %s", target)
		}
	}
	for _, name := range []string{"node.json", "node.log"} {
		raw, err := os.ReadFile(filepath.Join(b.nodeDir(n.ID), name))
		if err != nil || strings.Contains(string(raw), "canary") {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}

func TestNodeDirIsAsOpenUnderAnyUmask(t *testing.T) {
	b := newPlace(t).open(t)
	id := uuid.NewString()
	old := syscall.Umask(0o077)
	err := b.makeNodeDir(id, self)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(b.nodeDir(id))
	if err != nil || info.Mode().Perm() != 0o711 {
		t.Errorf("the node's directory: %v, %v", info, err)
	}
}

// inherited reports whether this process holds the same pipe.
func inherited(pipe string) bool {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return true
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && target == pipe {
			return true
		}
	}
	return false
}

func TestCrashLeavesAReason(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	n, err := b.Start(t.Context(), uuid.NewString(), p.spec(fakenode.Crash))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	err = b.Exits(ctx, func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	nodes, err := b.List(t.Context())
	if err != nil || len(nodes) != 1 {
		t.Fatalf("listed %+v, %v", nodes, err)
	}
	if want := "exit status 3: fake node: told to crash"; nodes[0].ID != n.ID || nodes[0].Reason != want {
		t.Errorf("reason %q, want %q", nodes[0].Reason, want)
	}
}

func TestStartWithoutData(t *testing.T) {
	p := newPlace(t)
	p.database = uuid.NewString()
	b := p.open(t)
	if _, err := b.Start(t.Context(), uuid.NewString(), p.spec("")); err == nil {
		t.Error("a node without a data directory started")
	}
	if nodes, err := b.List(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("a refused start left %+v, %v", nodes, err)
	}
}

func TestNewCreatesNothing(t *testing.T) {
	dir := t.TempDir()
	c := Config{StateDir: dir + "/s", RunDir: dir + "/r", DataRoot: dir + "/d", Binary: "/bin/true"}
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if nodes, err := b.List(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("listed %+v, %v", nodes, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("made %v, %v", entries, err)
	}
	c.DataRoot = "data"
	if _, err := New(c); err == nil {
		t.Error("a relative data root is accepted")
	}
}

func TestSocketsOfOthersAreRefused(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	if err := makeDir(b.socketDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Start(t.Context(), uuid.NewString(), p.spec("")); err == nil {
		t.Error("a socket was made where others can reach it")
	}
	if nodes, err := b.List(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("a refused start left %+v, %v", nodes, err)
	}
}

func TestConfigIsSealed(t *testing.T) {
	f, err := sealedFile(wire.NodeConfig{ID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("the configuration can be changed")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("the configuration can be cut")
	}
}

// A process that cannot be looked at for want of descriptors is not one that has ended.
func TestUnreadableProcIsAnError(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	id := uuid.NewString()
	n, err := b.Start(t.Context(), id, p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	await(t, n)
	r, err := b.readRecord(id)
	if err != nil {
		t.Fatal(err)
	}
	full := exhaust(t)
	is, err := r.Process.is(id)
	nodes, listErr := b.List(t.Context())
	full()
	if is || err == nil || absent(err) {
		t.Errorf("without descriptors: is = %t, %v", is, err)
	}
	if listErr == nil {
		t.Errorf("without descriptors the list is %+v", nodes)
	}
	if is, err := r.Process.is(id); err != nil || !is {
		t.Errorf("with descriptors: is = %t, %v", is, err)
	}
}

// exhaust leaves this process no descriptor to open.
func exhaust(t *testing.T) (restore func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := unix.Rlimit{Cur: 3, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}
}
