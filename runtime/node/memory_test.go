package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// small is the memory of a node whose bounds are soon reached: DuckDB's limit is 252 MiB, the process's 764
// MiB, and at 1.25 GiB it ends.
const small = 336 << 20

// heavy makes that many texts of 100 kB in one vector, none of which DuckDB counts.
func heavy(texts int) string {
	return fmt.Sprintf("SELECT len(list_transform(range(n), lambda i: repeat('x', (100000 + i)::BIGINT))) FROM range(%d, %d) r(n)",
		texts, texts+1)
}

// heavyFirst makes those texts and then goes on for ever, in steps between which an interrupt is heard.
func heavyFirst(texts int) string {
	return fmt.Sprintf("SELECT sum(n) FROM (%s) h(n), range(1000000000000)", heavy(texts))
}

// childNode is in the environment of a test binary that is to be a node instead.
const childNode = "QOD_TEST_CHILD_NODE"

// outgrownStatus is the exit status of such a node that has outgrown its memory.
const outgrownStatus = 44

// beNode runs a node, with configuration and listener as a manager gives them, until it outgrows or is killed.
func beNode() int {
	var cfg wire.NodeConfig
	if err := json.NewDecoder(os.NewFile(3, "configuration")).Decode(&cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	listener, err := net.FileListener(os.NewFile(4, "listener"))
	if err == nil {
		err = Volunteer()
	}
	if err == nil {
		err = Run(context.Background(), Config{Node: cfg, Listener: listener, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, ErrOutgrown) {
		return outgrownStatus
	}
	return 1
}

// startChild starts a node in a process of its own. Its end is told by the channel.
func startChild(t *testing.T, lake wire.Lake) (*testNode, *exec.Cmd, <-chan error) {
	t.Helper()
	n := newTestNode(t, lake, func(c *wire.NodeConfig) { c.MemoryBytes = small })
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: n.socket})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	f, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	config, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer config.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childNode+"=1")
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{config, f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-gone
	})
	if err := errors.Join(json.NewEncoder(feed).Encode(n.cfg), feed.Close()); err != nil {
		t.Fatal(err)
	}
	n.manager().waitReady()
	return n, cmd, ended
}

// TestStatementIsEndedForItsMemory makes values that DuckDB does not count, up to what a node stands.
func TestStatementIsEndedForItsMemory(t *testing.T) {
	n, _, ended := startChild(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t AS SELECT range AS i FROM range(10)")
	_, err := c.tryQuery(heavyFirst(7000))
	c.wantCodeOnly(err, codes.ResourceExhausted)
	if got := c.one("SELECT count(*) FROM t"); got != "10" {
		t.Errorf("afterwards the table has %s rows", got)
	}
	if got := c.query(heavy(500)); len(got) != 1 {
		t.Errorf("a statement that takes little gives %v", got)
	}
	if st := n.manager().status(); !st.Ready || st.Fatal != "" {
		t.Errorf("status is %+v", st)
	}
	select {
	case err := <-ended:
		t.Errorf("the node ended: %v", err)
	default:
	}
}

// TestNodeEndsBeforeTheHostIsFull makes more than a node stands, in one call that nothing can interrupt. The
// client is told why, what else runs breaks off, and the process is gone.
func TestNodeEndsBeforeTheHostIsFull(t *testing.T) {
	n, cmd, ended := startChild(t, newLake(t))
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid)); err != nil || string(raw) != "1000\n" {
		t.Errorf("its score for the kernel's killer is %q: %v", raw, err)
	}
	beside := n.client("beside")
	failed := make(chan error, 1)
	go func() {
		_, err := beside.tryQuery("SELECT count(*) FROM range(1000000000000)")
		failed <- err
	}()
	m := n.manager()
	eventually(t, "the statement beside", func() bool { return m.status().InFlight == 1 })
	c := n.client("s1")
	_, err := c.tryQuery(heavy(600_000))
	c.wantCodeOnly(err, codes.ResourceExhausted)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the node does not end")
	}
	if got := cmd.ProcessState.ExitCode(); got != outgrownStatus {
		t.Errorf("exit status is %d, want %d", got, outgrownStatus)
	}
	if err := <-failed; err == nil {
		t.Error("the statement beside does not fail")
	}
}

func TestBounds(t *testing.T) {
	b := boundsOf(1 << 30)
	if b.engine != 768<<20 || b.limit != 1280<<20 || b.most != 1792<<20 {
		t.Fatalf("bounds of 1 GiB are %+v", b)
	}
	if b := boundsOf(16 << 30); b.engine != 12<<30 || b.limit != 16<<30 || b.most != 20<<30 {
		t.Fatalf("bounds of 16 GiB are %+v", b)
	}
}

// lookPurged looks at the memory of a moment, and again after a purge that brings nothing, which only the first look
// above the limit asks for.
func lookPurged(t *testing.T, w *memoryWatch, now time.Time, resident int64) verdict {
	t.Helper()
	first := resident > w.limit && w.before <= w.limit
	v := w.look(now, resident)
	if v.purge != first || first && (v.ended != nil || v.outgrown) {
		t.Errorf("at %d MiB the first look above the limit says %+v", resident>>20, v)
	}
	if v.purge {
		v = w.look(now, resident)
	}
	return v
}

func TestMemoryWatch(t *testing.T) {
	b := boundsOf(1 << 30)
	r := newRunning()
	start := func(id string, inside bool) (*execution, func()) {
		x, finish := r.begin(t.Context(), 0, "s", id)
		if inside {
			x.inEngine()
		}
		return x, finish
	}
	w := memoryWatch{bounds: b, running: r}
	now := time.Now()
	look := func(after time.Duration, resident int64, want string, outgrown bool) verdict {
		t.Helper()
		now = now.Add(after)
		v := lookPurged(t, &w, now, resident)
		got := ""
		if v.ended != nil {
			got = v.ended.ids[0]
		}
		if got != want || v.outgrown != outgrown {
			t.Errorf("at %d MiB %q is ended, outgrown %t; want %q, %t", resident>>20, got, v.outgrown, want, outgrown)
		}
		return v
	}
	_, waits := start("waits", false)
	_, small := start("small", true)
	if v := look(0, 100<<20, "", false); v.pause != lookEvery {
		t.Errorf("pause is %s", v.pause)
	}
	start("heavy", true)
	if v := look(lookEvery, 1000<<20, "", false); v.pause != lookHurry {
		t.Errorf("pause is %s", v.pause)
	}
	small() // so that its share is nobody's
	look(lookHurry, b.limit, "", false)
	_, finish := start("new", true)
	look(lookHurry, b.limit+1, "heavy", false)
	if err := r.interruption("heavy", "s"); !errors.Is(err, errMemory) {
		t.Errorf("heavy was interrupted for: %v", err)
	}
	if err := errors.Join(r.interruption("heavy", "other"), r.interruption("new", "s")); err != nil {
		t.Errorf("another one was interrupted for: %v", err)
	}
	look(obeyWithin-1, b.most, "", false)
	look(0, b.most+1, "", true)
	look(1, b.limit+1, "new", false)
	finish()
	look(relief, b.limit+1, "", false)
	look(relief, b.limit+1, "waits", false)
	waits()
	look(deafAfter, b.limit, "", false)
	if v := look(1, b.limit+1, "", false); v.stuck {
		t.Error("stuck at once")
	}
	if v := look(deafAfter+1, b.limit+1, "", false); !v.stuck {
		t.Error("not stuck above the limit for a minute")
	}
	_, finish = start("late", true)
	look(1, b.most+1, "late", true)
	finish()
	start("later", true)
	look(1, b.limit+1, "", false)
	look(1, b.most+1, "later", true)
}

func TestOfAnInterruptedWriteNothingIsTold(t *testing.T) {
	r := newRunning()
	w := memoryWatch{bounds: boundsOf(1 << 30), running: r, purged: true}
	write, finish, _ := r.beginUnique(t.Context(), 0, "s", "write")
	defer finish()
	if v := w.look(time.Now(), w.most+1); v.ended != write {
		t.Fatal("the write was not ended")
	}
	if err := r.interruption("write", "s"); err != nil || write.ctx.Err() == nil {
		t.Errorf("of a write it is told: %v", err)
	}
}

// What DuckDB has freed is kept by its allocator, and is no longer part of the process after a purge.
func TestPurgeGivesBackWhatIsFreed(t *testing.T) {
	c := startNode(t, newLake(t)).client("s1")
	c.query(heavy(4000))
	before := residentBytes()
	if !purge() {
		t.Fatal("DuckDB's allocator takes no call")
	}
	if after := residentBytes(); before-after < 100<<20 {
		t.Errorf("%d MiB before, %d MiB after it", before>>20, after>>20)
	}
}
