package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/backend/backendtest"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/fakenode"
)

// TestMain lets the test binary be a node, a process that only waits, and one that starts a node.
func TestMain(m *testing.M) {
	if os.Getenv("QOD_TEST_WAIT") != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	fakenode.Main()
	if len(os.Args) == 2 && os.Args[1] == "starter" {
		starter()
		return
	}
	os.Exit(m.Run())
}

// order is what a starter is told.
type order struct {
	Config Config
	ID     string
	Spec   backend.Spec
}

// starter takes the right to act, starts a node, says so, and waits to be killed.
func starter() {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	if _, err := TryLock(o.Config.StateDir); err != nil {
		panic(err)
	}
	b, err := New(o.Config)
	if err != nil {
		panic(err)
	}
	if _, err := b.Start(context.Background(), o.ID, keyed(o.Spec)); err != nil {
		panic(err)
	}
	fmt.Println("started")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// keyed adds what a spec's JSON leaves out.
func keyed(s backend.Spec) backend.Spec {
	s.PoolKeys = []backend.PoolKey{{ID: 1, Key: make([]byte, wire.KeySize)}}
	s.Lake.Password = "canary-password"
	return s
}

func poolKeyring(t *testing.T) *wire.Keyring {
	t.Helper()
	k, err := wire.NewKeyring(wire.Key{ID: 1, Key: make([]byte, wire.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// testUIDs are apart from the default, whose users other tests run processes of.
const testUIDs = 71000

// place is a set of directories with one database.
type place struct {
	config   Config
	database string
}

func newPlace(t *testing.T) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "qod") // not t.TempDir: sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := place{database: uuid.NewString(), config: Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		DataRoot: filepath.Join(dir, "data"), Binary: self, UIDBase: testUIDs,
	}}
	t.Cleanup(func() { p.stopAll(t) })
	if _, err := p.open(t).makeData(t.Context(), p.database); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) open(t *testing.T) *Backend {
	t.Helper()
	b, err := New(p.config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (p place) spec(behaviour string) backend.Spec {
	return keyed(backend.Spec{
		PoolID: "1f7c9e9a-6f0e-4b0e-9a57-0b0c7d2e6b11", Role: backend.Dual, MemoryBytes: 1 << 28, Threads: 1,
		Lake: backend.Lake{Name: "sales", DatabaseID: p.database, Database: behaviour},
	})
}

// stopAll ends what a test started, whether or not the Backend still finds it.
func (p place) stopAll(t *testing.T) {
	b := p.open(t)
	nodes, err := b.List(context.Background())
	if err != nil {
		t.Error(err)
	}
	for _, n := range nodes {
		if err := b.Stop(context.Background(), n.ID, 0); err != nil {
			t.Error(err)
		}
	}
}

func (p place) startElsewhere(t *testing.T, id string, spec backend.Spec) {
	t.Helper()
	cmd := exec.Command(p.config.Binary, "starter")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(order{p.config, id, spec}); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatalf("the starter did not start: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

// waiter is a process that is not a node, whatever it says.
func waiter(t *testing.T, args ...string) process {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: path, Args: append([]string{"waiter"}, args...), Env: []string{"QOD_TEST_WAIT=1"}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // a test that fails may have killed it
	})
	p, _, err := lookup(cmd.Process.Pid)
	if err != nil {
		t.Fatal("the waiter is not there")
	}
	return p
}

// forge leaves records that claim a foreign process in every way they can be wrong.
func (p place) forge(t *testing.T) (ids []string, untouched func() bool) {
	b := p.open(t)
	innocent := waiter(t)
	var foreign []process
	forge := func(make func(id string) process) {
		id := uuid.NewString()
		if err := os.MkdirAll(b.nodeDir(id), 0o711); err != nil {
			t.Fatal(err)
		}
		r := record{ID: id, PoolID: "p", Role: backend.Dual, Endpoint: b.endpoint(id), Process: make(id)}
		if err := b.writeRecord(r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	namesake := func(id string) process {
		n := waiter(t, nodeArguments(id)[1:]...)
		foreign = append(foreign, n)
		return n
	}
	forge(func(string) process { return innocent })
	forge(func(string) process {
		return process{PID: innocent.PID, Start: innocent.Start - 1, Boot: innocent.Boot}
	})
	forge(func(id string) process { n := namesake(id); n.Start--; return n })
	forge(func(id string) process { n := namesake(id); n.Boot = "another"; return n })
	forge(func(id string) process { namesake(id); return process{} })
	foreign = append(foreign, innocent)
	return ids, func() bool {
		for _, p := range foreign {
			if now, alive, err := lookup(p.PID); err != nil || !alive || now != p {
				return false
			}
		}
		return true
	}
}

func alive(_ *testing.T, n backend.Node) bool {
	_, alive, err := lookup(n.PID)
	return err == nil && alive
}

func await(t *testing.T, n backend.Node) {
	t.Helper()
	conn, err := wire.Dial(n.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, err := wire.NewClient(conn, poolKeyring(t)).Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s.ID != n.ID || s.PID != n.PID || s.SpecHash != n.SpecHash {
		t.Errorf("another node answers: %+v", s)
	}
}

func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.World {
		p := newPlace(t)
		return backendtest.World{
			Open:           func(t *testing.T) backend.Backend { return p.open(t) },
			Spec:           func(*testing.T) backend.Spec { return p.spec("") },
			Stubborn:       func(*testing.T) backend.Spec { return p.spec(fakenode.Stubborn) },
			StartElsewhere: p.startElsewhere,
			Await:          await,
			Kill: func(t *testing.T, n backend.Node) {
				if err := syscall.Kill(n.PID, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			},
			Alive:     alive,
			Forgeries: p.forge,
		}
	})
}
