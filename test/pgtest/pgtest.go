// Package pgtest gives tests a real Postgres: one private server per test binary, started by the first
// test that asks for it, and a database of its own for each test. It stops the server and removes all
// of it when the test binary ends, however that ends.
//
// It does not hold connections for tests: they connect with the URL or the Conn they get.
package pgtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store/embedded"
)

const (
	// dirVariable names the server's directory to this process and to those it starts.
	dirVariable = "QOD_PGTEST_DIR"
	// sweepVariable makes a process the one that removes the server, once its standard input ends.
	sweepVariable = "QOD_PGTEST_SWEEP"
	binVariable   = "QOD_TEST_POSTGRES_BIN"

	patience = 60 * time.Second
)

// Conn is how to reach the server as its superuser.
type Conn struct {
	Host     string // the directory of its socket
	Port     int
	User     string
	Password string
}

// URL returns the URL of a database on the server.
func (c Conn) URL(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(c.User, c.Password), Path: "/" + database,
		RawQuery: url.Values{"host": {c.Host}, "port": {strconv.Itoa(c.Port)}}.Encode(),
	}
	return u.String()
}

// Main runs the tests of a package and returns the exit code for os.Exit. TestMain calls it first of
// all. m is a *testing.M or the like.
func Main(m interface{ Run() int }) int {
	if dir := os.Getenv(sweepVariable); dir != "" {
		return sweep(dir)
	}
	if os.Getenv(dirVariable) != "" {
		return m.Run() // started by a test, whose server it shares
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// run hands the end of the server to a process of its own, which learns from the end of its input that
// this one is gone: by exit, panic, timeout or kill.
func run(m interface{ Run() int }) (int, error) {
	dir, err := makeDir()
	if err != nil {
		return 1, err
	}
	self, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find test binary: %w", err)
	}
	sweeper := exec.Command(self)
	sweeper.Env = append(os.Environ(), sweepVariable+"="+dir)
	sweeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	alive, err := sweeper.StdinPipe()
	if err != nil {
		return 1, fmt.Errorf("make pipe: %w", err)
	}
	if err := sweeper.Start(); err != nil {
		return 1, fmt.Errorf("start sweeper: %w", err)
	}
	if err := os.Setenv(dirVariable, dir); err != nil {
		return 1, err
	}
	code := m.Run()
	if err := alive.Close(); err != nil {
		return code, fmt.Errorf("tell sweeper: %w", err)
	}
	if err := sweeper.Wait(); err != nil {
		return code, fmt.Errorf("remove Postgres in %s: %w", dir, err)
	}
	return code, nil
}

// makeDir makes a directory short enough for a socket, which the server's user may pass through.
func makeDir() (string, error) {
	parent := os.TempDir()
	if len(parent) > 40 {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "qodpg")
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	return dir, nil
}

func sweep(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := remove(ctx, dir)
	if err != nil {
		return 1
	}
	return 0
}

// remove ends the server, also one whose start its caller did not live to see, and deletes all of it.
func remove(ctx context.Context, dir string) error {
	cfg := config(dir)
	if embedded.Exists(cfg) {
		server, running, err := embedded.Find(cfg)
		if err == nil && !running {
			cfg.Existing = true
			server, err = embedded.Start(ctx, cfg)
		}
		if err == nil {
			err = server.Stop(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(embedded.Remove(cfg), os.RemoveAll(dir))
}

func config(dir string) embedded.Config {
	return embedded.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		BinDir: os.Getenv(binVariable), NoSync: true,
	}
}

// Server returns the test binary's server, starting it if need be.
func Server(t testing.TB) Conn {
	t.Helper()
	dir := os.Getenv(dirVariable)
	if dir == "" {
		t.Fatal("pgtest: TestMain does not call pgtest.Main")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	server, err := embedded.Start(ctx, config(dir))
	if err != nil {
		t.Fatalf("pgtest: %v (%s names a directory of Postgres programs)", err, binVariable)
	}
	password, err := server.Password()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return Conn{Host: server.Host, Port: server.Port, User: server.User, Password: password}
}

// LogFile returns the path of the server's log, for tests of what must not be in it.
func LogFile(t testing.TB) string {
	t.Helper()
	return filepath.Join(config(os.Getenv(dirVariable)).StateDir, "postgres.log")
}

// Database makes an empty database and returns its URL as the superuser. It is dropped after the test,
// with the sessions that are still in it.
func Database(t testing.TB) string {
	t.Helper()
	server := Server(t)
	raw := make([]byte, 8)
	rand.Read(raw)
	name := "test_" + hex.EncodeToString(raw)
	if err := server.exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatalf("pgtest: make database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("pgtest: drop database: %v", err)
		}
	})
	return server.URL(name)
}

func (c Conn) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, c.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
