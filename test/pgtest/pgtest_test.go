package pgtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestDatabaseIsFreshAndGoesAfterTheTest(t *testing.T) {
	ctx := t.Context()
	var name string
	t.Run("use", func(t *testing.T) {
		conn, err := pgx.Connect(ctx, pgtest.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(ctx, "SELECT current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
		// The connection stays open: it must not keep the database from being dropped.
	})
	conn, err := pgx.Connect(ctx, pgtest.Server(t).URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var there bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if there {
		t.Errorf("database %s is still there", name)
	}
}

// TestKilledBinaryLeavesNothing runs this binary again, without the directory of this one, and kills it.
func TestKilledBinaryLeavesNothing(t *testing.T) {
	if os.Getenv("QOD_PGTEST_VICTIM") != "" {
		conn := pgtest.Server(t)
		if _, err := os.Stdout.WriteString("DIR " + filepath.Dir(filepath.Dir(conn.Host)) + "\n"); err != nil {
			t.Fatal(err)
		}
		<-t.Context().Done()
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	victim := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledBinaryLeavesNothing$")
	victim.Env = append(os.Environ(), "QOD_PGTEST_DIR=", "QOD_PGTEST_VICTIM=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "DIR ")
	if !ok {
		t.Fatalf("victim says %q", line[:n])
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatal(err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s is still there", dir)
		case <-tick.C:
		}
	}
}
