package edge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

const (
	poolID   = "11111111-0000-4000-8000-000000000001"
	password = "correct horse"
)

// stack is one or more edges before the same nodes.
type stack struct {
	t         testing.TB
	cluster   *wire.Keyring
	pool      *wire.Keyring
	directory *access.Holder
	sealer    *store.Sealer
	fleet     *backend.Fleet
	snap      store.Snapshot
	certs     string
	stop      map[*Edge]func() // ends an edge and waits for it

	mu      sync.Mutex
	records []Record
}

// newStack has tenant acme with pools bi and idle, and users ana, who may enter bi, and ben, who may
// enter both.
func newStack(t testing.TB) *stack {
	t.Helper()
	key := make([]byte, wire.KeySize)
	key[0] = 1
	cluster, err := wire.NewKeyring(wire.Key{ID: 1, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := cluster.Pool(poolID)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := store.NewSealer(make([]byte, store.MasterKeySize))
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{t: t, cluster: cluster, pool: pool, sealer: sealer, fleet: &backend.Fleet{}, certs: t.TempDir(), stop: map[*Edge]func(){}}
	s.snap.Secrets = map[store.SecretKey]store.Sealed{}
	s.add("tenant", "t", `{"name":"acme"}`)
	s.add("tenant_db", "d", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	s.add("pool", poolID, `{"tenant":"acme","name":"bi","tenant_db":"sales","max_concurrent_per_node":4}`)
	s.add("pool", "p-idle", `{"tenant":"acme","name":"idle","tenant_db":"sales"}`)
	s.add("pool_grant", "g1", `{"tenant":"acme","pool":"bi","user":"ana"}`)
	s.add("pool_grant", "g2", `{"tenant":"acme","pool":"*","user":"ben"}`)
	phc, err := access.Hash(password)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ana", "ben"} {
		s.add("user", "u-"+name, fmt.Sprintf(`{"tenant":"acme","name":%q}`, name))
		at := store.SecretKey{Object: "u-" + name, Attr: "password_verifier"}
		s.snap.Secrets[at] = sealer.Seal(at, []byte(phc))
	}
	s.directory = access.NewHolder(s.build())
	return s
}

func (s *stack) add(kind, id, spec string) {
	s.t.Helper()
	k, _ := schema.Lookup(kind)
	v, err := k.Decode([]byte(spec))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range s.snap.Objects {
		if s.snap.Objects[i].ID == id {
			s.snap.Objects[i].Spec = v
			return
		}
	}
	s.snap.Objects = append(s.snap.Objects, store.Object{ID: id, Kind: k, Spec: v})
}

func (s *stack) build() *access.Directory {
	s.t.Helper()
	d, err := access.New(&s.snap, s.sealer)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// change alters an object and makes the directory anew, as a commit does.
func (s *stack) change(kind, id, spec string) {
	s.t.Helper()
	s.add(kind, id, spec)
	s.directory.Swap(s.build())
}

func (s *stack) peer(role backend.Role) *peer {
	s.t.Helper()
	return startPeer(s.t, role, s.pool)
}

// serving publishes the peers as serving, and no others.
func (s *stack) serving(peers ...*peer) {
	members := make([]backend.Member, len(peers))
	for i, p := range peers {
		members[i] = p.member(backend.Serving)
	}
	s.publish(members...)
}

func (s *stack) publish(members ...backend.Member) {
	s.fleet.Publish(&backend.Snapshot{Pools: map[string][]backend.Member{poolID: members}})
}

// edge starts an edge with TLS and returns it with its address. It is stopped with the test.
func (s *stack) edge(alter ...func(*Config)) (*Edge, string) {
	s.t.Helper()
	certFile, keyFile, err := SelfSigned(s.certs, []string{"localhost", "127.0.0.1"})
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.t.Output(), nil))
	cert, err := LoadCertificate(certFile, keyFile, log)
	if err != nil {
		s.t.Fatal(err)
	}
	c := Config{
		Directory: s.directory, Fleet: s.fleet, Keyring: func() *wire.Keyring { return s.cluster }, Log: log,
		Certificate: cert, Record: s.record, Registerer: prometheus.NewRegistry(), NodeWait: 300 * time.Millisecond,
		DrainLimit: 5 * time.Second,
	}
	for _, f := range alter {
		f(&c)
	}
	e, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, l) }()
	s.stop[e] = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("Run: %v", err)
		}
	})
	s.t.Cleanup(s.stop[e])
	return e, l.Addr().String()
}

func (s *stack) record(r Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = append(s.records, r)
}

func (s *stack) history() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Record(nil), s.records...)
}

// transport is what a client needs to trust the stack's edges.
func (s *stack) transport() grpc.DialOption {
	pem, err := os.ReadFile(s.certs + "/edge.crt")
	if err != nil {
		s.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, ServerName: "localhost"}))
}

func (s *stack) client(addr string) *flightsql.Client {
	s.t.Helper()
	c, err := flightsql.NewClient(addr, nil, nil, s.transport(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// login returns a context with the bearer of a new session.
func (s *stack) login(c *flightsql.Client, user string) context.Context {
	s.t.Helper()
	// Not AuthenticateBasicToken: it reads the trailer before the call has ended, which is a race.
	ctx := testContext(s.t)
	header, _, _, err := shake(withHeaders(ctx, "authorization", basic(user, password)), c.Client, nil)
	if err != nil {
		s.t.Fatalf("log in as %s: %v", user, err)
	}
	return withHeaders(ctx, "authorization", header.Get("authorization")[0])
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func withHeaders(ctx context.Context, pairs ...string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// query runs a statement and returns the first value of the first row, and the number of rows.
func query(ctx context.Context, c *flightsql.Client, sql string) (string, int64, error) {
	info, err := c.Execute(ctx, sql)
	if err != nil {
		return "", 0, err
	}
	return fetch(ctx, c, info)
}

func fetch(ctx context.Context, c *flightsql.Client, info *flight.FlightInfo) (first string, rows int64, err error) {
	r, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return "", 0, err
	}
	defer r.Release()
	for r.Next() {
		b := r.RecordBatch()
		if text, ok := b.Column(0).(*array.String); ok && rows == 0 && b.NumRows() > 0 {
			first = text.Value(0)
		}
		rows += b.NumRows()
	}
	return first, rows, r.Err()
}

// eventually fails the test unless the condition comes true soon.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(10 * time.Second)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
