package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

func TestTransactionsInSQL(t *testing.T) {
	n := startNode(t, newLake(t))
	c, other := n.client("s1"), n.client("s2")
	c.exec("CREATE TABLE t (i INTEGER)")
	c.query("BEGIN TRANSACTION")
	c.wantState(wire.InTransaction)
	c.exec("INSERT INTO t VALUES (1)")
	if got := c.one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("inside: %s rows", got)
	}
	if got := other.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("outside: %s rows", got)
	}
	_, err := c.tryQuery("BEGIN")
	c.wantCode(err, codes.FailedPrecondition, "")
	c.exec("INSERT INTO t VALUES (2)") // a second BEGIN must not abort the transaction
	c.query("COMMIT")
	c.wantState(wire.Free)
	if got := other.one("SELECT count(*) FROM t"); got != "2" {
		t.Errorf("after COMMIT: %s rows", got)
	}
	for _, sql := range []string{"COMMIT", "ROLLBACK"} {
		_, err := c.tryQuery(sql)
		c.wantCode(err, codes.FailedPrecondition, "")
	}
	c.exec("BEGIN")
	c.exec("DELETE FROM t")
	c.exec("ROLLBACK")
	if got := other.one("SELECT count(*) FROM t"); got != "2" {
		t.Errorf("after ROLLBACK: %s rows", got)
	}
}

// TestCommitOfAbortedTransaction: DuckDB answers it with success and keeps nothing.
func TestCommitOfAbortedTransaction(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i INTEGER)")
	c.exec("BEGIN")
	c.exec("INSERT INTO t VALUES (1)")
	if c.tryExec("INSERT INTO t SELECT error('boom')::INTEGER") == nil {
		t.Fatal("no error")
	}
	_, err := c.tryQuery("SELECT 1")
	c.wantCode(err, codes.FailedPrecondition, "")
	c.wantState(wire.InTransaction)
	_, err = c.tryQuery("COMMIT")
	c.wantCode(err, codes.Aborted, "")
	c.wantState(wire.Free)
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
	c.exec("BEGIN")
	c.exec("INSERT INTO t VALUES (1)")
	if _, err := c.tryQuery("SELEC 1"); err == nil {
		t.Error("no error")
	}
	if _, err := c.tryQuery("SELECT * FROM nope"); err == nil {
		t.Error("no error")
	}
	c.exec("COMMIT") // neither aborts
	if got := c.one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("%s rows, want one", got)
	}
}

func TestTransactionsOfTheProtocol(t *testing.T) {
	n := startNode(t, newLake(t))
	c, other := n.client("s1"), n.client("s2")
	ctx := t.Context()
	c.exec("CREATE TABLE t (i INTEGER)")
	idle, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c.query("SELECT 1")
	c.wantState(wire.Free) // it begins with its first statement
	if err := idle.Commit(ctx); err != nil {
		t.Error(err)
	}
	tx, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id := tx.ID()
	if _, err := tx.ExecuteUpdate(ctx, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if rows, err := c.tryQueryIn(id, "SELECT count(*) FROM t"); err != nil || rows[0][0] != "1" {
		t.Errorf("inside the transaction: %v, %v", rows, err)
	}
	c.wantState(wire.InTransaction)
	if _, err := tx.ExecuteUpdate(ctx, "CREATE TEMP TABLE mine AS SELECT 42 AS v"); err != nil {
		t.Fatal(err)
	}
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("beside the transaction: %s rows", got)
	}
	c.wantCode(c.tryExec("CREATE TEMP TABLE u (i INTEGER)"), codes.FailedPrecondition, "")
	_, err = tx.ExecuteUpdate(ctx, "COMMIT")
	c.wantCode(err, codes.InvalidArgument, "")
	second, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.ExecuteUpdate(ctx, "INSERT INTO t VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	if err := second.Rollback(ctx); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	c.query("SELECT 1")
	c.wantState(wire.Stateful)
	if got := c.one("SELECT v FROM mine"); got != "42" {
		t.Errorf("the temporary table holds %s", got)
	}
	if got := other.one("SELECT string_agg(i::VARCHAR, ',') FROM t"); got != "1" {
		t.Errorf("committed: %s", got)
	}
	_, err = other.tryQueryIn(id, "SELECT 1")
	other.wantCode(err, codes.PermissionDenied, wire.Denied)
}

func TestProtocolCommitOfAborted(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	c.exec("CREATE TABLE t (i INTEGER)")
	tx, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecuteUpdate(ctx, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	info, err := tx.Execute(ctx, "SELECT i / (i - 1), error('boom') FROM t")
	if err == nil {
		_, err = c.rows(info)
	}
	if err == nil {
		t.Fatal("no error")
	}
	c.wantCode(tx.Commit(ctx), codes.Aborted, "")
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
}

func TestConcurrentSessionsSeeNothingOfEachOther(t *testing.T) {
	n := startNode(t, newLake(t))
	a, b := n.client("s1"), n.client("s2")
	a.exec("CREATE TEMP TABLE secret AS SELECT 1 AS i")
	a.exec("CREATE SCHEMA elsewhere")
	a.exec("USE elsewhere")
	if got := a.one("SELECT count(*) FROM secret"); got != "1" {
		t.Errorf("own table: %s", got)
	}
	if _, err := b.tryQuery("SELECT * FROM secret"); err == nil {
		t.Error("another session sees the temporary table")
	}
	if _, err := a.CloseSession(t.Context(), &flight.CloseSessionRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CloseSession(t.Context(), &flight.CloseSessionRequest{}); err != nil {
		t.Errorf("closing again: %v", err)
	}
	for i := range 20 {
		fresh := n.client(newID())
		if _, err := fresh.tryQuery("SELECT * FROM secret"); err == nil {
			t.Fatalf("session %d inherits a temporary table", i)
		}
		if got := fresh.one("SELECT current_schema()"); got != "main" {
			t.Fatalf("session %d inherits a schema: %s", i, got)
		}
	}
}

func TestIdleSessionIsRolledBack(t *testing.T) {
	n := startNode(t, newLake(t), func(c *wire.NodeConfig) { c.Live.SessionIdleTimeout = 300 * time.Millisecond })
	c, m, other := n.client("s1"), n.manager(), n.client("s2")
	c.exec("CREATE TABLE t (i INTEGER)")
	c.exec("BEGIN")
	c.exec("INSERT INTO t VALUES (1)")
	eventually(t, "the rollback", func() bool { return m.status().Transactions == 0 })
	if got := m.status().Sessions; got != 1 {
		t.Errorf("%d sessions; the one whose transaction is lost must stay until that is told", got)
	}
	err := c.tryExec("COMMIT")
	c.wantCode(err, codes.Aborted, wire.TransactionLost)
	c.wantState(wire.Free)
	if got := other.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
	c.exec("INSERT INTO t VALUES (2)") // the session is usable again
}

// TestUnreadStreamOfFreeSession: drivers open the next cursor while the last one is not read out.
func TestUnreadStreamOfFreeSession(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	info, err := c.Execute(t.Context(), "SELECT range FROM range(50000000)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.DoGet(t.Context(), info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if got := c.query("SELECT 7"); !cmp.Equal(got, [][]string{{"7"}}) {
		t.Errorf("got %v", got)
	}
}

// TestPostgresGoesAway ends the lake's connections to Postgres in the middle of a transaction.
func TestPostgresGoesAway(t *testing.T) {
	lake := newLake(t)
	n := startNode(t, lake)
	c := n.client("s1")
	c.exec("CREATE TABLE t AS SELECT 1 AS i")
	c.exec("BEGIN")
	c.exec("INSERT INTO t VALUES (2)")
	killBackends(t, lake)
	_, err := c.tryQuery("SELECT count(*) FROM t")
	if err == nil {
		t.Error("a statement works over connections that are gone")
	}
	err = c.tryExec("COMMIT")
	c.wantCodeOnly(err, codes.Aborted)
	if got := n.client("s2").one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("%s rows, want 1", got)
	}
	killBackends(t, lake)
	eventually(t, "recovery", func() bool { _, err := n.client("s3").tryQuery("SELECT * FROM t"); return err == nil })
}

// killBackends ends every connection to the lake's database but its own.
func killBackends(t *testing.T, lake wire.Lake) {
	t.Helper()
	e, c, err := openTask(t.Context(), lakeTask(t, lake), "postgres_scanner", "ducklake")
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	defer c.close()
	err = c.runAll(t.Context(),
		fmt.Sprintf("CREATE SECRET k (TYPE postgres, HOST %s, PORT '%d', DATABASE %s, USER %s, PASSWORD %s)",
			quoteText(lake.Host), lake.Port, quoteText(lake.Database), quoteText(lake.User), quoteText(lake.Password)),
		"ATTACH '' AS p (TYPE postgres, SECRET k)",
		"SELECT * FROM postgres_query('p', 'SELECT pg_terminate_backend(pid)::VARCHAR FROM pg_stat_activity "+
			"WHERE datname = current_database() AND pid <> pg_backend_pid()')")
	if err != nil {
		t.Fatal(err)
	}
}
