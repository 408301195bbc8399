package node

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/qod-io/qod/runtime/wire"
)

func TestAssertions(t *testing.T) {
	n := startNode(t, newLake(t))
	raw := pb.NewFlightServiceClient(plain(t, n))
	foreign, err := wire.NewKeyring(wire.Key{ID: 1, Key: []byte(strings.Repeat("f", wire.KeySize))})
	if err != nil {
		t.Fatal(err)
	}
	seal := func(ring *wire.Keyring, p wire.Purpose, v any) string {
		sealed, err := ring.Seal(p, v)
		if err != nil {
			t.Fatal(err)
		}
		return string(sealed)
	}
	good := wire.Assertion{User: "u1", Session: "s1", Permissions: wire.Permissions{Admin: true}.Hash(), Expires: time.Now().Add(time.Minute)}
	expired, nameless, unknown := good, good, good
	expired.Expires = time.Now().Add(-time.Second)
	nameless.Session = ""
	unknown.Permissions = "0123456789ab"
	admin := seal(n.keys, wire.PurposePermissions, wire.Permissions{Admin: true})
	tests := map[string]struct {
		md     []string
		code   codes.Code
		reason wire.Reason
	}{
		"good":                   {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, good), wire.PermissionsKey, admin}, codes.OK, ""},
		"none":                   {nil, codes.Unauthenticated, ""},
		"forged":                 {[]string{wire.AssertionKey, "\x01\x01nonsense and more nonsense"}, codes.Unauthenticated, ""},
		"of another pool":        {[]string{wire.AssertionKey, seal(foreign, wire.PurposeAssertion, good)}, codes.Unauthenticated, ""},
		"of another purpose":     {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeHandle, good)}, codes.Unauthenticated, ""},
		"expired":                {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, expired)}, codes.Unauthenticated, ""},
		"without session":        {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, nameless)}, codes.Unauthenticated, ""},
		"unknown permissions":    {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, unknown)}, codes.FailedPrecondition, wire.NeedPermissions},
		"other permissions":      {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, unknown), wire.PermissionsKey, admin}, codes.Unauthenticated, ""},
		"twice":                  {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, good), wire.AssertionKey, "x"}, codes.Unauthenticated, ""},
		"permissions remembered": {[]string{wire.AssertionKey, seal(n.keys, wire.PurposeAssertion, good)}, codes.OK, ""},
	}
	command, err := anypb.New(&pb.CommandStatementQuery{Query: "SELECT 1"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	first := func() { // so that the order of a map does not matter
		c := n.client("s1")
		c.query("SELECT 1")
	}
	first()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), test.md...)
			c := &client{n: n, last: &lastTrailer{}}
			_, err := raw.GetFlightInfo(ctx, &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: body}, c.last.follow())
			c.wantCode(err, test.code, test.reason)
		})
	}
}

func TestHandles(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	info, err := c.Execute(t.Context(), "SELECT 1")
	if err != nil {
		t.Fatal(err)
	}
	ticket := info.Endpoint[0].Ticket.Ticket
	for name, change := range map[string]func([]byte) []byte{
		"damaged": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"short":   func(b []byte) []byte { return b[:len(b)/2] },
		"nothing": func([]byte) []byte { return nil },
	} {
		bad := change(append([]byte(nil), ticket...))
		r, err := c.Client.Client.DoGet(t.Context(), &flight.Ticket{Ticket: bad})
		if err == nil {
			_, err = r.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s ticket: %v", name, err)
		}
	}
	s := &server{}
	s.keys.Store(n.keys)
	mint := func(h wire.Handle) []byte {
		h.Node, h.Session, h.User = n.cfg.ID, "s1", "u1"
		sealed, err := n.keys.Seal(wire.PurposeHandle, h)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	old := wire.Handle{Kind: wire.Ticket, SQL: "SELECT 1", ReadOnly: true, Issued: time.Now().Add(-2 * handleTTL)}
	if _, err := s.redeem(&call{Assertion: c.assertion}, wire.Ticket, mint(old)); asFault(err).code != codes.NotFound {
		t.Errorf("an old ticket: %v", err)
	}
	wrong := wire.Handle{Kind: wire.Prepared, SQL: "SELECT 1", Issued: time.Now()}
	if _, err := s.redeem(&call{Assertion: c.assertion}, wire.Ticket, mint(wrong)); asFault(err).code != codes.InvalidArgument {
		t.Errorf("a handle of another kind: %v", err)
	}
}

func TestWithoutPermissions(t *testing.T) {
	n := startNode(t, newLake(t))
	n.client("s0").exec("CREATE TABLE t (i INTEGER)")
	c := n.clientAs("s1", wire.Permissions{})
	_, err := c.tryQuery("SELECT * FROM t")
	c.wantCode(err, codes.PermissionDenied, wire.Denied)
	info, err := c.GetTables(t.Context(), &flightsql.GetTablesOpts{})
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := c.rows(info); err != nil || len(rows) != 0 {
		t.Errorf("tables are listed: %v, %v", rows, err)
	}
}
