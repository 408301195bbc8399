package node

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/wire"
)

// plain is a connection whose calls carry no assertion.
func plain(t *testing.T, n *testNode) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+n.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestWritesRunExactlyOnce(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i INTEGER)")
	never, err := c.Execute(t.Context(), "INSERT INTO t VALUES (1)")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.one("SELECT count(*) FROM t"); got != "1" {
		t.Errorf("after GetFlightInfo alone: %s rows, want 1", got)
	}
	for range 3 {
		if rows, err := c.rows(never); err != nil || !cmp.Equal(rows, [][]string{{"1"}}) {
			t.Errorf("its answer: %v, %v", rows, err)
		}
	}
	c.exec("CREATE TEMP TABLE mine (i INTEGER)") // DuckLake has no RETURNING
	returning, err := c.Execute(t.Context(), "INSERT INTO mine VALUES (2), (3) RETURNING i")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if rows, err := c.rows(returning); err != nil || !cmp.Equal(rows, [][]string{{"2"}, {"3"}}) {
			t.Errorf("RETURNING: %v, %v", rows, err)
		}
	}
	if got := c.one("SELECT string_agg(i::VARCHAR, ' ' ORDER BY i) FROM mine"); got != "2 3" {
		t.Errorf("table has %s", got)
	}
	c.assertion.Statement = "the-same"
	for range 3 {
		if got := c.exec("INSERT INTO t VALUES (9)"); got != 1 {
			t.Errorf("a repeated statement changed %d rows", got)
		}
	}
	c.assertion.Statement = ""
	if got := c.one("SELECT count(*) FROM t WHERE i = 9"); got != "1" {
		t.Errorf("a statement with one id ran %s times", got)
	}
	other := n.client("s2")
	_, err = other.rows(returning)
	other.wantCode(err, codes.PermissionDenied, wire.Denied)
}

func TestUpdateCounts(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	for _, test := range []struct {
		sql  string
		rows int64
	}{
		{"CREATE TABLE t AS SELECT range AS i FROM range(5000)", 5000},
		{"CREATE TABLE e (i BIGINT)", 0},
		{"INSERT INTO e SELECT i FROM t WHERE i < 7", 7},
		{"UPDATE t SET i = i + 1 WHERE i < 3", 3},
		{"DELETE FROM t WHERE i > 4000", 999},
		{"CREATE TEMP TABLE mine (i BIGINT)", 0},
		{"INSERT INTO mine VALUES (1), (2) RETURNING i", 2},
		{"CREATE VIEW v AS SELECT * FROM t", 0},
		{"DROP VIEW v", 0},
	} {
		if got := c.exec(test.sql); got != test.rows {
			t.Errorf("%s: %d rows, want %d", test.sql, got, test.rows)
		}
	}
	_, err := c.ExecuteUpdate(t.Context(), "SELECT 1")
	c.wantCode(err, codes.InvalidArgument, "")
}

func TestSessionOptions(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	options := func() map[string]string {
		result, err := c.GetSessionOptions(t.Context(), &flight.GetSessionOptionsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for name, value := range result.GetSessionOptions() {
			got[name] = value.GetStringValue()
		}
		return got
	}
	set := func(name, value string) error {
		values, err := flight.NewSessionOptionValues(map[string]any{name: value})
		if err != nil {
			t.Fatal(err)
		}
		result, err := c.SetSessionOptions(t.Context(), &flight.SetSessionOptionsRequest{SessionOptions: values})
		if err == nil && len(result.GetErrors()) > 0 {
			err = status.Error(codes.InvalidArgument, result.String())
		}
		return err
	}
	if got := options(); got["catalog"] != "sales-eu" || got["schema"] != "main" || got[optionLast] != "" {
		t.Errorf("at first: %v", got)
	}
	if err := set("catalog", "sales-eu"); err != nil {
		t.Error(err)
	}
	c.wantState(wire.Free)
	c.exec("CREATE SCHEMA other")
	if err := set("schema", "other"); err != nil {
		t.Error(err)
	}
	c.wantState(wire.Stateful)
	if got := c.one("SELECT current_schema()"); got != "other" {
		t.Errorf("the session is in schema %s", got)
	}
	c.exec("USE main")
	if got := options(); got["schema"] != "main" {
		t.Errorf("after USE: %v", got)
	}
	c.exec("USE other")
	if err := set("schema", "nope"); err == nil {
		t.Error("a schema that does not exist was accepted")
	}
	if set("catalog", "nope") == nil || set("nope", "x") == nil {
		t.Error("nonsense was accepted")
	}
	c.assertion.Statement = "the-insert"
	c.exec("CREATE TABLE t AS SELECT 1 AS i UNION ALL SELECT 2")
	if got := options(); got["schema"] != "other" || got[optionLast] != "the-insert ok 2" {
		t.Errorf("at last: %v", got)
	}
}

// TestDescriptorlessPut sends what takes arrow-go's own server down.
func TestDescriptorlessPut(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	stream, err := c.Client.Client.DoPut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&flight.FlightData{DataHeader: []byte{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	c.wantCode(err, codes.InvalidArgument, "")
	command, err := anypb.New(&pb.CommandStatementUpdate{Query: "CREATE TABLE t (i INTEGER)"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []*flight.FlightData{
		{FlightDescriptor: &flight.FlightDescriptor{Cmd: []byte{0xff, 0x01}}},
		{FlightDescriptor: &flight.FlightDescriptor{}, DataHeader: []byte{0xff, 0xff, 0xff, 0xff, 0xff}},
		{FlightDescriptor: &flight.FlightDescriptor{Cmd: raw}, DataHeader: []byte{0xff, 0xff, 0xff, 0xff, 0xff}},
	} {
		stream, err := c.Client.Client.DoPut(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(data)
		_ = stream.CloseSend()
		_, _ = stream.Recv()
	}
	c.query("SELECT 1")
}
