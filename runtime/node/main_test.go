package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childNode) != "" {
		os.Exit(beNode())
	}
	os.Exit(pgtest.Main(m))
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func extensionDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("QOD_TEST_EXTENSION_DIR")
	if dir == "" {
		t.Fatal("QOD_TEST_EXTENSION_DIR must name a directory with v1.5.5/<platform>/*.duckdb_extension")
	}
	return dir
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// newLake makes a lake in a database of its own.
func newLake(t *testing.T) wire.Lake {
	t.Helper()
	server := pgtest.Server(t)
	database, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	lake := wire.Lake{
		Name: "sales-eu", DatabaseID: "8f14e45f", DefaultSchema: "main", DataPath: t.TempDir(),
		Host: server.Host, Port: server.Port, Database: strings.TrimPrefix(database.Path, "/"),
		User: server.User, Password: server.Password,
	}
	if err := InitLake(t.Context(), lakeTask(t, lake), quiet()); err != nil {
		t.Fatal(err)
	}
	return lake
}

func lakeTask(t *testing.T, lake wire.Lake) wire.LakeTask {
	return wire.LakeTask{
		Lake: lake, ExtensionDir: extensionDir(t), TempDir: filepath.Join(lake.DataPath, "..", "tmp"),
		MemoryBytes: 1 << 30, Threads: 2,
	}
}

// testNode is a node that runs in this process.
type testNode struct {
	t      *testing.T
	cfg    wire.NodeConfig
	socket string
	keys   *wire.Keyring
	stop   context.CancelFunc
	done   chan error
}

func startNode(t *testing.T, lake wire.Lake, change ...func(*wire.NodeConfig)) *testNode {
	t.Helper()
	n := newTestNode(t, lake, change...)
	listener, err := net.Listen("unix", n.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	go func() { n.done <- Run(ctx, Config{Node: n.cfg, Listener: listener, Log: quiet()}) }()
	t.Cleanup(n.close)
	n.manager().waitReady()
	return n
}

// newTestNode is a node that does not run yet.
func newTestNode(t *testing.T, lake wire.Lake, change ...func(*wire.NodeConfig)) *testNode {
	t.Helper()
	key := wire.Key{ID: 1, Key: []byte(strings.Repeat("k", wire.KeySize))}
	dir, err := os.MkdirTemp("", "qodn")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	n := &testNode{t: t, socket: filepath.Join(dir, "n.sock"), done: make(chan error, 1)}
	n.cfg = wire.NodeConfig{
		Version: wire.Version, ID: newID(), PoolID: "pool", Role: "dual", SpecHash: "hash", Lake: lake, Threads: 2,
		TempDir: filepath.Join(dir, "tmp"), ExtensionDir: extensionDir(t), Keys: []wire.Key{key}, DrainLimit: 5 * time.Second,
	}
	for _, f := range change {
		f(&n.cfg)
	}
	if n.keys, err = wire.NewKeyring(n.cfg.Keys...); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *testNode) close() {
	n.stop()
	select {
	case err := <-n.done:
		n.done <- nil
		if err != nil {
			n.t.Errorf("node ended with: %v", err)
		}
	case <-time.After(patience):
		n.t.Error("node does not stop")
	}
}

// client is a Flight SQL client whose calls carry assertions, as those that come from an edge.
type client struct {
	*flightsql.Client
	n           *testNode
	assertion   wire.Assertion
	permissions wire.Permissions
	conn        net.Conn
	last        *lastTrailer
}

// lastTrailer is the trailer of the call that was begun last.
type lastTrailer struct {
	mu sync.Mutex
	md *metadata.MD
}

// follow returns an option that puts a call's trailer here.
func (l *lastTrailer) follow() grpc.CallOption {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.md = new(metadata.MD)
	return grpc.Trailer(l.md)
}

// trailer is a value from the trailer of the last call, which has ended.
func (c *client) trailer(key string) string {
	c.last.mu.Lock()
	defer c.last.mu.Unlock()
	return strings.Join(c.last.md.Get(key), ",")
}

func (n *testNode) client(session string) *client {
	return n.clientAs(session, wire.Permissions{Admin: true})
}

func (n *testNode) clientAs(session string, p wire.Permissions) *client {
	n.t.Helper()
	c := &client{n: n, permissions: p, last: &lastTrailer{}}
	c.assertion = wire.Assertion{User: "u1", Name: "ana", Tenant: "acme", Session: session, Permissions: p.Hash()}
	c.dial()
	return c
}

func (n *testNode) manager() *client {
	c := &client{n: n, assertion: wire.Assertion{Manager: true}, last: &lastTrailer{}}
	c.dial()
	return c
}

func (c *client) dial() {
	c.n.t.Helper()
	cl, err := flightsql.NewClient("passthrough:///node", nil, nil,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", c.n.socket)
			c.conn = conn
			return conn, err
		}),
		grpc.WithUnaryInterceptor(func(ctx context.Context, m string, req, rep any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return invoke(c.assert(ctx), m, req, rep, cc, append(opts, c.last.follow())...)
		}),
		grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return stream(c.assert(ctx), d, cc, m, append(opts, c.last.follow())...)
		}))
	if err != nil {
		c.n.t.Fatal(err)
	}
	c.Client = cl
	c.n.t.Cleanup(func() { cl.Close() })
}

// assert adds a fresh assertion, with a statement id of its own unless the test gave one.
func (c *client) assert(ctx context.Context) context.Context {
	a := c.assertion
	if a.Statement == "" {
		a.Statement = newID()
	}
	if a.Expires.IsZero() {
		a.Expires = time.Now().Add(time.Minute)
	}
	sealed, err := c.n.keys.Seal(wire.PurposeAssertion, a)
	if err != nil {
		c.n.t.Error(err)
	}
	set, err := c.n.keys.Seal(wire.PurposePermissions, c.permissions)
	if err != nil {
		c.n.t.Error(err)
	}
	return metadata.AppendToOutgoingContext(ctx, wire.AssertionKey, string(sealed), wire.PermissionsKey, string(set))
}

// exec runs a statement that must succeed and returns the rows it changed.
func (c *client) exec(sql string) int64 {
	c.n.t.Helper()
	rows, err := c.ExecuteUpdate(c.n.t.Context(), sql)
	if err != nil {
		c.n.t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

// tryExec runs a statement and returns its error.
func (c *client) tryExec(sql string) error {
	_, err := c.ExecuteUpdate(c.n.t.Context(), sql)
	return err
}

// query runs a query that must succeed and returns its rows, as text.
func (c *client) query(sql string) [][]string {
	c.n.t.Helper()
	rows, err := c.tryQuery(sql)
	if err != nil {
		c.n.t.Fatalf("%s: %v", sql, err)
	}
	return rows
}

func (c *client) tryQuery(sql string) ([][]string, error) {
	info, err := c.Execute(c.n.t.Context(), sql)
	if err != nil {
		return nil, err
	}
	return c.rows(info)
}

// rows fetches a result. It checks what every client relies on: one endpoint, and a stream of the
// schema that was told.
func (c *client) rows(info *flight.FlightInfo) ([][]string, error) {
	c.n.t.Helper()
	if len(info.Endpoint) != 1 || len(info.Endpoint[0].Location) != 0 {
		c.n.t.Errorf("flight info has endpoints %v, want one without location", info.Endpoint)
	}
	told, err := flight.DeserializeSchema(info.Schema, allocator())
	if err != nil {
		return nil, err
	}
	r, err := c.DoGet(c.n.t.Context(), info.Endpoint[0].Ticket)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	if !r.Schema().Equal(told) {
		c.n.t.Errorf("the stream's schema %v is not the one told, %v", r.Schema(), told)
	}
	var rows [][]string
	for r.Next() {
		rows = append(rows, text(r.RecordBatch())...)
	}
	return rows, r.Err()
}

func text(b arrow.RecordBatch) [][]string {
	rows := make([][]string, b.NumRows())
	for i := range rows {
		for _, column := range b.Columns() {
			rows[i] = append(rows[i], column.ValueStr(i))
		}
	}
	return rows
}

// one runs a query for a single value.
func (c *client) one(sql string) string {
	c.n.t.Helper()
	rows := c.query(sql)
	if len(rows) != 1 || len(rows[0]) != 1 {
		c.n.t.Fatalf("%s: got %v, want one value", sql, rows)
	}
	return rows[0][0]
}

// wantCode checks the code of an error, and the reason in the trailer of the last call.
func (c *client) wantCode(err error, code codes.Code, reason wire.Reason) {
	c.n.t.Helper()
	if status.Code(err) != code {
		c.n.t.Errorf("error is %v, want code %v", err, code)
	}
	if got := c.trailer(wire.ReasonKey); got != string(reason) {
		c.n.t.Errorf("reason is %q, want %q (error %v)", got, reason, err)
	}
}

func (c *client) wantState(want wire.State) {
	c.n.t.Helper()
	if got := c.trailer(wire.SessionKey); got != string(want) {
		c.n.t.Errorf("session is %q, want %q", got, want)
	}
}

// eventually waits until ok, and fails the test when that takes too long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %s", what, patience)
		}
		<-tick.C
	}
}

func times(n int, format string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return all
}

// tryQueryIn runs a query under a transaction id, whoever's it is.
func (c *client) tryQueryIn(id flightsql.Transaction, sql string) ([][]string, error) {
	command, err := anypb.New(&pb.CommandStatementQuery{Query: sql, TransactionId: id})
	if err != nil {
		return nil, err
	}
	raw, err := proto.Marshal(command)
	if err != nil {
		return nil, err
	}
	info, err := c.Client.Client.GetFlightInfo(c.n.t.Context(), &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: raw})
	if err != nil {
		return nil, err
	}
	return c.rows(info)
}

// wantCodeOnly checks a code where the driver does not read on to the trailer.
func (c *client) wantCodeOnly(err error, code codes.Code) {
	c.n.t.Helper()
	if status.Code(err) != code {
		c.n.t.Errorf("error is %v, want code %v", err, code)
	}
}
