package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// slow is a read that takes minutes.
const slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3"

func TestTypes(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	tests := map[string]struct{ sql, arrow, text string }{
		"boolean":   {"true", "bool", "true"},
		"tinyint":   {"(-128)::TINYINT", "int8", "-128"},
		"ubigint":   {"18446744073709551615::UBIGINT", "uint64", "18446744073709551615"},
		"hugeint":   {"12345678901234567890123456789::HUGEINT", "decimal(38, 0)", "12345678901234567890123456789"},
		"decimal":   {"1.50::DECIMAL(10,2)", "decimal(10, 2)", "1.5"},
		"double":    {"0.5::DOUBLE", "float64", "0.5"},
		"varchar":   {"'añ''b'", "utf8", "añ'b"},
		"blob":      {"'a'::BLOB", "binary", "YQ=="},
		"date":      {"DATE '2026-11-30'", "date32", "2026-11-30"},
		"time":      {"TIME '07:08:09'", "time64[us]", "07:08:09.000000"},
		"timestamp": {"TIMESTAMP '2026-11-30 07:08:09'", "timestamp[us]", "2026-11-30T07:08:09"},
		"zoned":     {"TIMESTAMPTZ '2026-11-30 07:08:09+00'", "timestamp[us, tz=UTC]", "2026-11-30T07:08:09Z"},
		"interval":  {"INTERVAL 1 MONTH", "month_day_nano_interval", `{"months":1,"days":0,"nanoseconds":0}`},
		"uuid":      {"'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID", "utf8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		"list":      {"[1,2,NULL]", "list<l: int32, nullable>", "[1,2,null]"},
		"struct":    {"{'a': 1, 'b': 'x'}", "struct<a: int32 nullable, b: utf8 nullable>", `{"a":1,"b":"x"}`},
		"enum":      {"'b'::ENUM('a','b')", "dictionary<values=utf8, indices=uint8, ordered=false>", "b"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sql := "SELECT " + test.sql + " AS v UNION ALL SELECT NULL"
			if got := c.query(sql); !cmp.Equal(got, [][]string{{test.text}, {"(null)"}}) {
				t.Errorf("got %v", got)
			}
			schema, err := c.GetExecuteSchema(t.Context(), sql)
			if err != nil {
				t.Fatal(err)
			}
			told, err := flight.DeserializeSchema(schema.Schema, allocator())
			if err != nil {
				t.Fatal(err)
			}
			if got := told.Field(0).Type.String(); got != test.arrow {
				t.Errorf("type is %s, want %s", got, test.arrow)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	for _, rows := range []int{0, 1, 2047, 2048, 2049, 1_000_000} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			info, err := c.Execute(t.Context(), fmt.Sprintf("SELECT range AS r, 'x' || range AS s FROM range(%d)", rows))
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.DoGet(t.Context(), info.Endpoint[0].Ticket)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			if r.Schema().NumFields() != 2 {
				t.Errorf("schema is %v", r.Schema())
			}
			count, sum := 0, int64(0)
			for r.Next() {
				b := r.RecordBatch()
				if size := sizeOf(b); size > 3<<20 {
					t.Errorf("a batch of %d bytes", size)
				}
				count += int(b.NumRows())
				for i := range int(b.NumRows()) {
					v, err := strconv.ParseInt(b.Column(0).ValueStr(i), 10, 64)
					if err != nil || b.Column(1).ValueStr(i) != "x"+b.Column(0).ValueStr(i) {
						t.Fatalf("row %d is %s, %s", i, b.Column(0).ValueStr(i), b.Column(1).ValueStr(i))
					}
					sum += v
				}
			}
			if r.Err() != nil || count != rows || sum != int64(rows)*int64(rows-1)/2 {
				t.Errorf("%d rows with sum %d, %v", count, sum, r.Err())
			}
			if got := c.trailer(wire.RowsKey); got != fmt.Sprint(rows) {
				t.Errorf("trailer says %v rows", got)
			}
		})
	}
}

func TestHugeRows(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	rows := c.query("SELECT length(s) FROM (SELECT repeat('x', 1000000) || range AS s FROM range(20))")
	if len(rows) != 20 {
		t.Errorf("got %d rows", len(rows))
	}
	if rows := c.query("SELECT repeat('x', 1000000) || range AS s FROM range(20)"); len(rows) != 20 || len(rows[7][0]) != 1000001 {
		t.Errorf("got %d rows", len(rows))
	}
}

// TestAwkwardTypesAcrossBatches: types that cannot simply be joined, over many batches.
func TestAwkwardTypesAcrossBatches(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	for name, expression := range map[string]string{
		"enum":   "(['a','b'])[1 + range % 2]::ENUM('a','b')",
		"union":  "union_value(num := range)",
		"map":    "MAP {'k': range}",
		"bit":    "range::INTEGER::BIT",
		"bignum": "range::BIGNUM",
		"array":  "[range, range]::BIGINT[2]",
	} {
		rows := c.query("SELECT range, " + expression + " FROM range(100000)")
		if len(rows) != 100000 || rows[99999][0] != "99999" || rows[99999][1] == "" {
			t.Errorf("%s: %d rows", name, len(rows))
		}
	}
}

func TestLateErrorReachesTheClient(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	rows, err := c.tryQuery("SELECT CASE WHEN range < 900000 THEN range ELSE error('late boom') END FROM range(1000000)")
	c.wantCode(err, codes.InvalidArgument, "")
	if err == nil || !strings.Contains(err.Error(), "late boom") {
		t.Errorf("%d rows, then %v", len(rows), err)
	}
}

func TestErrorCodes(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i INTEGER NOT NULL)")
	tests := map[string]struct {
		sql    string
		code   codes.Code
		reason wire.Reason
	}{
		"parser":       {"SELECT FROM WHERE", codes.InvalidArgument, ""},
		"no table":     {"SELECT * FROM nope", codes.NotFound, ""},
		"no column":    {"SELECT nope FROM t", codes.InvalidArgument, ""},
		"conversion":   {"INSERT INTO t VALUES ('x')", codes.InvalidArgument, ""},
		"constraint":   {"INSERT INTO t VALUES (NULL)", codes.FailedPrecondition, ""},
		"exists":       {"CREATE TABLE t (i INTEGER)", codes.AlreadyExists, ""},
		"two at once":  {"SELECT 1; SELECT 2", codes.InvalidArgument, wire.Denied},
		"not allowed":  {"ATTACH ':memory:' AS m", codes.PermissionDenied, wire.Denied},
		"false friend": {"SELECT error('INTERNAL Error: x')", codes.InvalidArgument, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.tryQuery(test.sql)
			c.wantCode(err, test.code, test.reason)
			if err != nil && len(err.Error()) > maxMessage+100 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
	if s := n.manager().status(); s.Fatal != "" || !s.Ready {
		t.Errorf("a user's error made the node unusable: %+v", s)
	}
}

// TestSlowReaderKeepsMemoryFlat reads the first rows of 20 million and then waits: nothing may pile up.
func TestSlowReaderKeepsMemoryFlat(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.query("SELECT count(*) FROM range(1000)")
	before := m.status().MemoryBytes
	info, err := c.Execute(t.Context(), "SELECT range, range * 2, range * 3 FROM range(20000000)")
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.DoGet(t.Context(), info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	rows, peak := int64(0), int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
		if rows%(1<<20) < 65536 {
			peak = max(peak, m.status().MemoryBytes)
		}
	}
	if r.Err() != nil || rows != 20_000_000 {
		t.Errorf("%d rows, %v", rows, r.Err())
	}
	if grown := (peak - before) >> 20; grown > 200 { // client and node share this process
		t.Errorf("memory grew by %d MiB while 480 MB were read", grown)
	}
}

func TestTicketsOfReadsRunAgain(t *testing.T) {
	n := startNode(t, newLake(t))
	c, other := n.client("s1"), n.client("s2")
	c.exec("CREATE TABLE t AS SELECT 1 AS i")
	info, err := c.Execute(t.Context(), "SELECT i FROM t")
	if err != nil {
		t.Fatal(err)
	}
	for who, cl := range map[string]*client{"the same session": c, "another session of the user": other} {
		for range 2 {
			if rows, err := cl.rows(info); err != nil || !cmp.Equal(rows, [][]string{{"1"}}) {
				t.Errorf("%s: %v, %v", who, rows, err)
			}
		}
	}
	other.assertion.User = "u2"
	_, err = other.rows(info)
	other.wantCode(err, codes.PermissionDenied, wire.Denied)
}

func TestRoles(t *testing.T) {
	lake := newLake(t)
	reader := startNode(t, lake, func(c *wire.NodeConfig) { c.Role = "read" }).client("s1")
	writer := startNode(t, lake, func(c *wire.NodeConfig) { c.Role = "write" }).client("s2")
	for _, sql := range []string{"CREATE TABLE t (i INTEGER)", "BEGIN", "SET TimeZone = 'UTC'"} {
		_, err := reader.tryQuery(sql)
		reader.wantCode(err, codes.FailedPrecondition, wire.WrongRole)
	}
	writer.exec("CREATE TABLE t (i INTEGER)")
	_, err := writer.tryQuery("SELECT * FROM t")
	writer.wantCode(err, codes.FailedPrecondition, wire.WrongRole)
	writer.exec("BEGIN")
	writer.exec("INSERT INTO t VALUES (1)")
	writer.query("SELECT * FROM t")
	writer.exec("COMMIT")
	if got := reader.one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("the reader sees %s rows", got)
	}
}

func TestBusy(t *testing.T) {
	n := startNode(t, newLake(t), func(c *wire.NodeConfig) { c.Live.MaxConcurrent = 1 })
	a, b, m := n.client("s1"), n.client("s2"), n.manager()
	b.exec("BEGIN")
	a.assertion.Statement = "long"
	failed := make(chan error, 1)
	go func() {
		_, err := a.tryQuery(slow)
		failed <- err
	}()
	eventually(t, "the long statement", func() bool { return m.status().InFlight == 1 })
	if err := b.tryExec("INSERT INTO nope VALUES (1)"); err == nil || strings.Contains(err.Error(), "limit") {
		t.Errorf("a statement of an open transaction was not let in: %v", err)
	}
	b.exec("ROLLBACK")
	_, err := b.tryQuery("SELECT 1")
	b.wantCode(err, codes.ResourceExhausted, wire.Busy)
	var s wire.Status
	if err := m.do(wire.CancelAction, wire.Cancel{Statement: "long", Cause: "enough"}, &s); err != nil {
		t.Fatal(err)
	}
	err = <-failed
	a.wantCode(err, codes.Canceled, "")
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error is %v, want the cause", err)
	}
	b.query("SELECT 1")
}

func TestJoinKeepsRows(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "Count", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	var got []string
	b := batcher{schema: schema, send: func(rec arrow.RecordBatch) error {
		for _, row := range text(rec) {
			got = append(got, row[0])
		}
		return nil
	}}
	want := times(5000, "%d")
	for i := range want {
		if err := b.add(countBatch(schema, int64(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.flush(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
