package edge

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// world is a stack with a node, an edge whose events are kept, and a client.
type world struct {
	*stack
	p      *peer
	c      *flightsql.Client
	events func() []Event
}

func newWorld(t *testing.T, alter ...func(*Config)) *world {
	t.Helper()
	s := newStack(t)
	w := &world{stack: s, p: s.peer(backend.Dual)}
	s.serving(w.p)
	var kept []Event
	keep := func(c *Config) {
		c.Audit = func(e Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			kept = append(kept, e)
		}
	}
	w.events = func() []Event {
		s.mu.Lock()
		defer s.mu.Unlock()
		return append([]Event(nil), kept...)
	}
	_, addr := s.edge(append(alter, keep)...)
	w.c = s.client(addr)
	return w
}

func (w *world) swap() { w.directory.Swap(w.build()) }

// event returns the newest event of that action.
func (w *world) event(action string) Event {
	w.t.Helper()
	all := w.events()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Action == action {
			return all[i]
		}
	}
	w.t.Fatalf("no %s among %+v", action, all)
	return Event{}
}

func (w *world) want(ctx context.Context, code codes.Code, text string) {
	w.t.Helper()
	_, _, err := query(ctx, w.c, "SELECT who")
	if status.Code(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		w.t.Errorf("err = %v, want %s %q", err, code, text)
	}
}

// bearer opens the bearer that a context carries.
func (w *world) bearer(token string) wire.Bearer {
	w.t.Helper()
	b, err := access.OpenBearer(w.cluster, strings.TrimPrefix(token, "Bearer "))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// begin logs in with an authorization and returns a context with the bearer, and what it says.
func (w *world) begin(authorization string) (context.Context, wire.Bearer) {
	w.t.Helper()
	header, _, _, err := shake(withHeaders(testContext(w.t), "authorization", authorization), w.c.Client, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	token := header.Get("authorization")[0]
	return withHeaders(testContext(w.t), "authorization", token), w.bearer(token)
}

func TestPersonalAccessToken(t *testing.T) {
	w := newWorld(t)
	row, secret, err := access.NewToken("u-ana", "laptop", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w.snap.Tokens = []store.Token{row}
	w.swap()
	var sessions []context.Context
	for name, authorization := range map[string]string{
		"as password": basic("ana@acme/bi", secret), "as bearer": "Bearer " + secret, "of anybody": basic("token", secret),
	} {
		ctx, b := w.begin(authorization)
		if b.User != "u-ana" || b.Token != row.ID || b.Expires.After(row.Expires) {
			t.Errorf("%s: bearer %+v", name, b)
		}
		w.want(ctx, codes.OK, "")
		w.want(withHeaders(testContext(t), "authorization", authorization), codes.OK, "")
		sessions = append(sessions, ctx)
	}
	if e := w.event(actionLogin); e.User != "ana" || e.Tenant != "acme" || e.Realm != access.RealmToken || e.Detail != "token "+row.ID || e.From != "127.0.0.1" {
		t.Errorf("audit %+v", e)
	}
	derived, b := w.begin("Bearer " + w.bearerOf(sessions[0]))
	if b.Token != row.ID {
		t.Errorf("a bearer's bearer %+v", b)
	}
	w.snap.Tokens[0].Revoked = time.Now()
	w.swap()
	for _, ctx := range append(sessions, derived) {
		w.want(ctx, codes.Unauthenticated, "the token that began the session was revoked")
	}
	w.want(withHeaders(testContext(t), "authorization", "Bearer "+secret), codes.Unauthenticated, "the token was revoked")
	if e := w.event(actionFailure); e.User != "ana" || e.Code != "token_revoked" {
		t.Errorf("audit %+v", e)
	}
	for _, e := range w.events() {
		if text := fmt.Sprintf("%+v", e); strings.Contains(text, secret) {
			t.Errorf("the audit has the token: %s", text)
		}
	}
}

// Nothing in a session would keep SQL to reading, so a read-only token begins none; nor does what REST gave for one.
func TestReadOnlyTokenRunsNoSQL(t *testing.T) {
	w := newWorld(t)
	row, secret, err := access.NewToken("u-ana", "dashboard", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	row.ReadOnly = true
	w.snap.Tokens = []store.Token{row}
	w.swap()
	bearer, err := access.SealBearer(w.cluster, wire.Bearer{
		Session: "s", User: "u-ana", Token: row.ID, Issued: time.Now(), Expires: time.Now().Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, authorization := range []string{"Bearer " + secret, basic("ana@acme/bi", secret), "Bearer " + bearer, basic("ana@acme/bi", bearer)} {
		w.want(withHeaders(testContext(t), "authorization", authorization), codes.Unauthenticated, "the token is read-only")
	}
	if e := w.event(actionFailure); e.User != "ana" || e.Code != "token_read_only" || e.Detail != "token "+row.ID {
		t.Errorf("audit %+v", e)
	}
}

// bearerOf returns the bearer in the context's headers.
func (w *world) bearerOf(ctx context.Context) string {
	w.t.Helper()
	md, _ := metadata.FromOutgoingContext(ctx)
	return strings.TrimPrefix(header(md, "authorization"), "Bearer ")
}

func TestRevokedSessions(t *testing.T) {
	w := newWorld(t)
	first, b := w.begin(basic("ana", password))
	derived, d := w.begin("Bearer " + w.bearerOf(first))
	other, _ := w.begin(basic("ana", password))
	if d.Root != b.Session || d.Session == b.Session || !d.Issued.Equal(b.Issued) || !d.Expires.Equal(b.Expires) {
		t.Errorf("a bearer %+v of %+v", d, b)
	}
	w.snap.Revoked = []store.Revocation{{Session: b.Session}}
	w.swap()
	w.want(first, codes.Unauthenticated, "the session was revoked")
	w.want(derived, codes.Unauthenticated, "the session was revoked")
	w.want(other, codes.OK, "")
	if e := w.event(actionRefused); e.User != "ana" || e.Code != "session_revoked" || e.Object != "session "+d.Session {
		t.Errorf("audit %+v", e)
	}
	w.snap.Revoked = []store.Revocation{{User: "u-ana", At: time.Now()}}
	w.swap()
	w.want(other, codes.Unauthenticated, "the session was revoked")
	again, _ := w.begin(basic("ana", password))
	w.want(again, codes.OK, "")
	at := store.SecretKey{Object: "u-ana", Attr: "password_verifier"}
	w.snap.Secrets[at] = w.sealer.Seal(at, []byte("another"))
	w.swap()
	w.want(again, codes.Unauthenticated, "the password was changed")
}

func TestWhatRunsEndsWithItsUser(t *testing.T) {
	w := newWorld(t)
	disable := func(how bool) {
		w.change("user", "u-ana", fmt.Sprintf(`{"tenant":"acme","name":"ana","disabled":%t}`, how))
	}
	ctx, _ := w.begin(basic("ana", password))
	idle, begun := w.begin(basic("ana", password))
	kept, _ := w.begin(basic("ben@acme/bi", password))
	for _, open := range []context.Context{idle, kept} {
		if _, err := w.c.ExecuteUpdate(open, "BEGIN"); err != nil {
			t.Fatal(err)
		}
	}
	failed := make(chan error, 1)
	go func() {
		_, _, err := query(ctx, w.c, "SELECT hang")
		failed <- err
	}()
	for <-w.p.reached != "SELECT hang" {
	}
	start := time.Now()
	disable(true)
	err := <-failed
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "cancelled: user ana is disabled") {
		t.Errorf("the statement ended with %v", err)
	}
	<-w.p.cancelled
	eventually(t, "the idle transaction is rolled back", func() bool { return w.p.state(begun.Session) == wire.Free })
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %s", took)
	}
	if e := w.event(actionCancelled); e.User != "ana" || e.Code != "disabled" || e.SQL != "SELECT hang" {
		t.Errorf("audit %+v", e)
	}
	if rows := w.history(); rows[len(rows)-1].Status != statusCancelled {
		t.Errorf("history %+v", rows[len(rows)-1])
	}
	disable(false)
	w.want(idle, codes.Unauthenticated, "closed and rolled back")
	w.want(ctx, codes.Unauthenticated, "closed and rolled back")
	if _, err := w.c.ExecuteUpdate(kept, "COMMIT"); err != nil {
		t.Errorf("another user's transaction: %v", err)
	}
	if calls := w.p.took("DoAction"); len(calls) != 1 || calls[0].assertion.Session != begun.Session || calls[0].assertion.User != "u-ana" {
		t.Errorf("%d sessions were closed: %+v", len(calls), calls)
	}
}

func TestRunningStatementOfARevokedSession(t *testing.T) {
	w := newWorld(t)
	ctx, b := w.begin(basic("ana", password))
	if _, err := w.c.ExecuteUpdate(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := w.c.ExecuteUpdate(ctx, "HANG")
		failed <- err
	}()
	for <-w.p.reached != "HANG" {
	}
	w.snap.Revoked = []store.Revocation{{Session: b.Session}}
	w.swap()
	if err := <-failed; status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "cancelled: the session was revoked") {
		t.Errorf("the statement ended with %v", err)
	}
	eventually(t, "its transaction is rolled back", func() bool { return w.p.state(b.Session) == wire.Free })
}

func TestLoginsAreAudited(t *testing.T) {
	w := newWorld(t)
	try := func(user, secret string) {
		_, _, _, err := shake(withHeaders(testContext(t), "authorization", basic(user, secret)), w.c.Client, nil)
		if status.Code(err) != codes.Unauthenticated || !strings.HasSuffix(err.Error(), access.ErrUnauthenticated.Error()) {
			t.Errorf("%s: %v", user, err)
		}
	}
	_, b := w.begin(basic("ana@acme/bi", password))
	if e := w.event(actionLogin); e.Object != "session "+b.Session || e.Realm != access.RealmPassword {
		t.Errorf("audit %+v", e)
	}
	for range 4 {
		try("ana", "wrong")
	}
	if e := w.event(actionFailure); e.User != "ana" || e.Tenant != "acme" || e.Code != "password" || e.From != "127.0.0.1" {
		t.Errorf("audit %+v", e)
	}
	try("ana", "wrong")
	if e := w.event(actionLockout); e.User != "ana" || !strings.Contains(e.Detail, "1s") {
		t.Errorf("audit %+v", e)
	}
	try("ana", password) // it does not count, and nobody is told so
	if e := w.event(actionFailure); e.Code != "locked" {
		t.Errorf("audit %+v", e)
	}
	try("hunter2 is my password", "x")
	if e := w.event(actionFailure); e.User != "?" || e.Code != "unknown_user" {
		t.Errorf("audit %+v", e)
	}
	for range 2 * mostFailures {
		try("nobody", "x")
	}
	failures := 0
	for _, e := range w.events() {
		if e.Code == "unknown_user" {
			failures++
		}
	}
	if failures > 2*mostFailures { // a minute may have begun in between
		t.Errorf("%d failures of one address are kept", failures)
	}
}

func TestRefusalsAreAudited(t *testing.T) {
	w := newWorld(t)
	ctx, _ := w.begin(basic("ana", password))
	for name, call := range map[string]func(sql string) error{
		"GetFlightInfo": func(sql string) error { _, err := w.c.Execute(ctx, sql); return err },
		"GetSchema":     func(sql string) error { _, err := w.c.GetExecuteSchema(ctx, sql); return err },
		"DoPut":         func(sql string) error { _, err := w.c.ExecuteUpdate(ctx, sql); return err },
		"prepare":       func(sql string) error { _, err := w.c.Prepare(ctx, sql); return err },
	} {
		before := len(w.events())
		w.p.refuseNext(wire.Denied)
		if err := call("SELECT * FROM secret WHERE name = 'Ann " + name + "'"); err == nil {
			t.Errorf("%s was not refused", name)
		}
		after := w.events()[before:]
		want := Event{
			User: "ana", Tenant: "acme", Realm: access.RealmSession, From: "127.0.0.1", Action: actionDenied, Object: "main.secret",
			Code: "permission", Privilege: "select", Detail: "refused: denied", SQL: "SELECT * FROM secret WHERE name = ?",
		}
		if len(after) != 1 || after[0] != want {
			t.Errorf("%s: audit %+v", name, after)
		}
	}
	w.want(withHeaders(ctx, "pool", "idle"), codes.PermissionDenied, "there is no pool")
	if e := w.event(actionNoAccess); e.User != "ana" || e.Tenant != "acme" || e.Code != "no_pool" {
		t.Errorf("audit %+v", e)
	}
}

func TestStaleGrants(t *testing.T) {
	var limit atomic.Int64
	limit.Store(int64(time.Minute))
	w := newWorld(t, func(c *Config) { c.Stale = func() time.Duration { return time.Duration(limit.Load()) } })
	w.add("user", "u-root", `{"name":"root","system":true}`)
	at := store.SecretKey{Object: "u-root", Attr: "password_verifier"}
	phc, err := access.Hash(password)
	if err != nil {
		t.Fatal(err)
	}
	w.snap.Secrets[at] = w.sealer.Seal(at, []byte(phc))
	w.swap()
	ana, _ := w.begin(basic("ana", password))
	root, _ := w.begin(basic("root@acme/bi", password))
	w.want(ana, codes.OK, "")
	w.directory.Confirm(time.Now().Add(-2 * time.Minute))
	w.want(ana, codes.Unavailable, "heard nothing from its store for 2m0s")
	w.want(root, codes.OK, "")
	if e := w.event(actionDenied); e.Code != reasonStale {
		t.Errorf("audit %+v", e)
	}
	w.begin(basic("ana", password)) // a login is none
	limit.Store(0)
	w.want(ana, codes.OK, "")
	limit.Store(int64(time.Minute))
	w.directory.Confirm(time.Now())
	w.want(ana, codes.OK, "")
}
