package edge

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// shake does a Handshake with the headers and payload, and returns header, trailer and answer.
func shake(ctx context.Context, c flight.Client, payload []byte) (header, trailer metadata.MD, answer []byte, err error) {
	s, err := c.Handshake(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	// The answer may be there before the message is: that it is not wanted is no error.
	if err := s.Send(&flight.HandshakeRequest{Payload: payload}); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, nil, err
	}
	if err := s.CloseSend(); err != nil {
		return nil, nil, nil, err
	}
	if header, err = s.Header(); err != nil {
		return nil, nil, nil, err
	}
	r, err := s.Recv()
	if err != nil {
		return header, s.Trailer(), nil, err
	}
	if _, err = s.Recv(); errors.Is(err, io.EOF) {
		err = nil
	}
	return header, s.Trailer(), r.GetPayload(), err
}

func TestHandshake(t *testing.T) {
	s := newStack(t)
	s.serving(s.peer(backend.Dual))
	_, addr := s.edge()
	c := s.client(addr)
	first, _, _, err := shake(withHeaders(testContext(t), "authorization", basic("ana", password)), c.Client, nil)
	if err != nil {
		t.Fatal(err)
	}
	bearer := first.Get("authorization")[0]
	old, err := proto.Marshal(&pb.BasicAuth{Username: "ana", Password: password})
	if err != nil {
		t.Fatal(err)
	}
	raw := base64.RawStdEncoding.EncodeToString([]byte("ana@acme/bi:" + password))
	tests := map[string]struct {
		headers []string
		payload []byte
		err     string
	}{
		"basic":                 {headers: []string{"authorization", basic("ana", password)}},
		"basic without padding": {headers: []string{"authorization", "bAsIc " + raw}},
		"other header":          {headers: []string{"x-qod-authorization", basic("ana", password)}},
		"bearer":                {headers: []string{"authorization", bearer}},
		"bearer as password":    {headers: []string{"authorization", basic("anybody", strings.TrimPrefix(bearer, "Bearer "))}},
		"payload":               {payload: old},
		"nothing":               {err: "no credentials"},
		"wrong password":        {headers: []string{"authorization", basic("ana", "wrong")}, err: "wrong user name or password"},
		"unknown user":          {headers: []string{"authorization", basic("nobody", password)}, err: "wrong user name or password"},
		"unknown scheme":        {headers: []string{"authorization", "Digest x"}, err: "give Basic or Bearer"},
		"forged bearer":         {headers: []string{"authorization", bearer[:len(bearer)-4] + "AAAA"}, err: "the token is not known here"},
		"foreign token":         {headers: []string{"authorization", "Bearer eyJhbGciOi"}, err: "the token is not known here"},
		"not base64":            {headers: []string{"authorization", "Basic %%%"}, err: "not base64"},
	}
	sessions := map[string]bool{}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			header, trailer, answer, err := shake(withHeaders(testContext(t), tc.headers...), c.Client, tc.payload)
			if tc.err != "" {
				if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("err = %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			token := header.Get("authorization")
			if len(token) != 1 || !strings.HasPrefix(token[0], "Bearer ") || len(token[0]) > 1024 {
				t.Fatalf("header %v", header)
			}
			if got := trailer.Get("authorization"); len(got) != 1 || got[0] != token[0] {
				t.Errorf("the trailer %v differs from the header", got)
			}
			if (len(tc.payload) > 0) != (len(answer) > 0) {
				t.Errorf("answer %q", answer)
			}
			if sessions[token[0]] {
				t.Error("two handshakes have one session")
			}
			sessions[token[0]] = true
			if _, _, err := query(withHeaders(testContext(t), "authorization", token[0]), c, "SELECT who"); err != nil {
				t.Errorf("the bearer is not good: %v", err)
			}
		})
	}
}

func TestPasswordWithEveryCall(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	var header metadata.MD
	ctx := withHeaders(testContext(t), "authorization", basic("ana", password))
	info, err := c.Execute(ctx, "SELECT who", grpc.Header(&header))
	if err != nil {
		t.Fatal(err)
	}
	token := header.Get("authorization")
	if len(token) != 1 {
		t.Fatalf("no bearer to go on with: %v", header)
	}
	if who, _, err := fetch(ctx, c, info); err != nil || who != p.id {
		t.Errorf("a second call with the password: %q, %v", who, err)
	}
	before := p.took("GetFlightInfo")[1].assertion.Session // the first was asked for permissions
	if _, _, err := query(withHeaders(testContext(t), "authorization", token[0]), c, "SELECT who"); err != nil {
		t.Fatal(err)
	}
	if calls := p.took("GetFlightInfo"); calls[len(calls)-1].assertion.Session != before {
		t.Error("the bearer that came back is of another session")
	}
}

func TestTenantAndPool(t *testing.T) {
	s := newStack(t)
	s.serving(s.peer(backend.Dual))
	_, addr := s.edge()
	c := s.client(addr)
	tests := map[string]struct {
		user    string
		headers []string
		code    codes.Code
		text    string
		status  string
	}{
		"only grant":         {user: "ana"},
		"in the name":        {user: "ben@acme/bi"},
		"by header":          {user: "ben", headers: []string{"tenant", "acme", "pool", "bi"}},
		"header over name":   {user: "ben@acme/idle", headers: []string{"pool", "bi"}},
		"must choose":        {user: "ben", code: codes.InvalidArgument, text: "acme/bi, acme/idle", status: statusNoPool},
		"not granted":        {user: "ana", headers: []string{"pool", "idle"}, code: codes.PermissionDenied, text: "there is no pool acme/idle", status: statusNoPool},
		"no such pool":       {user: "ana", headers: []string{"pool", "nil"}, code: codes.PermissionDenied, text: "there is no pool acme/nil", status: statusNoPool},
		"another's tenant":   {user: "ana", headers: []string{"tenant", "zeta"}, code: codes.PermissionDenied, text: "no pool is granted", status: statusNoPool},
		"a pool of no name":  {user: "ana", headers: []string{"pool", "<b>"}, code: codes.PermissionDenied, text: "there is no pool", status: statusNoPool},
		"a pool without any": {user: "ben@acme/idle", code: codes.Unavailable, text: "pool acme/idle: 0 of 0 nodes serving", status: statusNoNode},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := len(s.history())
			_, _, err := query(withHeaders(s.login(c, tc.user), tc.headers...), c, "SELECT who")
			if status.Code(err) != tc.code || err != nil && !strings.Contains(err.Error(), tc.text) {
				t.Errorf("err = %v, want %s %q", err, tc.code, tc.text)
			}
			if tc.status == "" {
				return
			}
			rows := s.history()[before:]
			if len(rows) != 1 || rows[0].Status != tc.status || rows[0].User != strings.Split(tc.user, "@")[0] ||
				rows[0].Tenant != "acme" || strings.Contains(rows[0].Pool, "<") {
				t.Errorf("history %+v", rows)
			}
		})
	}
}

func TestChangesCountFromTheNextCall(t *testing.T) {
	s := newStack(t)
	s.serving(s.peer(backend.Dual))
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	try := func(want codes.Code) {
		t.Helper()
		if _, _, err := query(ctx, c, "SELECT who"); status.Code(err) != want {
			t.Errorf("err = %v, want %s", err, want)
		}
	}
	try(codes.OK)
	s.change("user", "u-ana", `{"tenant":"acme","name":"ana","disabled":true}`)
	try(codes.PermissionDenied)
	s.change("user", "u-ana", `{"tenant":"acme","name":"ana"}`)
	try(codes.OK)
	s.change("pool_grant", "g1", `{"tenant":"acme","pool":"bi","user":"ben"}`)
	try(codes.PermissionDenied)
	s.change("pool_grant", "g1", `{"tenant":"acme","pool":"bi","user":"ana"}`)
	s.change("tenant", "t", `{"name":"acme","disabled":true}`)
	try(codes.PermissionDenied)
	s.change("tenant", "t", `{"name":"acme"}`)
	s.change("pool", poolID, `{"tenant":"acme","name":"bi","tenant_db":"sales","suspended":true}`)
	try(codes.PermissionDenied)
	s.change("user", "u-ana", `{"tenant":"acme","name":"someone"}`)
	s.snap.Objects = s.snap.Objects[:len(s.snap.Objects)-2]
	s.directory.Swap(s.build())
	try(codes.Unauthenticated)
}

func TestBearerExpires(t *testing.T) {
	s := newStack(t)
	s.serving(s.peer(backend.Dual))
	_, addr := s.edge(func(c *Config) { c.BearerLife = time.Nanosecond })
	c := s.client(addr)
	_, _, err := query(s.login(c, "ana"), c, "SELECT who")
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the token expired") {
		t.Errorf("err = %v", err)
	}
}

func TestWhatReachesTheNode(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := withHeaders(s.login(c, "ana"), "pool", "bi", "qod-permissions-bin", "x", "qod-anything", "y", "x-request-id", "42",
		"x-qod-authorization", "secret", "cookie", "secret")
	if _, _, err := query(ctx, c, "SELECT who"); err != nil {
		t.Fatal(err)
	}
	for _, call := range append(p.took("GetFlightInfo"), p.took("DoGet")...) {
		for _, name := range []string{"authorization", "x-qod-authorization", "cookie", "qod-anything", "pool"} {
			if call.md.Get(name) != nil {
				t.Errorf("%s reached the node with %s", name, call.method)
			}
		}
		if got := call.md.Get("x-request-id"); len(got) != 1 {
			t.Errorf("a client's own header did not reach the node")
		}
		a := call.assertion
		if a.User != "u-ana" || a.Name != "ana" || a.Tenant != "acme" || a.Session == "" || a.Statement == "" || a.Manager {
			t.Errorf("assertion %+v", a)
		}
		if left := time.Until(a.Expires); left > assertionLife || left < 0 {
			t.Errorf("assertion good for %s", left)
		}
	}
	if sent := p.took("GetFlightInfo"); len(sent) != 2 || sent[0].md.Get(wire.PermissionsKey) != nil || sent[1].md.Get(wire.PermissionsKey) == nil {
		t.Errorf("the permission set must be sent when asked for, and only then: %d calls", len(sent))
	}
	if n := len(p.took("DoGet")); n != 1 {
		t.Errorf("a node that has the permission set was called %d times", n)
	}
}
