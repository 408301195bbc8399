package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/fakenode"
)

func (p place) task(database, behaviour string) wire.LakeTask {
	return wire.LakeTask{Lake: wire.Lake{
		Name: "sales", DatabaseID: database, Database: behaviour, Password: "canary's password",
	}}
}

func TestInitLake(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	database := uuid.NewString()
	for range 2 {
		if err := b.InitLake(t.Context(), p.task(database, "")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.DataPath(database), "init-lake")); err != nil {
		t.Error(err)
	}
	out, err := b.LoadTPCH(t.Context(), p.task(database, ""))
	if err != nil {
		t.Fatal(err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		o, err := b.dataOwner(database)
		if err != nil {
			t.Fatal(err)
		}
		uid = int(o)
	}
	if want := fmt.Sprintf("uid %d,", uid); !strings.HasPrefix(out, want) {
		t.Errorf("the task says %q, want %q", out, want)
	}
	if left, err := os.ReadDir(filepath.Join(p.config.StateDir, "tasks")); err != nil || len(left) != 0 {
		t.Errorf("tasks left %v, %v", left, err)
	}
}

// What a killed runner left goes with the next task; what a running one works in stays.
func TestRemainsOfTasksAreSwept(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	make := func() (string, *os.File) {
		t.Helper()
		dir, lock, err := b.makeTaskDir(t.Context(), self)
		if err != nil {
			t.Fatal(err)
		}
		return dir, lock
	}
	left, lock := make()
	held, other := make()
	defer other.Close()
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.InitLake(t.Context(), p.task(p.database, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("remains are still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(held, "tmp")); err != nil {
		t.Errorf("what is in use was removed: %v", err)
	}
}

func TestTaskErrorIsScrubbed(t *testing.T) {
	p := newPlace(t)
	err := p.open(t).InitLake(t.Context(), p.task(p.database, fakenode.Crash))
	if err == nil || strings.Contains(err.Error(), "canary") ||
		!strings.Contains(err.Error(), "cannot log in with password [hidden]") {
		t.Errorf("error %v", err)
	}
}

func TestTaskRefusesAForeignPath(t *testing.T) {
	p := newPlace(t)
	task := p.task(p.database, "")
	task.Lake.DataPath = "/etc"
	if err := p.open(t).InitLake(t.Context(), task); err == nil {
		t.Error("a task wrote outside its database")
	}
}

func TestRemoveData(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	exists := func(want bool) {
		t.Helper()
		if got, err := b.DataExists(p.database); err != nil || got != want {
			t.Errorf("data exists: %v, %v; want %v", got, err, want)
		}
	}
	exists(true)
	fresh := b.spare(p.database, "new")
	if err := os.MkdirAll(filepath.Join(fresh, filesName), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.RemoveData(t.Context(), p.database); err != nil {
			t.Fatal(err)
		}
		exists(false)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a making cut short has left is still there: %v", err)
	}
	unmarked, wrong := uuid.NewString(), uuid.NewString()
	for _, id := range []string{unmarked, wrong} {
		if err := os.MkdirAll(b.DataPath(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.dataDir(wrong), markerName), []byte(unmarked), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{unmarked, wrong} {
		if err := b.RemoveData(t.Context(), id); !errors.Is(err, backend.ErrNotOurs) {
			t.Errorf("remove a directory that is not ours: %v", err)
		}
		if _, err := os.Stat(b.DataPath(id)); err != nil {
			t.Errorf("it was removed: %v", err)
		}
		if err := b.InitLake(t.Context(), p.task(id, "")); !errors.Is(err, backend.ErrNotOurs) {
			t.Errorf("make a lake in a directory that is not ours: %v", err)
		}
	}
}

func TestRemoveDataDoesNotFollowLinks(t *testing.T) {
	p := newPlace(t)
	b := p.open(t)
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(b.DataPath(p.database), "link")); err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveData(t.Context(), p.database); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root gives users to databases")
	}
}

func TestDatabasesHaveUsersOfTheirOwn(t *testing.T) {
	needRoot(t)
	p := newPlace(t)
	b := p.open(t)
	seen := map[owner]bool{}
	for range 3 {
		o, err := b.makeData(t.Context(), uuid.NewString())
		if err != nil {
			t.Fatal(err)
		}
		if o < testUIDs || o >= testUIDs+uidCount || seen[o] {
			t.Errorf("owner %d, after %v", o, seen)
		}
		seen[o] = true
	}
	first, err := b.dataOwner(p.database)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.RemoveData(t.Context(), p.database); err != nil {
		t.Fatal(err)
	}
	if o, err := b.makeData(t.Context(), uuid.NewString()); err != nil || o != first {
		t.Errorf("owner %d, %v; want the free one %d", o, err, first)
	}
}

func TestNodeRunsUnderTheDatabasesUser(t *testing.T) {
	needRoot(t)
	p := newPlace(t)
	b := p.open(t)
	n, err := b.Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	await(t, n)
	o, err := b.dataOwner(p.database)
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID))
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("\t%d\t%d\t%d\t%d\n", o, o, o, o)
	for _, want := range []string{"Uid:" + id, "Gid:" + id, "Groups:\t \n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	other := uuid.NewString()
	if _, err := b.makeData(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		b.recordPath(n.ID), b.logPath(n.ID), b.DataPath(other), filepath.Join(b.dataDir(p.database), markerName),
		filepath.Join(p.config.StateDir, "nodes"), b.socketDir(),
	} {
		cmd := exec.Command("/bin/cat", path)
		if info, err := os.Stat(path); err != nil {
			t.Fatal(err)
		} else if info.IsDir() {
			cmd = exec.Command("/bin/ls", path)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(o), Gid: uint32(o)}}
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("the node's user reads %s: %s", path, out)
		}
	}
}

func TestBinaryIsCopied(t *testing.T) {
	needRoot(t)
	p := newPlace(t)
	private := filepath.Join(t.TempDir(), "qod")
	raw, err := os.ReadFile(p.config.Binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(private, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	p.config.Binary = private
	n, err := p.open(t).Start(t.Context(), uuid.NewString(), p.spec(""))
	if err != nil {
		t.Fatal(err)
	}
	await(t, n)
	bin := filepath.Join(p.config.StateDir, "bin")
	stale := filepath.Join(bin, "qod-0123456789abcdef")
	if err := os.WriteFile(stale, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * spareAge)
	entries, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Chtimes(filepath.Join(bin, e.Name()), long, long); err != nil {
			t.Fatal(err)
		}
	}
	p.config.Binary = "/bin/true" // an upgrade: the old copy still runs a node
	if _, err := p.open(t).executable(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(bin); err != nil || len(entries) != 2 {
		t.Errorf("copies %v, %v; want the one in use and the new one", entries, err)
	}
	b := p.open(t)
	for range 2 { // the second after the state directory was purged
		path, err := b.executable()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(bin); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStateDirectoryThatNodesCannotEnter(t *testing.T) {
	needRoot(t)
	p := newPlace(t)
	dir := filepath.Dir(p.config.StateDir)
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := p.open(t).Start(t.Context(), uuid.NewString(), p.spec(""))
	if err == nil || !strings.Contains(err.Error(), "chmod o+x "+dir) {
		t.Errorf("error %v", err)
	}
}
