package embedded_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/store/embedded"
)

func TestSecondStartAdopts(t *testing.T) {
	cfg := place(t)
	first := start(t, cfg)
	second := start(t, cfg)
	if first.PID() != second.PID() {
		t.Errorf("second start has pid %d, the first %d", second.PID(), first.PID())
	}
	found, ok, err := embedded.Find(cfg)
	if err != nil || !ok || found.PID() != first.PID() {
		t.Errorf("Find = %v, %v, %v", found, ok, err)
	}
	stop(t, second)
	if _, ok, err := embedded.Find(cfg); ok || err != nil {
		t.Errorf("Find after Stop = %v, %v", ok, err)
	}
	stop(t, first)
}

func TestConcurrentStartsMakeOneServer(t *testing.T) {
	cfg := place(t)
	pids := make([]int, 4)
	errs := make([]error, len(pids))
	var wg sync.WaitGroup
	for i := range pids {
		wg.Go(func() {
			server, err := embedded.Start(t.Context(), cfg)
			if errs[i] = err; err == nil {
				pids[i] = server.PID()
			}
		})
	}
	_, pid := helper(t, cfg)
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{pid, pid, pid, pid}, pids); diff != "" {
		t.Errorf("pids (-helper +here):\n%s", diff)
	}
}

func TestReadersMakeNothing(t *testing.T) {
	cfg := place(t)
	if _, ok, err := embedded.Find(cfg); ok || err != nil {
		t.Errorf("Find = %v, %v", ok, err)
	}
	if embedded.Exists(cfg) {
		t.Error("Exists is true")
	}
	existing := cfg
	existing.Existing = true
	if _, err := embedded.Start(t.Context(), existing); !errors.Is(err, embedded.ErrAbsent) {
		t.Errorf("Start = %v, want ErrAbsent", err)
	}
	entries, err := os.ReadDir(filepath.Dir(cfg.StateDir))
	if err != nil || len(entries) != 0 {
		t.Errorf("there is %v, %v", entries, err)
	}
	stop(t, start(t, cfg))
	if !embedded.Exists(existing) {
		t.Error("Exists is false")
	}
	start(t, existing)
}

func TestServerOutlivesItsStarter(t *testing.T) {
	cfg := place(t)
	starter, pid := helper(t, cfg)
	sid, err := session(pid)
	if err != nil || sid != pid {
		t.Errorf("session of %d is %d, %v", pid, sid, err)
	}
	kill(t, starter.Process.Pid)
	_ = starter.Wait()
	if server := start(t, cfg); server.PID() != pid {
		t.Errorf("pid = %d, want the survivor %d", server.PID(), pid)
	}
}

func session(pid int) (int, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(raw[strings.LastIndex(string(raw), ")")+1:]))
	return strconv.Atoi(fields[3])
}

func TestRecoversAfterKill(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	query(t, server, "CREATE TABLE kept AS SELECT 42 AS n")
	kill(t, server.PID())
	await(t, "the postmaster ends", func() bool { return !alive(server.PID()) })
	again := start(t, cfg)
	if again.PID() == server.PID() {
		t.Errorf("pid is still %d", again.PID())
	}
	if got := query(t, again, "SELECT n FROM kept"); got != "42" {
		t.Errorf("kept = %q", got)
	}
}

// TestForeignProcess puts pids of processes that are not ours where a postmaster's would be: Start must
// not adopt them, Stop not end them, and the server must start nevertheless.
func TestForeignProcess(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	stop(t, server)
	foreign := exec.Command("sleep", "600")
	foreign.SysProcAttr = serverUser(t, cfg) // as the server's user, so that its own check sees the pid as alive
	if err := foreign.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = foreign.Process.Kill(); _ = foreign.Wait() })
	pid := strconv.Itoa(foreign.Process.Pid)
	data := filepath.Join(cfg.StateDir, "postgres", "data")
	lines := []string{pid, data, "1700000000", "5432", server.Host, "", "  1  2", "ready   ", ""}
	plant(t, filepath.Join(data, "postmaster.pid"), strings.Join(lines, "\n"))
	plant(t, filepath.Join(server.Host, ".s.PGSQL.5432.lock"), strings.Join(lines, "\n"))

	if _, ok, err := embedded.Find(cfg); ok || err != nil {
		t.Fatalf("Find = %v, %v", ok, err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := start(t, cfg)
	if again.PID() == foreign.Process.Pid {
		t.Error("the foreign process was adopted")
	}
	if !alive(foreign.Process.Pid) {
		t.Error("the foreign process was ended")
	}
}

func plant(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func serverUser(t *testing.T, cfg embedded.Config) *syscall.SysProcAttr {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(filepath.Join(cfg.StateDir, "postgres", "data"))
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	if stat.Uid == 0 {
		t.Fatal("the data belongs to root")
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
}

func TestOtherClusterIsRefused(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	id := filepath.Join(cfg.StateDir, "postgres.id")
	mine, err := os.ReadFile(id)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, id, "0123456789abcdef\n")
	for name, do := range map[string]func() error{
		"Start":  func() error { _, err := embedded.Start(t.Context(), cfg); return err },
		"Find":   func() error { _, _, err := embedded.Find(cfg); return err },
		"Remove": func() error { return embedded.Remove(cfg) },
	} {
		if err := do(); !errors.Is(err, embedded.ErrNotOurs) {
			t.Errorf("%s = %v, want ErrNotOurs", name, err)
		}
	}
	if !alive(server.PID()) {
		t.Error("the server was ended")
	}
	plant(t, id, string(mine))
}

func TestPasswordIsRequired(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	const authenticationSASL = 10
	for _, user := range []string{server.User, "postgres", "nobody-at-all"} {
		if kind, method := greeting(t, server, user, server.Database); kind != 'R' || method != authenticationSASL {
			t.Errorf("%s is answered %c %d, want R %d", user, kind, method, authenticationSASL)
		}
	}
	if out, err := psql(t, server, "wrong", "SELECT 1"); err == nil || !strings.Contains(out, "password authentication failed") {
		t.Errorf("wrong password: %v: %s", err, out)
	}
	if got := query(t, server, "SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules"); got != "scram-sha-256" {
		t.Errorf("methods are %q", got)
	}
	open := query(t, server, "SELECT count(*) FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) AS a "+
		"WHERE a.grantee = 0 AND datname <> 'template0'")
	if open != "0" {
		t.Errorf("PUBLIC has %s rights on databases", open)
	}
}

func TestNothingSecretShows(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	password, err := server.Password()
	if err != nil {
		t.Fatal(err)
	}
	const canary = "canary-in-statement"
	if _, err := psql(t, server, password, "SELECT '"+canary+"' FROM missing"); err == nil {
		t.Fatal("the statement works")
	}
	if _, err := psql(t, server, password, "SELECT '"+canary+"'::int"); err == nil {
		t.Fatal("the statement works")
	}
	log, err := os.ReadFile(filepath.Join(cfg.StateDir, "postgres.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "missing") {
		t.Errorf("the log lacks the error: %s", log)
	}
	if strings.Contains(string(log), "SELECT") || strings.Contains(string(log), password) {
		t.Errorf("the log shows a statement or the password: %s", log)
	}
	args, err := os.ReadFile("/proc/" + strconv.Itoa(server.PID()) + "/cmdline")
	if err != nil || strings.Contains(string(args), password) {
		t.Errorf("the arguments show the password: %s, %v", args, err)
	}
	for name, want := range map[string]fs.FileMode{
		"postgres.password": 0o600, "postgres.log": 0o600, "postgres.id": 0o600, "postgres/data": 0o700,
	} {
		info, err := os.Stat(filepath.Join(cfg.StateDir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(cfg.StateDir, "postgres", "*.password*")); err != nil || len(left) != 0 {
		t.Errorf("initdb's password is left: %v, %v", left, err)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	cfg := place(t)
	server := start(t, cfg)
	if err := embedded.Remove(cfg); err == nil {
		t.Fatal("a running server was removed")
	}
	stop(t, server)
	for range 2 {
		if err := embedded.Remove(cfg); err != nil {
			t.Fatal(err)
		}
	}
	if entries, err := os.ReadDir(cfg.StateDir); err != nil || len(entries) != 0 {
		t.Errorf("left in the state directory: %v, %v", entries, err)
	}
	if _, err := os.Stat(cfg.RunDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("run directory: %v", err)
	}
}

// TestHalfMadeCluster dies in initdb; the next start makes the cluster anew.
func TestHalfMadeCluster(t *testing.T) {
	cfg := place(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := embedded.Start(ctx, cfg); done <- err }()
	await(t, "initdb writes", func() bool {
		_, err := os.Stat(filepath.Join(cfg.StateDir, "postgres", "data.tmp", "base"))
		return err == nil || len(done) > 0
	})
	cancel()
	if err := <-done; err == nil {
		t.Fatal("the cancelled start works")
	}
	if embedded.Exists(cfg) {
		t.Error("a half-made cluster exists")
	}
	server := start(t, cfg)
	if got := query(t, server, "SELECT current_database()"); got != server.Database {
		t.Errorf("database = %q", got)
	}
}
