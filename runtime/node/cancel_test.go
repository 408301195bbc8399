package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestCancelFreesAndHitsNothingElse cancels a statement 50 times and runs another one at once.
func TestCancelFreesAndHitsNothingElse(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	info, err := c.Execute(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	c.exec("CREATE TEMP TABLE pin (i INTEGER)") // one connection for all, where a late interrupt would hit
	worst := time.Duration(0)
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := c.Client.Client.DoGet(ctx, info.Endpoint[0].Ticket)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the statement", func() bool { return m.status().InFlight == 1 })
		cancel()
		start := time.Now()
		if _, err := r.Recv(); status.Code(err) != codes.Canceled {
			t.Fatalf("cancel %d: %v", i, err)
		}
		if got := c.one("SELECT count(*) FROM range(100000)"); got != "100000" {
			t.Fatalf("after cancel %d: %s", i, got)
		}
		eventually(t, "the end of the statement", func() bool { return m.status().InFlight == 0 })
		worst = max(worst, time.Since(start))
	}
	if worst > time.Second {
		t.Errorf("a cancelled statement held on for %s", worst)
	}
}

func TestCancelInTransactionAborts(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.exec("BEGIN")
	info, err := c.Execute(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := c.Client.Client.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the statement", func() bool { return m.status().InFlight == 1 })
	cancel() // the client's own: its connection is alive
	if _, err := r.Recv(); status.Code(err) != codes.Canceled {
		t.Fatal(err)
	}
	eventually(t, "the end of the statement", func() bool { return m.status().InFlight == 0 })
	_, err = c.tryQuery("COMMIT")
	c.wantCode(err, codes.Aborted, "")
}

func TestCancelByTicketAndDeadline(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	info, err := c.Execute(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := n.client("s1").rows(info)
		failed <- err
	}()
	eventually(t, "the statement", func() bool { return m.status().InFlight == 1 })
	result, err := c.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || result.GetStatus() != flight.CancelStatusCancelled {
		t.Errorf("cancel: %v, %v", result.GetStatus(), err)
	}
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Errorf("the statement ended with %v", err)
	}
	result, err = c.CancelFlightInfo(t.Context(), &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || result.GetStatus() != flight.CancelStatusNotCancellable {
		t.Errorf("cancel again: %v, %v", result.GetStatus(), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r, err := c.Client.Client.DoGet(ctx, info.Endpoint[0].Ticket)
	if err == nil {
		_, err = r.Recv()
	}
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("past the deadline: %v", err)
	}
	eventually(t, "the end of the statement", func() bool { return m.status().InFlight == 0 })
}

// cut ends a client's connection the way the death of an edge does, without a word, and gives the client
// a new one.
func (c *client) cut() {
	c.n.t.Helper()
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.n.t.Fatal(err)
	}
	c.dial()
}

// TestVanishedEdgeDuringInsert: the INSERT of a transaction goes on, COMMIT works over a new connection,
// and the client can learn what became of the statement.
func TestVanishedEdgeDuringInsert(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.exec("CREATE TABLE t (i BIGINT)")
	c.exec("BEGIN")
	c.assertion.Statement = "the-insert"
	failed := make(chan error, 1)
	before := *c
	go func() { // a second and more of work for one row
		_, err := before.ExecuteUpdate(context.Background(), "INSERT INTO t SELECT count(*) FROM range(300000000) r WHERE (r.range * 7) % 3 < 5")
		failed <- err
	}()
	eventually(t, "the insert", func() bool { return m.status().InFlight == 1 })
	c.cut()
	if err := <-failed; status.Code(err) != codes.Unavailable {
		t.Errorf("the cut call failed with %v", err)
	}
	c.assertion.Statement = ""
	c.query("COMMIT") // waits for its turn behind the INSERT
	if got := c.one("SELECT i FROM t"); got != "300000000" {
		t.Errorf("the table has %s", got)
	}
	c.assertion.Statement = "the-insert"
	if got := c.exec("INSERT INTO t SELECT count(*) FROM range(300000000) r WHERE (r.range * 7) % 3 < 5"); got != 1 {
		t.Errorf("its outcome: %d rows", got)
	}
	c.assertion.Statement = ""
	if got := c.one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("asking for the outcome ran the statement again: %s rows", got)
	}
}

func TestOutcomeOfCutStatementIsLearned(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.exec("CREATE TABLE t (i BIGINT)")
	c.exec("BEGIN")
	c.assertion.Statement = "the-insert"
	before := *c
	failed := make(chan error, 1)
	go func() {
		_, err := before.ExecuteUpdate(context.Background(), "INSERT INTO t SELECT range FROM range(2000000)")
		failed <- err
	}()
	eventually(t, "the insert", func() bool { return m.status().InFlight == 1 })
	c.cut()
	<-failed
	eventually(t, "the outcome", func() bool {
		result, err := c.GetSessionOptions(t.Context(), &flight.GetSessionOptionsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		last := result.GetSessionOptions()[optionLast]
		return last.GetStringValue() == "the-insert ok 2000000"
	})
	c.assertion.Statement = ""
	c.query("ROLLBACK")
}

// TestVanishedEdgeDuringSelect: the stream ends between chunks and the transaction lives.
func TestVanishedEdgeDuringSelect(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.exec("CREATE TABLE t (i INTEGER)")
	for _, sql := range []string{
		"SELECT range FROM range(100000000)",                                  // cut while it waits to send
		"SELECT count(*) FROM range(300000000) r WHERE (r.range * 7) % 3 < 5", // cut before its first row
	} {
		c.exec("BEGIN")
		c.exec("INSERT INTO t VALUES (1)")
		info, err := c.Execute(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client.Client.DoGet(t.Context(), info.Endpoint[0].Ticket); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the query", func() bool { return m.status().InFlight == 1 })
		c.cut()
		eventually(t, "the end of the query", func() bool { return m.status().InFlight == 0 })
		c.query("COMMIT")
	}
	if got := c.one("SELECT count(*) FROM t"); got != "2" {
		t.Errorf("%s rows, want 2", got)
	}
}

func TestVanishedEdgeOutsideTransactionInterrupts(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.exec("CREATE TABLE t (i BIGINT)")
	before := *c
	failed := make(chan error, 1)
	go func() {
		_, err := before.ExecuteUpdate(context.Background(), "INSERT INTO t "+slow)
		failed <- err
	}()
	eventually(t, "the insert", func() bool { return m.status().InFlight == 1 })
	c.cut()
	<-failed
	eventually(t, "the end of the insert", func() bool { return m.status().InFlight == 0 })
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
}

// TestExplicitDDLSideBySide is the workload that breaks DuckLake without the latch.
func TestExplicitDDLSideBySide(t *testing.T) {
	n := startNode(t, newLake(t))
	const sessions, rounds = 12, 3
	failed := make(chan string, 10_000)
	done := make(chan struct{})
	for i := range sessions {
		c := n.client(fmt.Sprint("s", i))
		go func() {
			defer func() { done <- struct{}{} }()
			for range rounds {
				for _, sql := range []string{
					"BEGIN", fmt.Sprintf("CREATE OR REPLACE TABLE t%d AS SELECT range AS i FROM range(1000)", i), "COMMIT",
				} {
					if err := c.tryExec(sql); err != nil {
						failed <- sql + ": " + err.Error()
						_ = c.tryExec("ROLLBACK")
						break
					}
				}
			}
		}()
	}
	beside, end := context.WithCancel(t.Context())
	others := make(chan struct{})
	n.client("log").exec("CREATE TABLE log (i INTEGER)") // amid the transactions: that is when others missed it
	for _, sql := range []string{"SELECT count(*) FROM log", "INSERT INTO log VALUES (1)"} {
		c := n.client("beside " + sql)
		go func() {
			defer func() { others <- struct{}{} }()
			for beside.Err() == nil {
				if _, err := c.tryQuery(sql); err != nil {
					failed <- sql + ": " + err.Error()
				}
			}
		}()
	}
	for range sessions {
		<-done
	}
	end()
	<-others
	<-others
	close(failed)
	for f := range failed {
		t.Error(f)
	}
	c := n.client("check")
	for i := range sessions {
		if got := c.one(fmt.Sprintf("SELECT count(*) FROM t%d", i)); got != "1000" {
			t.Errorf("t%d has %s rows", i, got)
		}
	}
}

func TestLatch(t *testing.T) {
	l := newChanges()
	a, b, c := l.grip(), l.grip(), l.grip()
	ctx := t.Context()
	for _, g := range []*grip{a, b} {
		if err := g.share(ctx); err != nil {
			t.Fatal(err)
		}
	}
	alone := make(chan error, 1)
	go func() { alone <- a.alone(ctx) }()
	eventually(t, "the wait", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.upgrading != nil })
	if err := asFault(b.alone(ctx)); err.code != codes.Aborted || !strings.Contains(err.message, "not run") {
		t.Errorf("two that wait for each other: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := c.share(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a sharer overtook one that waits to be alone: %v", err)
	}
	b.release()
	if err := <-alone; err != nil {
		t.Fatal(err)
	}
	a.release()
	a.release()
	if err := c.share(ctx); err != nil || c.holds != holdsShared {
		t.Errorf("after release: %v", err)
	}
}
