package test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodePIDs returns pid and start time of each node, as the kernel knows them.
func (i *installation) nodePIDs(t testing.TB) []string {
	t.Helper()
	c := i.connect(t, "qod")
	rows, err := c.Query(t.Context(), "SELECT pid FROM qodstate_node ORDER BY pid")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatalf("node process %d: %v", pid, err)
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		out = append(out, fmt.Sprintf("%d started %s", pid, strings.Fields(rest)[19]))
	}
	return out
}

// fixPort makes serve come back where clients look for it.
func (i *installation) fixPort(s serving) {
	for n, v := range i.env {
		if strings.HasPrefix(v, "QOD_FLIGHT_LISTEN=") {
			i.env[n] = "QOD_FLIGHT_LISTEN=" + s.Flight
		}
	}
}

// kill ends a serve as a crash would.
func kill(t testing.TB, s serving) {
	t.Helper()
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "serve is dead", func() bool { return !alive(s.PID) })
}

// What a kill -9 of serve costs: calls in flight. Nodes, sessions, transactions, tokens and the
// certificate stay.
func TestKilledServe(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	i.fixPort(s)
	before := i.nodePIDs(t)
	other := i.login(t, s.Flight, "analyst")
	other.run(t, "CREATE TABLE kept (who VARCHAR, n BIGINT)")

	idle := i.login(t, s.Flight, "loader")
	idle.run(t, "BEGIN")
	idle.run(t, "INSERT INTO kept VALUES ('idle', 1)")

	writing := i.login(t, s.Flight, "loader")
	writing.run(t, "BEGIN")
	wrote := make(chan error, 1)
	go func() {
		_, _, err := writing.query("INSERT INTO kept SELECT 'writing', count(*) FROM range(60000) a, range(60000) b")
		wrote <- err
	}()

	reading := i.login(t, s.Flight, "analyst")
	stream := reading.halfRead(t, "SELECT range FROM range(20000000)")
	defer stream.Release()
	eventually(t, 10*time.Second, "the INSERT is at work", func() bool {
		return i.inFlight(t) >= 2 // the half-read SELECT is the other
	})

	kill(t, s)
	_, _, lost := drain(stream)
	if status.Code(lost) != codes.Unavailable {
		t.Errorf("the half-read SELECT got %v, want UNAVAILABLE", lost)
	}
	if err := <-wrote; status.Code(err) != codes.Unavailable {
		t.Errorf("the INSERT in flight got %v, want UNAVAILABLE", err)
	}
	start := time.Now()
	again := i.serve(t)
	eventually(t, 10*time.Second, "the first answer after the restart", func() bool {
		_, first, err := reading.query("SELECT 42")
		return err == nil && first == "42"
	})
	t.Logf("first answer %s after serve was started, on the old channel with the old token", time.Since(start).Round(time.Millisecond))
	if after := i.nodePIDs(t); !slices.Equal(before, after) {
		t.Errorf("nodes were %v and are %v", before, after)
	}

	idle.run(t, "COMMIT")
	if got := other.value(t, "SELECT count(*) FROM kept WHERE who = 'idle'"); got != "1" {
		t.Errorf("the idle transaction committed %s rows, want 1", got)
	}
	eventually(t, 60*time.Second, "the INSERT's outcome is in its transaction", func() bool {
		_, n, err := writing.query("SELECT max(n) FROM kept WHERE who = 'writing'")
		return err == nil && n == "3600000000"
	})
	writing.run(t, "COMMIT")
	if got := other.value(t, "SELECT count(*) FROM kept WHERE who = 'writing'"); got != "1" {
		t.Errorf("the writing transaction committed %s rows, want 1", got)
	}
	if again.PID == s.PID {
		t.Error("serve was not restarted")
	}
}

// halfRead runs a query and reads its first batch.
func (c *client) halfRead(t testing.TB, sql string) *flight.Reader {
	t.Helper()
	info, err := c.Execute(c.ctx, sql)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.DoGet(c.ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	if !stream.Next() {
		t.Fatal("no first batch", stream.Err())
	}
	return stream
}

// inFlight asks the nodes' status for statements at work.
func (i *installation) inFlight(t testing.TB) int {
	t.Helper()
	total := 0
	for _, line := range strings.Split(i.must(t, "status"), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 6 && (fields[1] == "dual" || fields[1] == "read" || fields[1] == "write") {
			var n int
			if _, err := fmt.Sscan(fields[5], &n); err == nil {
				total += n
			}
		}
	}
	return total
}

// A second serve on the host routes with the same tokens and sessions, never acts, and takes over when
// the first dies.
func TestFollower(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	leader := i.serve(t)
	follower := i.serve(t)
	before := i.nodePIDs(t)

	a := i.login(t, leader.Flight, "loader")
	a.run(t, "CREATE TABLE shared_tx (n BIGINT)")
	a.run(t, "BEGIN")
	a.run(t, "INSERT INTO shared_tx VALUES (1)")
	b := a.as(t, i, follower.Flight)
	for n := 2; n <= 6; n++ {
		use := []*client{a, b}[n%2]
		use.run(t, "INSERT INTO shared_tx VALUES (%d)", n)
	}
	if got := b.value(t, "SELECT count(*) FROM shared_tx"); got != "6" {
		t.Errorf("the follower sees %s rows of the transaction, want 6", got)
	}
	outside := i.login(t, follower.Flight, "analyst")
	if got := outside.value(t, "SELECT count(*) FROM shared_tx"); got != "0" {
		t.Errorf("another session sees %s rows before the commit, want 0", got)
	}
	b.run(t, "COMMIT")
	if got := outside.value(t, "SELECT count(*) FROM shared_tx"); got != "6" {
		t.Errorf("another session sees %s rows after the commit, want 6", got)
	}

	kill(t, leader)
	if after := i.nodePIDs(t); !slices.Equal(before, after) {
		t.Errorf("nodes were %v and are %v", before, after)
	}
	var pid int
	if _, err := fmt.Sscan(before[0], &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the follower took over and replaced the dead node", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		out, err := i.command(ctx, "status").CombinedOutput()
		return err == nil && strings.Contains(string(out), "2 of 2 nodes serving") && !alive(pid)
	})
}
