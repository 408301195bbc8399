package node

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

func TestDrain(t *testing.T) {
	n := startNode(t, newLake(t))
	c, other, m := n.client("s1"), n.client("s2"), n.manager()
	c.exec("CREATE TABLE t (i INTEGER)")
	c.exec("BEGIN")
	ticket, err := other.Execute(t.Context(), "SELECT 42")
	if err != nil {
		t.Fatal(err)
	}
	var s wire.Status
	if err := m.do(wire.DrainAction, nil, &s); err != nil || !s.Draining {
		t.Fatalf("drain: %+v, %v", s, err)
	}
	_, err = other.tryQuery("SELECT 1")
	other.wantCode(err, codes.Unavailable, wire.Draining)
	if rows, err := other.rows(ticket); err != nil || rows[0][0] != "42" {
		t.Errorf("a result that was promised: %v, %v", rows, err)
	}
	c.exec("INSERT INTO t VALUES (1)")
	n.stop()
	c.exec("INSERT INTO t VALUES (2)") // the transaction may end
	c.query("COMMIT")
	select {
	case err := <-n.done:
		n.done <- err
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the node does not stop although nothing is left to do")
	}
}

func TestDrainLimit(t *testing.T) {
	n := startNode(t, newLake(t), func(c *wire.NodeConfig) { c.DrainLimit = 200 * time.Millisecond })
	c, m := n.client("s1"), n.manager()
	failed := make(chan error, 1)
	go func() {
		_, err := c.tryQuery(slow)
		failed <- err
	}()
	eventually(t, "the statement", func() bool { return m.status().InFlight == 1 })
	start := time.Now()
	n.stop()
	if err := <-n.done; err != nil {
		t.Error(err)
	}
	n.done <- nil
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if err := <-failed; err == nil {
		t.Error("the statement succeeded")
	}
}

func TestStartFails(t *testing.T) {
	lake := newLake(t)
	cut, err := os.MkdirTemp("", "qodx")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(cut)
	for _, name := range []string{"ducklake", "postgres_scanner"} {
		path := ExtensionPath(cut, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("not an extension"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	absent := lake
	absent.Database = "no_such_database"
	tests := map[string]struct {
		cfg  wire.NodeConfig
		want string
	}{
		"no extensions":      {wire.NodeConfig{Version: wire.Version, Lake: lake, ExtensionDir: t.TempDir()}, "--extensions-from"},
		"foreign extensions": {wire.NodeConfig{Version: wire.Version, Lake: lake, ExtensionDir: cut}, "not the file this qod knows"},
		"newer version":      {wire.NodeConfig{Version: wire.Version + 1, Lake: lake, ExtensionDir: extensionDir(t)}, "version"},
		"no database":        {wire.NodeConfig{Version: wire.Version, Lake: absent, ExtensionDir: extensionDir(t)}, "no_such_database"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("unix", filepath.Join(cut, strings.ReplaceAll(name, " ", "")))
			if err != nil {
				t.Fatal(err)
			}
			err = Run(t.Context(), Config{Node: test.cfg, Listener: listener, Log: quiet()})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %q", err, test.want)
			}
			if strings.Contains(name, "extensions") && !errors.Is(err, ErrNoExtension) {
				t.Errorf("error %v is not ErrNoExtension", err)
			}
		})
	}
}

func TestNodeDoesNotCreateALake(t *testing.T) {
	lake := newLake(t)
	fresh := lake
	fresh.Database = "template1"
	_, err := openLake(t.Context(), wire.NodeConfig{Lake: fresh, ExtensionDir: extensionDir(t)})
	if err == nil || !strings.Contains(err.Error(), "explicitly disabled") {
		t.Errorf("error is %v", err)
	}
}

func TestInitLakeAgain(t *testing.T) {
	lake := newLake(t)
	n := startNode(t, lake)
	n.client("s1").exec("CREATE TABLE t AS SELECT 1 AS i")
	lake.DefaultSchema = "app"
	if err := InitLake(t.Context(), lakeTask(t, lake), quiet()); err != nil {
		t.Fatal(err)
	}
	if got := n.client("s2").one("SELECT i FROM main.t"); got != "1" {
		t.Errorf("the lake has %s", got)
	}
	if got := startNode(t, lake).client("s1").one("SELECT current_schema()"); got != "app" {
		t.Errorf("the default schema is %s", got)
	}
}

func TestLoadTPCH(t *testing.T) {
	lake := newLake(t)
	task := lakeTask(t, lake)
	task.ScaleFactor, task.Schema = 0.01, "tpch"
	first, err := LoadTPCH(t.Context(), task, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if first.Already || first.Schema != "tpch" || len(first.Tables) != 8 {
		t.Errorf("first: %+v", first)
	}
	c := startNode(t, lake).client("s1")
	for _, table := range first.Tables {
		if got := c.query("SELECT count(*) = " + strconv.FormatInt(table.Rows, 10) + " FROM tpch." + table.Name); got[0][0] != "true" || table.Rows == 0 {
			t.Errorf("%s has not %d rows", table.Name, table.Rows)
		}
	}
	again, err := LoadTPCH(t.Context(), task, quiet())
	if err != nil || !again.Already {
		t.Errorf("again: %+v, %v", again, err)
	}
	c.exec("DELETE FROM tpch.region WHERE r_regionkey = 0")
	if _, err := LoadTPCH(t.Context(), task, quiet()); !errors.Is(err, ErrTableExists) {
		t.Errorf("over other rows: %v", err)
	}
	c.exec("DROP TABLE tpch.region")
	if _, err := LoadTPCH(t.Context(), task, quiet()); !errors.Is(err, ErrTableExists) {
		t.Errorf("over some of the tables: %v", err)
	}
}

func TestDeafStatementMakesTheNodeFatal(t *testing.T) {
	r := newRunning()
	x, finish := r.begin(context.Background(), 0, "s1", "q1")
	defer finish()
	now := time.Now()
	if got := r.deaf(now.Add(2 * deafAfter)); got != "" {
		t.Errorf("a statement that nobody interrupted is deaf: %s", got)
	}
	x.end(errStopping)
	if got := r.deaf(now.Add(2 * deafAfter)); got != "" {
		t.Errorf("a statement outside the engine, whose client takes no rows, is deaf: %s", got)
	}
	leave := executionOf(context.WithoutCancel(x.ctx)).inEngine()
	if got := r.deaf(now.Add(deafAfter / 2)); got != "" {
		t.Errorf("deaf too soon: %s", got)
	}
	if got := r.deaf(now.Add(2 * deafAfter)); got != "q1" {
		t.Errorf("deaf is %q", got)
	}
	leave()
	if got := r.deaf(now.Add(2 * deafAfter)); got != "" {
		t.Errorf("deaf after the call returned: %s", got)
	}
}
