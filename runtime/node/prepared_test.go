package node

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

func (c *client) prepare(sql string) *flightsql.PreparedStatement {
	c.n.t.Helper()
	p, err := c.Prepare(c.n.t.Context(), sql)
	if err != nil {
		c.n.t.Fatalf("prepare %s: %v", sql, err)
	}
	return p
}

func (c *client) run(p *flightsql.PreparedStatement) [][]string {
	c.n.t.Helper()
	info, err := p.Execute(c.n.t.Context())
	if err != nil {
		c.n.t.Fatal(err)
	}
	rows, err := c.rows(info)
	if err != nil {
		c.n.t.Fatal(err)
	}
	return rows
}

// record is a batch with one column for each builder, filled by fill.
func record(fields []arrow.Field, fill func(b *array.RecordBuilder)) arrow.RecordBatch {
	b := array.NewRecordBuilder(allocator(), arrow.NewSchema(fields, nil))
	defer b.Release()
	fill(b)
	return b.NewRecordBatch()
}

func ints(values ...int64) arrow.RecordBatch {
	return record([]arrow.Field{{Name: "0", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, func(b *array.RecordBuilder) {
		b.Field(0).(*array.Int64Builder).AppendValues(values, nil)
	})
}

func TestPreparedDescribesItself(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i INTEGER, s VARCHAR, d DECIMAL(10,2))")
	tests := map[string]struct {
		sql           string
		update        bool
		dataset, args string
	}{
		"typed":     {"SELECT s FROM t WHERE i = ? AND d > ?", false, "s:utf8", "1:int32 2:decimal(10, 2)"},
		"unknown":   {"SELECT ?", false, "", "1:utf8"},
		"no rows":   {"INSERT INTO t VALUES (?, ?, ?)", true, "", "1:int32 2:utf8 3:decimal(10, 2)"},
		"no params": {"SELECT count(*) AS n FROM t", false, "n:int64", ""},
		"begin":     {"BEGIN", true, "", ""},
		"ddl":       {"CREATE TABLE u (i INTEGER)", true, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := c.prepare(test.sql)
			if update, told := p.IsUpdate(); !told || update != test.update {
				t.Errorf("is_update is %v, %v", update, told)
			}
			if got := fields(p.DatasetSchema()); got != test.dataset {
				t.Errorf("dataset schema is %q, want %q", got, test.dataset)
			}
			if got := fields(p.ParameterSchema()); got != test.args {
				t.Errorf("parameter schema is %q, want %q", got, test.args)
			}
		})
	}
	c.query("SELECT 1")
	c.wantState(wire.Free) // nothing of it was run
}

func fields(schema *arrow.Schema) string {
	text := ""
	if schema != nil {
		for i, f := range schema.Fields() {
			if i > 0 {
				text += " "
			}
			text += f.Name + ":" + f.Type.String()
		}
	}
	return text
}

func TestPreparedQueries(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t AS SELECT range::INTEGER AS i, 'v' || range AS s FROM range(10)")
	p, other := c.prepare("SELECT s FROM t WHERE i = ?"), c.prepare("SELECT s FROM t WHERE i = ? + 1")
	for _, i := range []int64{3, 4} {
		p.SetParameters(ints(i))
		other.SetParameters(ints(i))
		if got := c.run(p); !cmp.Equal(got, [][]string{{fmt.Sprint("v", i)}}) {
			t.Errorf("i = %d: %v", i, got)
		}
		if got := c.run(other); !cmp.Equal(got, [][]string{{fmt.Sprint("v", i+1)}}) {
			t.Errorf("interleaved, i = %d: %v", i, got)
		}
	}
	p.SetParameters(ints(7, 5, 100, 6))
	if got := c.run(p); !cmp.Equal(got, [][]string{{"v7"}, {"v5"}, {"v6"}}) {
		t.Errorf("several rows: %v", got)
	}
	q := c.prepare("SELECT coalesce(i, ?) FROM t WHERE i < 2 ORDER BY 1")
	q.SetParameters(ints(1))
	if got := c.run(q); !cmp.Equal(got, [][]string{{"0"}, {"1"}}) { // rows also checks the schema
		t.Errorf("a parameter that could change the result's type: %v", got)
	}
	u := c.prepare("SELECT ?")
	u.SetParameters(ints(5))
	if got := c.run(u); !cmp.Equal(got, [][]string{{"5"}}) {
		t.Errorf("a parameter of unknown type: %v", got)
	}
	_, err := c.prepare("SELECT s FROM t WHERE i = ?").Execute(t.Context())
	if err == nil {
		info, err2 := c.prepare("SELECT s FROM t WHERE i = ?").Execute(t.Context())
		if err2 == nil {
			_, err = c.rows(info)
		}
	}
	c.wantCode(err, codes.InvalidArgument, "")
	for range 2 { // closing is idempotent, in the driver and here
		if err := flightsql.NewPreparedStatement(c.Client, p.Handle()).Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestOldHandleRunsWithItsLastBind(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	p := c.prepare("SELECT ?::INTEGER + 1")
	first := p.Handle()
	p.SetParameters(ints(41))
	c.run(p)
	if got := c.run(flightsql.NewPreparedStatement(c.Client, first)); !cmp.Equal(got, [][]string{{"42"}}) {
		t.Errorf("got %v", got)
	}
}

func TestPreparedUpdates(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	c.exec("CREATE TABLE t (i INTEGER, s VARCHAR)")
	p := c.prepare("INSERT INTO t VALUES (?, ?)")
	rows := record([]arrow.Field{
		{Name: "0", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "1", Type: arrow.BinaryTypes.String, Nullable: true},
	}, func(b *array.RecordBuilder) {
		b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, []bool{true, true, false})
		b.Field(1).(*array.StringBuilder).AppendValues([]string{`a\b'?`, "", "x"}, []bool{true, false, true})
	})
	p.SetParameters(rows)
	if count, err := p.ExecuteUpdate(ctx); err != nil || count != 3 {
		t.Errorf("executemany: %d, %v", count, err)
	}
	want := [][]string{{"1", `a\b'?`}, {"2", "(null)"}, {"(null)", "x"}}
	if got := c.query("SELECT i, s FROM t ORDER BY i NULLS LAST"); !cmp.Equal(got, want) {
		t.Errorf("table has %v", got)
	}
	p.SetParameters(rows)
	info, err := p.Execute(ctx) // the way of drivers that know only queries
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.rows(info); err != nil || !cmp.Equal(got, [][]string{{"3"}}) {
		t.Errorf("as a query: %v, %v", got, err)
	}
	bad := record([]arrow.Field{
		{Name: "0", Type: arrow.BinaryTypes.String}, {Name: "1", Type: arrow.BinaryTypes.String},
	}, func(b *array.RecordBuilder) {
		b.Field(0).(*array.StringBuilder).AppendValues([]string{"7", "seven"}, nil)
		b.Field(1).(*array.StringBuilder).AppendValues([]string{"y", "y"}, nil)
	})
	p.SetParameters(bad)
	_, err = p.ExecuteUpdate(ctx)
	c.wantCodeOnly(err, codes.InvalidArgument)
	if got := c.one("SELECT count(*) FROM t"); got != "6" {
		t.Errorf("a failed batch left %s rows, want 6", got)
	}
	if count, err := c.prepare("DELETE FROM t").ExecuteUpdate(ctx); err != nil || count != 6 {
		t.Errorf("without parameters: %d, %v", count, err)
	}
}

func TestPreparedInTransaction(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	c.exec("CREATE TABLE t (i INTEGER)")
	tx, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p, err := tx.Prepare(ctx, "INSERT INTO t VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	p.SetParameters(ints(1, 2))
	if count, err := p.ExecuteUpdate(ctx); err != nil || count != 2 {
		t.Errorf("%d, %v", count, err)
	}
	q, err := tx.Prepare(ctx, "SELECT count(*) FROM t")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.run(q); !cmp.Equal(got, [][]string{{"2"}}) {
		t.Errorf("inside: %v", got)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(ctx); err != nil {
		t.Errorf("close after the transaction: %v", err)
	}
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("after rollback: %s", got)
	}
}

func TestParameterTypes(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	tests := map[string]struct {
		cast  string
		field arrow.DataType
		fill  func(array.Builder)
		want  string
	}{
		"bool":      {"BOOLEAN", arrow.FixedWidthTypes.Boolean, func(b array.Builder) { b.(*array.BooleanBuilder).Append(true) }, "true"},
		"uint8":     {"INTEGER", arrow.PrimitiveTypes.Uint8, func(b array.Builder) { b.(*array.Uint8Builder).Append(200) }, "200"},
		"float64":   {"DOUBLE", arrow.PrimitiveTypes.Float64, func(b array.Builder) { b.(*array.Float64Builder).Append(0.5) }, "0.5"},
		"large":     {"VARCHAR", arrow.BinaryTypes.LargeString, func(b array.Builder) { b.(*array.LargeStringBuilder).Append("x") }, "x"},
		"binary":    {"BLOB", arrow.BinaryTypes.Binary, func(b array.Builder) { b.(*array.BinaryBuilder).Append([]byte("a")) }, "YQ=="},
		"date":      {"DATE", arrow.FixedWidthTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(20000) }, "2024-10-04"},
		"time":      {"TIME", arrow.FixedWidthTypes.Time64us, func(b array.Builder) { b.(*array.Time64Builder).Append(1_000_000) }, "00:00:01.000000"},
		"timestamp": {"TIMESTAMP", arrow.FixedWidthTypes.Timestamp_ms, func(b array.Builder) { b.(*array.TimestampBuilder).Append(1000) }, "1970-01-01T00:00:01"},
		"decimal": {"DECIMAL(10,2)", &arrow.Decimal128Type{Precision: 10, Scale: 2}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(-150))
		}, "-1.5"},
		"interval": {"INTERVAL", arrow.FixedWidthTypes.MonthDayNanoInterval, func(b array.Builder) {
			b.(*array.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Months: 1, Days: 2})
		}, `{"months":1,"days":2,"nanoseconds":0}`},
		"text for a date": {"DATE", arrow.BinaryTypes.String, func(b array.Builder) { b.(*array.StringBuilder).Append("2024-10-04") }, "2024-10-04"},
		"null":            {"INTEGER", arrow.Null, func(b array.Builder) { b.AppendNull() }, "(null)"},
		"list": {"INTEGER[]", arrow.ListOf(arrow.PrimitiveTypes.Int64), func(b array.Builder) {
			b.(*array.ListBuilder).Append(true)
			b.(*array.ListBuilder).ValueBuilder().(*array.Int64Builder).AppendValues([]int64{1, 2}, []bool{true, false})
		}, "[1,null]"},
		"struct": {"STRUCT(a INTEGER)", arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32}), func(b array.Builder) {
			b.(*array.StructBuilder).Append(true)
			b.(*array.StructBuilder).FieldBuilder(0).(*array.Int32Builder).Append(7)
		}, `{"a":7}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := c.prepare("SELECT CAST(? AS " + test.cast + ")")
			p.SetParameters(record([]arrow.Field{{Name: "0", Type: test.field, Nullable: true}}, func(b *array.RecordBuilder) {
				test.fill(b.Field(0))
			}))
			if got := c.run(p); !cmp.Equal(got, [][]string{{test.want}}) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// TestPreparedElsewhere runs a handle on a node that has never seen it, as after a restart.
func TestPreparedElsewhere(t *testing.T) {
	lake := newLake(t)
	a, b := startNode(t, lake).client("s1"), startNode(t, lake).client("s1")
	p := a.prepare("SELECT 1 + 1")
	if got := b.run(flightsql.NewPreparedStatement(b.Client, p.Handle())); !cmp.Equal(got, [][]string{{"2"}}) {
		t.Errorf("got %v", got)
	}
	q := a.prepare("SELECT ?::INTEGER")
	q.SetParameters(ints(1))
	a.run(q)
	_, err := flightsql.NewPreparedStatement(b.Client, q.Handle()).Execute(t.Context())
	b.wantCode(err, codes.FailedPrecondition, "")
	tx, err := a.BeginTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.tryQueryIn(tx.ID(), "SELECT 1")
	b.wantCode(err, codes.Aborted, wire.TransactionLost)
	info, err := a.Execute(t.Context(), "CREATE TEMP TABLE x AS SELECT 1 AS i")
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.rows(info)
	b.wantCode(err, codes.NotFound, "")
}

func TestBoundSetsAreBounded(t *testing.T) {
	var all atomic.Int64
	b := newBoundSets(&all)
	for _, id := range times(3*maxBound, "b%d") {
		if err := b.keep(&parameters{}, id); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.sets) != maxBound {
		t.Errorf("%d sets are kept, want %d", len(b.sets), maxBound)
	}
	if _, ok := b.find("b0"); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := b.find(fmt.Sprint("b", 3*maxBound-1)); !ok {
		t.Error("the latest is gone")
	}
	for i := range 4 {
		if err := b.keep(&parameters{bytes: maxBoundBytes / 2}, fmt.Sprint("bind", i), "statement"); err != nil {
			t.Fatal(err)
		}
	}
	if got := all.Load(); got != maxBoundBytes || got != b.bytes {
		t.Errorf("%d bytes are kept, and %d counted for the node; want %d", b.bytes, got, maxBoundBytes)
	}
	all.Add(maxBoundAll)
	if b.keep(&parameters{bytes: 1}, "one more") == nil {
		t.Error("a full node keeps more")
	}
	b.expire(time.Now().Add(2 * boundTTL))
	if got := all.Load(); got != maxBoundAll || len(b.sets) != 0 {
		t.Errorf("%d sets are kept after their time, %d bytes counted", len(b.sets), got-maxBoundAll)
	}
}
