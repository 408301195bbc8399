package test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// client is a Go client with one channel and one session, as an application has them.
type client struct {
	*flightsql.Client
	ctx context.Context // with the session's bearer
}

// login connects to an address and logs in as a user of the quickstart.
func (i *installation) login(t testing.TB, address, user string, options ...grpc.DialOption) *client {
	t.Helper()
	return i.loginAs(t, address, user+"@acme/bi", secrets[user+"_password"], options...)
}

// loginAs is login as any user of any pool.
func (i *installation) loginAs(t testing.TB, address, user, password string, options ...grpc.DialOption) *client {
	t.Helper()
	c := i.dial(t, address, options...)
	ctx, err := c.Client.Client.AuthenticateBasicToken(t.Context(), user, password)
	if err != nil {
		t.Fatal(err)
	}
	c.ctx = ctx
	return c
}

// dial connects without logging in.
func (i *installation) dial(t testing.TB, address string, options ...grpc.DialOption) *client {
	t.Helper()
	quick := backoff.DefaultConfig
	quick.BaseDelay, quick.MaxDelay = quick.BaseDelay/20, quick.BaseDelay
	options = append(options,
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: i.roots(t), MinVersion: tls.VersionTLS12})),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: quick}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	c, err := flightsql.NewClient(address, nil, nil, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // its server may be gone
	return &client{Client: c, ctx: t.Context()}
}

// roots is what clients trust.
func (i *installation) roots(t testing.TB) *x509.CertPool {
	t.Helper()
	pem, err := os.ReadFile(i.certificate())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return roots
}

// as returns a client of another address with the same session.
func (c *client) as(t testing.TB, i *installation, address string) *client {
	t.Helper()
	other := i.dial(t, address)
	md, _ := metadata.FromOutgoingContext(c.ctx)
	other.ctx = metadata.NewOutgoingContext(t.Context(), md)
	return other
}

// query runs a statement to its end and returns the number of rows and the first value of the first.
func (c *client) query(sql string) (rows int64, first string, err error) {
	info, err := c.Execute(c.ctx, sql)
	if err != nil {
		return 0, "", err
	}
	r, err := c.DoGet(c.ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return 0, "", err
	}
	defer r.Release()
	return drain(r)
}

func drain(r *flight.Reader) (rows int64, first string, err error) {
	for r.Next() {
		batch := r.RecordBatch()
		if rows == 0 && batch.NumRows() > 0 {
			first = batch.Column(0).ValueStr(0)
		}
		rows += batch.NumRows()
	}
	if err := r.Err(); err != nil && err != io.EOF {
		return rows, first, err
	}
	return rows, first, nil
}

// value runs a statement that must work and returns its first value.
func (c *client) value(t testing.TB, sql string) string {
	t.Helper()
	_, first, err := c.query(sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return first
}

// run runs a statement that must work.
func (c *client) run(t testing.TB, format string, args ...any) {
	t.Helper()
	c.value(t, fmt.Sprintf(format, args...))
}

// runFile runs the statements of a file, which must work.
func (c *client) runFile(t testing.TB, name string) {
	t.Helper()
	for statement := range strings.SplitSeq(readFile(t, name), ";\n") {
		c.run(t, "%s", statement)
	}
}
