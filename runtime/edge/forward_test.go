package edge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// execution is something a client does, and the row it makes.
type execution struct {
	run  func() error
	want Record // class, status and rows; no status: no row
}

func executions(t *testing.T, ctx context.Context, c *flightsql.Client) map[string]execution {
	prepared := func(sql string, run func(*flightsql.PreparedStatement) error) error {
		st, err := c.Prepare(ctx, sql)
		if err != nil {
			return err
		}
		return errors.Join(run(st), st.Close(ctx))
	}
	return map[string]execution{
		"read":  {func() error { _, _, err := query(ctx, c, "SELECT who"); return err }, Record{Class: "read", Status: "ok"}},
		"write": {func() error { _, _, err := query(ctx, c, "INSERT a"); return err }, Record{Class: "write", Status: "ok", Rows: 7}},
		"update": {func() error {
			n, err := c.ExecuteUpdate(ctx, "UPDATE a")
			if n != 7 {
				t.Errorf("%d rows", n)
			}
			return err
		}, Record{Class: "write", Status: "ok", Rows: 7}},
		"prepared read": {func() error {
			return prepared("SELECT who", func(st *flightsql.PreparedStatement) error {
				info, err := st.Execute(ctx)
				if err != nil {
					return err
				}
				_, _, err = fetch(ctx, c, info)
				return err
			})
		}, Record{Class: "read", Status: "ok"}},
		"prepared update": {func() error {
			return prepared("DELETE a", func(st *flightsql.PreparedStatement) error { _, err := st.ExecuteUpdate(ctx); return err })
		}, Record{Class: "write", Status: "ok", Rows: 7}},
		"failing": {func() error {
			_, err := c.Execute(ctx, "SELECT fail")
			text := status.Convert(err).Message()
			if status.Code(err) != codes.InvalidArgument || len(text) > maxMessage || !utf8.ValidString(text) {
				t.Errorf("%d bytes: %v", len(text), status.Code(err))
			}
			return nil
		}, Record{Class: "read", Status: "permanent"}},
		"metadata": {func() error {
			info, err := c.GetCatalogs(ctx)
			if err != nil {
				return err
			}
			_, _, err = fetch(ctx, c, info)
			return err
		}, Record{}},
		"schema only": {func() error {
			if _, err := c.GetExecuteSchema(ctx, "SELECT who"); status.Code(err) != codes.Unimplemented {
				t.Errorf("what the node answers to GetSchema came as %v", err)
			}
			return nil
		}, Record{}},
		"commit": {func() error {
			tx, err := c.BeginTransaction(ctx)
			if err != nil {
				return err
			}
			return tx.Commit(ctx)
		}, Record{Class: "transaction", Status: "ok"}},
	}
}

func TestStatementsAndTheirHistory(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	tests := executions(t, ctx, c)
	expected := 0
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := expected
			if err := tc.run(); err != nil {
				t.Fatal(err)
			}
			expected += min(len(tc.want.Status), 1)
			eventually(t, "the row is there", func() bool { return len(s.history()) >= expected })
			rows := s.history()[before:]
			if len(rows) != expected-before {
				t.Fatalf("history has %d rows: %+v", len(rows), rows)
			}
			if len(rows) == 0 {
				return
			}
			r := rows[0]
			if r.Class != tc.want.Class || r.Status != tc.want.Status || r.Rows != tc.want.Rows {
				t.Errorf("history has %+v", r)
			}
			if r.Tenant != "acme" || r.Pool != "bi" || r.User != "ana" || r.Node != p.id || r.ID == "" || r.SQL == "" || r.Started.IsZero() {
				t.Errorf("history has %+v", r)
			}
		})
	}
}

// collect returns the frames of a DoGet as they are on the wire.
func collect(ctx context.Context, conn *grpc.ClientConn, ticket *flight.Ticket) ([][]byte, error) {
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, service+"DoGet",
		grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(64<<20))
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(ticket); err != nil {
		return nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	var frames [][]byte
	for {
		var f frame
		err := s.RecvMsg(&f)
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return nil, err
		}
		frames = append(frames, bytes.Clone(flat(&f)))
		f.free()
	}
}

func TestFramesAreForwardedAsTheyAre(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	info, err := c.Execute(ctx, "SELECT rows 20")
	if err != nil {
		t.Fatal(err)
	}
	ticket := info.Endpoint[0].Ticket
	through, err := grpc.NewClient(addr, s.transport())
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	direct, err := wire.Dial(p.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	got, err := collect(ctx, through, ticket)
	if err != nil {
		t.Fatal(err)
	}
	assertion := p.took("DoGet")[0].md.Get(wire.AssertionKey)[0]
	want, err := collect(metadata.AppendToOutgoingContext(testContext(t), wire.AssertionKey, assertion), direct, ticket)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 21 || len(got) != len(want) {
		t.Fatalf("%d frames through the edge, %d without", len(got), len(want))
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("frame %d differs", i)
		}
	}
}

// A first message without a descriptor ends the process of a plain arrow-go server.
func TestMalformedCalls(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	put := func(first *flight.FlightData) error {
		d, err := c.Client.DoPut(ctx)
		if err != nil {
			return err
		}
		if err := d.Send(first); err != nil {
			return err
		}
		_, err = d.Recv()
		return err
	}
	action := func(kind string, body []byte) error {
		a, err := c.Client.DoAction(ctx, &flight.Action{Type: kind, Body: body})
		if err != nil {
			return err
		}
		_, err = a.Recv()
		return err
	}
	get := func(ticket []byte) error {
		g, err := c.Client.DoGet(ctx, &flight.Ticket{Ticket: ticket})
		if err != nil {
			return err
		}
		_, err = g.Recv()
		return err
	}
	tests := map[string]func() error{
		"put without descriptor": func() error { return put(&flight.FlightData{DataHeader: []byte("x")}) },
		"put of nothing":         func() error { return put(&flight.FlightData{}) },
		"put with a bad one": func() error {
			return put(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Cmd: []byte{0xff}}})
		},
		"put with an empty one":    func() error { return put(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{}}) },
		"no such action":           func() error { return action("Reboot", nil) },
		"the manager's action":     func() error { return action(wire.DrainAction, nil) },
		"action without body":      func() error { return action("CreatePreparedStatement", nil) },
		"cancel of nothing":        func() error { return action("CancelFlightInfo", nil) },
		"cancel without a ticket":  func() error { return action("CancelQuery", nil) },
		"empty ticket":             func() error { return get(nil) },
		"ticket of noise":          func() error { return get([]byte("SELECT 1")) },
		"descriptor without a cmd": func() error { _, err := c.Client.GetFlightInfo(ctx, &flight.FlightDescriptor{}); return err },
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			if err := run(); status.Code(err) != codes.InvalidArgument {
				t.Errorf("err = %v", err)
			}
		})
	}
	if _, _, err := query(ctx, c, "SELECT who"); err != nil {
		t.Errorf("after all that: %v", err)
	}
	if n := len(p.took("DoAction")) + len(p.took("DoPut")); n > 0 {
		t.Errorf("%d malformed calls reached the node", n)
	}
}

func TestUnsupportedMethods(t *testing.T) {
	s := newStack(t)
	_, addr := s.edge()
	c := s.client(addr)
	x, err := c.Client.DoExchange(testContext(t))
	if err == nil {
		_, err = x.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("DoExchange: %v", err)
	}
	if _, err := c.Client.PollFlightInfo(testContext(t), &flight.FlightDescriptor{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("PollFlightInfo: %v", err)
	}
	l, err := c.Client.ListActions(testContext(t), &flight.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		a, err := l.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, a.GetType())
	}
	if got := strings.Join(names, " "); got != strings.Join(actions(), " ") {
		t.Errorf("actions %s", got)
	}
}

// Forged, foreign and outlived handles have a defined answer, and never reach a node.
func TestHandlesOfOthers(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ana, ben := s.login(c, "ana"), withHeaders(s.login(c, "ben"), "pool", "bi")
	info, err := c.Execute(ana, "SELECT who")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := s.cluster.Pool("another pool")
	if err != nil {
		t.Fatal(err)
	}
	ticket := func(keys *wire.Keyring, h wire.Handle) *flight.Ticket {
		h.Node, h.Incarnation, h.User, h.Session, h.Issued = p.id, p.incarnation, "u-ana", "x", time.Now()
		sealed, err := keys.Seal(wire.PurposeHandle, h)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := flightsql.CreateStatementQueryTicket(sealed)
		if err != nil {
			t.Fatal(err)
		}
		return &flight.Ticket{Ticket: raw}
	}
	bent := proto.Clone(info.Endpoint[0].Ticket).(*flight.Ticket)
	bent.Ticket[len(bent.Ticket)-1] ^= 1
	tests := map[string]struct {
		ctx    context.Context
		ticket *flight.Ticket
	}{
		"another user's": {ben, info.Endpoint[0].Ticket},
		"bent":           {ana, bent},
		"another pool's": {ana, ticket(foreign, wire.Handle{Kind: wire.Ticket, SQL: "SELECT who", ReadOnly: true})},
		"another kind":   {ana, ticket(s.pool, wire.Handle{Kind: wire.Prepared, SQL: "SELECT who", ReadOnly: true})},
	}
	before := len(p.took("DoGet"))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := fetch(tc.ctx, c, &flight.FlightInfo{Endpoint: []*flight.FlightEndpoint{{Ticket: tc.ticket}}})
			if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "unknown or expired handle") {
				t.Errorf("err = %v", err)
			}
		})
	}
	if n := len(p.took("DoGet")) - before; n != 0 {
		t.Errorf("%d of them reached the node", n)
	}
	if who, _, err := fetch(ana, c, info); err != nil || who != p.id {
		t.Errorf("the true one: %q, %v", who, err)
	}
	cancelled, err := c.CancelFlightInfo(ana, &flight.CancelFlightInfoRequest{Info: info})
	if err != nil || cancelled.Status != flight.CancelStatusCancelled {
		t.Errorf("cancel by handle: %v, %v", cancelled, err)
	}
}
