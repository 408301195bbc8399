package node

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// TestInvalidText: the engine makes no value of text that is not UTF-8, and would crash on binding that.
func TestInvalidText(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	text := func(b array.Builder, s string) { b.(*array.StringBuilder).Append(s) }
	tests := map[string]struct {
		t    arrow.DataType
		fill func(b array.Builder, s string)
	}{
		"text": {arrow.BinaryTypes.String, text},
		"list": {arrow.ListOf(arrow.BinaryTypes.String), func(b array.Builder, s string) {
			list := b.(*array.ListBuilder)
			list.Append(true)
			text(list.ValueBuilder(), "a")
			text(list.ValueBuilder(), s)
		}},
		"struct": {arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}), func(b array.Builder, s string) {
			b.(*array.StructBuilder).Append(true)
			text(b.(*array.StructBuilder).FieldBuilder(0), s)
		}},
		"map": {arrow.MapOf(arrow.BinaryTypes.String, arrow.BinaryTypes.String), func(b array.Builder, s string) {
			m := b.(*array.MapBuilder)
			m.Append(true)
			text(m.KeyBuilder(), "k")
			text(m.ItemBuilder(), s)
		}},
		"list of lists": {arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)), func(b array.Builder, s string) {
			list := b.(*array.ListBuilder)
			list.Append(true)
			inner := list.ValueBuilder().(*array.ListBuilder)
			inner.Append(true)
			inner.Append(true)
			text(inner.ValueBuilder(), s)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for value, good := range map[string]bool{"\xff": false, "ok": true, "": true} {
				p := c.prepare("SELECT ?")
				p.SetParameters(record([]arrow.Field{{Name: "0", Type: test.t, Nullable: true}}, func(b *array.RecordBuilder) {
					test.fill(b.Field(0), value)
				}))
				info, err := p.Execute(t.Context())
				if err == nil {
					_, err = c.rows(info)
				}
				if good && err != nil {
					t.Errorf("%q: %v", value, err)
				}
				if !good {
					c.wantCodeOnly(err, codes.InvalidArgument)
				}
			}
		})
	}
}

// TestTornStatement: of several rows some had taken effect, so the transaction can only be rolled back.
func TestTornStatement(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i TINYINT)")
	c.query("BEGIN")
	p := c.prepare("INSERT INTO t SELECT ?::TINYINT")
	p.SetParameters(ints(1, 2, 1000))
	if _, err := p.ExecuteUpdate(t.Context()); err == nil {
		t.Fatal("no error")
	}
	_, err := c.tryQuery("COMMIT")
	c.wantCode(err, codes.Aborted, "")
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
	c.query("BEGIN")
	p = c.prepare("INSERT INTO t SELECT ?::TINYINT")
	p.SetParameters(ints(1, 2, 3))
	if got, err := p.ExecuteUpdate(t.Context()); got != 3 || err != nil {
		t.Errorf("%d rows, %v", got, err)
	}
	c.query("COMMIT")
}

// TestResultTooLargeToKeep: it is refused, and nothing of the statement stays.
func TestResultTooLargeToKeep(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TEMP TABLE t (s VARCHAR)")
	_, err := c.tryQuery("INSERT INTO t SELECT repeat('x', 1000) FROM range(80000) RETURNING s")
	c.wantCode(err, codes.ResourceExhausted, "")
	if err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("the error does not name the limit: %v", err)
	}
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("%s rows, want none", got)
	}
	if got := c.query("INSERT INTO t VALUES ('a'), ('b') RETURNING s"); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if got := c.one("SELECT count(*) FROM t"); got != "2" {
		t.Errorf("%s rows, want two", got)
	}
}

// TestReadHoldsNoPlans: while a client takes its rows, others may change tables.
func TestReadHoldsNoPlans(t *testing.T) {
	n := startNode(t, newLake(t))
	c, other := n.client("s1"), n.client("s2")
	p := c.prepare("SELECT range FROM range(50000000) WHERE range >= ?")
	p.SetParameters(ints(0, 1))
	info, err := p.Execute(t.Context())
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
	other.query("BEGIN")
	other.exec("CREATE TABLE t (i INTEGER)") // alone: it would wait for the reader
	other.query("COMMIT")
}

func TestDefaultSchemaDropped(t *testing.T) {
	lake := newLake(t)
	lake.DefaultSchema = "shop"
	if err := InitLake(t.Context(), lakeTask(t, lake), quiet()); err != nil {
		t.Fatal(err)
	}
	c := startNode(t, lake).client("s1")
	c.exec(`DROP SCHEMA "sales-eu".shop`)
	n := startNode(t, lake) // whose connections have never seen it
	c = n.client("s1")
	c.exec(`CREATE SCHEMA "sales-eu".shop`)
	if got := n.client("s2").one("SELECT current_schema()"); got != "shop" {
		t.Errorf("the schema is %s", got)
	}
}

// memoryConn is a connection to an engine of its own.
func memoryConn(t *testing.T) *conn {
	t.Helper()
	e, err := openEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestMisreadStatement: what the engine takes for another kind than the guard did is not run.
func TestMisreadStatement(t *testing.T) {
	c := memoryConn(t)
	cur, err := c.prepareChecked(t.Context(), internal("SELECT 1", wire.Read, guard.Select, false))
	if err != nil {
		t.Fatal(err)
	}
	cur.close()
	_, err = c.prepareChecked(t.Context(), internal("CREATE TABLE t (i INTEGER)", wire.Read, guard.Select, false))
	if err == nil || asFault(err).reason != wire.Denied {
		t.Errorf("error is %v", err)
	}
}

// ending is a context that ends once it has been asked a number of times whether it has.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestFinishedWriteIsNotCancelled: whenever its call ends, a write that fails has changed nothing.
func TestFinishedWriteIsNotCancelled(t *testing.T) {
	s := &server{changes: newChanges(), plans: newPlans()}
	l := s.newLane()
	l.conn = memoryConn(t)
	if err := l.conn.run(t.Context(), "CREATE TABLE t (i INTEGER)"); err != nil {
		t.Fatal(err)
	}
	q := query{st: internal("INSERT INTO t SELECT range FROM range(10)", wire.Write, guard.Insert, false)}
	failed, want := 0, 0
	for asked := range 8 {
		err := s.runOnce(&ending{context.Background(), asked}, l, q, &outcome{})
		if err == nil {
			want += 10
		} else {
			failed++
		}
		rows, err := l.conn.textRows(t.Context(), "SELECT count(*)::VARCHAR FROM t")
		if err != nil || rows[0][0] != strconv.Itoa(want) {
			t.Fatalf("asked %d times: %v rows, %v; want %d", asked, rows, err, want)
		}
	}
	if failed == 0 || want == 0 {
		t.Errorf("%d writes failed, %d rows are written", failed, want)
	}
}

// TestBegin: one that fails leaves the connection to nobody else.
func TestBegin(t *testing.T) {
	l := &lane{conn: memoryConn(t)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.begin(ctx, "BEGIN"); err == nil || l.dirty {
		t.Errorf("after its call: %v, dirty %v", err, l.dirty)
	}
	if err := l.begin(t.Context(), "BEGIN"); err != nil || l.dirty {
		t.Errorf("the first: %v, dirty %v", err, l.dirty)
	}
	if err := l.begin(t.Context(), "BEGIN"); err == nil || !l.dirty {
		t.Errorf("the second: %v, dirty %v", err, l.dirty)
	}
}
