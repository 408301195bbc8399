package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/embedded"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/runtime/wire"
)

// bench is a running installation, and the keys to reach its node past the edge.
type bench struct {
	qod, work, state string
	store            *postgres.Store
	keys             *wire.Keyring // of the pool
	clients          []*client
}

func open(ctx context.Context, qod, work string) (*bench, error) {
	b := &bench{qod: qod, work: work, state: os.Getenv("QOD_STATE_DIR")}
	server, running, err := embedded.Find(embedded.Config{StateDir: b.state, RunDir: os.Getenv("QOD_RUN_DIR")})
	if err != nil || !running {
		return nil, errors.Join(errors.New("the private Postgres does not run"), err)
	}
	url, err := server.URL(server.Database)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(b.state, "master.key"))
	if err != nil {
		return nil, err
	}
	master, err := hex.DecodeString(string(bytes.TrimSpace(raw)))
	if err != nil {
		return nil, err
	}
	sealer, err := store.NewSealer(master)
	if err != nil {
		return nil, err
	}
	b.store, err = postgres.OpenReadOnly(ctx, postgres.Config{URL: url, Sealer: sealer, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	open, err := store.ClusterKeys(ctx, b.store, sealer, false)
	if err != nil {
		return nil, err
	}
	ring := make([]wire.Key, len(open))
	for n, k := range open {
		ring[n] = wire.Key(k)
	}
	cluster, err := wire.NewKeyring(ring...)
	if err != nil {
		return nil, err
	}
	node, err := b.node(ctx)
	if err != nil {
		return nil, err
	}
	b.keys, err = cluster.Pool(node.PoolID)
	return b, err
}

func (b *bench) node(ctx context.Context) (store.Node, error) {
	nodes, err := b.store.ListNodes(ctx)
	if err != nil || len(nodes) != 1 {
		return store.Node{}, errors.Join(fmt.Errorf("want one node, have %d", len(nodes)), err)
	}
	return nodes[0], nil
}

func (b *bench) close() {
	for _, c := range b.clients {
		c.close()
	}
	b.store.Close()
}

// client is a connection that runs statements one after the other.
type client struct {
	*flightsql.Client
	ctx func() context.Context
}

func (c *client) close() { _ = c.Close() } // the process ends soon

func (b *bench) pair(ctx context.Context) (direct, edge *client, err error) {
	if direct, err = b.direct(ctx); err != nil {
		return nil, nil, err
	}
	if edge, err = b.edge(ctx); err != nil {
		return nil, nil, err
	}
	b.clients = append(b.clients, direct, edge)
	return direct, edge, nil
}

const maxMessage = 64 << 20

// direct connects to the node's socket and seals its own assertions, as the edge does.
func (b *bench) direct(ctx context.Context) (*client, error) {
	node, err := b.node(ctx)
	if err != nil {
		return nil, err
	}
	c, err := flightsql.NewClient(node.Endpoint, nil, nil,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	all := wire.Permissions{Admin: true}
	set, err := b.keys.Seal(wire.PurposePermissions, all)
	if err != nil {
		return nil, err
	}
	session, hash := uuid.NewString(), all.Hash()
	return &client{Client: c, ctx: func() context.Context {
		assertion, err := b.keys.Seal(wire.PurposeAssertion, wire.Assertion{
			User: administrator, Name: administrator, Tenant: "acme", Session: session, Statement: uuid.NewString(), Permissions: hash,
			Expires: time.Now().Add(30 * time.Second),
		})
		if err != nil {
			panic(err) // strings and a time always seal
		}
		return metadata.AppendToOutgoingContext(ctx, wire.AssertionKey, string(assertion), wire.PermissionsKey, string(set))
	}}, nil
}

// administrator is the user to whom everything is allowed.
const administrator = "bench"

// edge connects as any client does: TLS and a bearer.
func (b *bench) edge(ctx context.Context) (*client, error) { return b.login(ctx, administrator) }

func (b *bench) login(ctx context.Context, user string) (*client, error) {
	pem, err := os.ReadFile(filepath.Join(b.state, "tls", "edge.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	c, err := flightsql.NewClient(os.Getenv("QOD_FLIGHT_LISTEN"), nil, nil,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, err
	}
	authorized, err := c.Client.AuthenticateBasicToken(ctx, user+"@acme/bi", os.Getenv("QOD_VAR_password"))
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &client{Client: c, ctx: func() context.Context { return authorized }}, nil
}

func (c *client) query(sql string) (int64, error) {
	info, err := c.Execute(c.ctx(), sql)
	if err != nil {
		return 0, err
	}
	r, err := c.DoGet(c.ctx(), info.Endpoint[0].Ticket)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	var rows int64
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if err := r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return rows, err
	}
	return rows, nil
}

// time measures one statement.
func (c *client) time(sql string) (time.Duration, error) {
	start := time.Now()
	_, err := c.query(sql)
	return time.Since(start), err
}

// times measures so many statements, which next gives.
func (c *client) times(n int, next func() string) ([]time.Duration, error) {
	out := make([]time.Duration, n)
	for i := range out {
		var err error
		if out[i], err = c.time(next()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (b *bench) memory() error {
	node, err := b.node(context.Background())
	if err != nil {
		return err
	}
	serve, err := b.serving()
	if err != nil {
		return err
	}
	fmt.Printf("\n%-34s %9d MiB node, %d MiB serve\n", "RSS after all that", rss(node.PID), rss(serve.PID))
	return nil
}

type serving struct{ PID int }

func (b *bench) serving() (serving, error) {
	files, err := filepath.Glob(filepath.Join(b.state, "serves", "*.json"))
	if err != nil || len(files) != 1 {
		return serving{}, errors.Join(fmt.Errorf("want one serve, have %d", len(files)), err)
	}
	raw, err := os.ReadFile(files[0])
	if err != nil {
		return serving{}, err
	}
	var s serving
	return s, json.Unmarshal(raw, &s)
}

func rss(pid int) int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0]) // the kernel's own form
	return kib >> 10
}

// starts measures from the exec of serve to its first answer.
func (b *bench) starts(ctx context.Context) error {
	fmt.Printf("\n%-34s", "exec of serve to first answer")
	for _, cold := range []bool{false, true} {
		var times []float64
		for range rounds {
			took, err := b.restart(ctx, cold)
			if err != nil {
				return err
			}
			times = append(times, took.Seconds())
		}
		name := "live nodes"
		if cold {
			name = "cold nodes"
		}
		fmt.Printf(" %9.3f s %s", median(times), name)
	}
	fmt.Println()
	return nil
}

// settle is given to the dead, so that their end is not measured.
const settle = 300 * time.Millisecond

// restart kills serve, and for a cold start the node too, and starts serve again.
func (b *bench) restart(ctx context.Context, cold bool) (time.Duration, error) {
	old, err := b.serving()
	if err != nil {
		return 0, err
	}
	if err := syscall.Kill(old.PID, syscall.SIGKILL); err != nil {
		return 0, err
	}
	if cold {
		node, err := b.node(ctx)
		if err != nil {
			return 0, err
		}
		if err := syscall.Kill(node.PID, syscall.SIGKILL); err != nil {
			return 0, err
		}
	}
	if err := os.Remove(filepath.Join(b.state, "serves", strconv.Itoa(old.PID)+".json")); err != nil {
		return 0, err
	}
	<-time.After(settle)
	cmd := exec.CommandContext(ctx, b.qod, "-C", b.work, "serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for time.Since(start) < time.Minute {
		c, err := b.edge(ctx)
		if err == nil {
			_, err = c.query("SELECT 1")
			c.close()
		}
		if err == nil {
			return time.Since(start), nil
		}
		<-time.After(2 * time.Millisecond)
	}
	return 0, errors.New("serve does not answer")
}
