package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/store/embedded"
)

const (
	helperVariable = "QOD_TEST_EMBEDDED_HELPER" // makes this binary start a server and wait
	binVariable    = "QOD_TEST_POSTGRES_BIN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		server, err := embedded.Start(context.Background(), at(dir))
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(server.PID())
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func at(dir string) embedded.Config {
	return embedded.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		BinDir: os.Getenv(binVariable), NoSync: true,
	}
}

// place returns the Config of a fresh installation. Its directory is short, as sockets need it, and
// open to the server's user, as directories of testing are not.
func place(t *testing.T) embedded.Config {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "qodem")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	cfg := at(dir)
	t.Cleanup(func() {
		if server, ok, err := embedded.Find(cfg); err == nil && ok {
			if err := server.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := embedded.Remove(cfg); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

func start(t *testing.T, cfg embedded.Config) *embedded.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := embedded.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func stop(t *testing.T, server *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, "the postmaster ends", func() bool { return !alive(server.PID()) })
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline.C:
			t.Fatalf("in vain: %s", what)
		case <-tick.C:
		}
	}
}

// alive says whether the process runs; a zombie does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(raw, []byte(") Z "))
}

// helper runs this binary as another process that starts the server, and returns the server's pid.
func helper(t *testing.T, cfg embedded.Config) (process *exec.Cmd, pid int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"="+filepath.Dir(cfg.StateDir))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("helper: %s", line)
	}
	return cmd, pid
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// psql runs a query as the superuser with the password given, and returns what it prints.
func psql(t *testing.T, server *embedded.Server, password, query string) (string, error) {
	t.Helper()
	program := "psql"
	if dir := os.Getenv(binVariable); dir != "" {
		program = filepath.Join(dir, "psql")
	}
	passfile := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(passfile, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--no-password", "-XAt", "-v", "ON_ERROR_STOP=1",
		"-h", server.Host, "-p", strconv.Itoa(server.Port), "-U", server.User, "-c", query, server.Database)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGPASSFILE=" + passfile, "HOME=/nonexistent"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func query(t *testing.T, server *embedded.Server, text string) string {
	t.Helper()
	password, err := server.Password()
	if err != nil {
		t.Fatal(err)
	}
	out, err := psql(t, server, password, text)
	if err != nil {
		t.Fatalf("%s: %v: %s", text, err, out)
	}
	return out
}

// greeting is the server's first answer to a client: the message's type and the number that follows.
func greeting(t *testing.T, server *embedded.Server, user, database string) (byte, uint32) {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(server.Host, fmt.Sprintf(".s.PGSQL.%d", server.Port)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	body := "user\x00" + user + "\x00database\x00" + database + "\x00\x00"
	packet := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	packet = binary.BigEndian.AppendUint32(packet, 3<<16)
	if _, err := conn.Write(append(packet, body...)); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 9)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return answer[0], binary.BigEndian.Uint32(answer[5:])
}
