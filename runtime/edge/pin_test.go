package edge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// holder returns the peer on which a session has state, and the others.
func holder(t *testing.T, peers ...*peer) (*peer, *peer) {
	t.Helper()
	for i, p := range peers {
		p.mu.Lock()
		n := len(p.sessions)
		p.mu.Unlock()
		if n > 0 {
			return p, peers[1-i]
		}
	}
	t.Fatal("no peer has a session")
	return nil, nil
}

func TestSessionsWithStateStay(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	e, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if _, _, err := query(ctx, c, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	home, _ := holder(t, one, two)
	for range 20 {
		if who, _, err := query(ctx, c, "SELECT who"); err != nil || who != home.id {
			t.Fatalf("in the transaction: %q, %v", who, err)
		}
	}
	if _, open := e.pins.count(); open != 1 {
		t.Errorf("%d sessions in a transaction", open)
	}
	if _, _, err := query(ctx, c, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	met := map[string]bool{}
	for i := range 40 {
		who, _, err := query(ctx, c, "SELECT who")
		if err != nil {
			t.Fatal(err)
		}
		met[who] = true
		if _, _, err := query(ctx, c, fmt.Sprintf("INSERT x%d", i)); err != nil { // each of a fingerprint of its own
			t.Fatal(err)
		}
	}
	if home.times("COMMIT") != 1 || len(one.took("GetFlightInfo")) == 0 || len(two.took("GetFlightInfo")) == 0 {
		t.Errorf("a free session does not use all nodes: %v", met)
	}
}

// Two edges before the same nodes, as while one takes over from the other: each RPC goes to the other
// edge, and the transaction goes on.
func TestTwoEdgesShareASession(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	a, addrA := s.edge()
	b, addrB := s.edge()
	clients := []*flightsql.Client{s.client(addrA), s.client(addrB)}
	ctx := s.login(clients[0], "ana")
	if _, err := clients[0].ExecuteUpdate(ctx, "BEGIN"); err != nil {
		t.Fatal(err)
	}
	home, _ := holder(t, one, two)
	id := home.took("DoPut")[len(home.took("DoPut"))-1].assertion.Session
	eventually(t, "both edges know of the transaction", func() bool {
		_, onA := a.pins.of(session{poolID, id})
		_, onB := b.pins.of(session{poolID, id})
		return onA && onB
	})
	for i := range 20 {
		info, err := clients[(i+1)%2].Execute(ctx, "SELECT who")
		if err != nil {
			t.Fatal(err)
		}
		if who, _, err := fetch(ctx, clients[i%2], info); err != nil || who != home.id {
			t.Fatalf("statement %d: %q, %v", i, who, err)
		}
	}
	if _, err := clients[1].ExecuteUpdate(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both edges know that it ended", func() bool {
		_, onA := a.pins.of(session{poolID, id})
		_, onB := b.pins.of(session{poolID, id})
		return !onA && !onB
	})
	if home.times("COMMIT") != 1 {
		t.Error("COMMIT went elsewhere")
	}
}

// A session's first statement at an edge that has just started waits for what the nodes have to say.
func TestNewEdgeGoesOnWithASession(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	first := s.client(addr)
	ctx := s.login(first, "ana")
	if _, _, err := query(ctx, first, "SET x"); err != nil {
		t.Fatal(err)
	}
	home, _ := holder(t, one, two)
	for range 10 {
		_, addr := s.edge()
		if who, _, err := query(ctx, s.client(addr), "SELECT who"); err != nil || who != home.id {
			t.Fatalf("through a new edge: %q, %v", who, err)
		}
	}
}

func TestTransactionIDsFindTheirNode(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	// With the password on every call each call is a session of its own: only the id ties them.
	ctx := withHeaders(testContext(t), "authorization", basic("ana", password))
	tx, err := c.BeginTransaction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecuteUpdate(ctx, "INSERT a"); err != nil {
		t.Fatal(err)
	}
	home, other := holder(t, one, two)
	for range 10 {
		info, err := tx.Execute(ctx, "SELECT who")
		if err != nil {
			t.Fatal(err)
		}
		if who, _, err := fetch(ctx, c, info); err != nil || who != home.id {
			t.Fatalf("in the transaction: %q, %v", who, err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if other.times("SELECT who") > 0 {
		t.Error("a statement of the transaction ran elsewhere")
	}
}

func lost(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("err = %v, want %s %q", err, code, text)
	}
}

// The pinned node goes: the statement after it says what is lost, and the session works again.
func TestPinnedNodeDisappears(t *testing.T) {
	tests := map[string]struct {
		begin string
		code  codes.Code
		text  string
		quiet bool // the fleet does not notice before the statement does
	}{
		"transaction":           {begin: "BEGIN", code: codes.Aborted, text: "pinned node disappeared; transaction lost"},
		"transaction, at once":  {begin: "BEGIN", code: codes.Aborted, text: "pinned node disappeared; transaction lost", quiet: true},
		"session state":         {begin: "SET x", code: codes.Unavailable, text: "settings and temporary objects of the session are lost"},
		"session state at once": {begin: "SET x", code: codes.Unavailable, text: "settings and temporary objects of the session are lost", quiet: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStack(t)
			one, two := s.peer(backend.Dual), s.peer(backend.Dual)
			s.serving(one, two)
			e, addr := s.edge()
			c := s.client(addr)
			ctx := s.login(c, "ana")
			if _, _, err := query(ctx, c, tc.begin); err != nil {
				t.Fatal(err)
			}
			home, other := holder(t, one, two)
			home.kill()
			if !tc.quiet {
				s.serving(other)
			}
			_, _, err := query(ctx, c, "SELECT who")
			lost(t, err, tc.code, tc.text)
			if r := s.history(); r[len(r)-1].Status != statusPinLost {
				t.Errorf("history has %+v", r[len(r)-1])
			}
			if tc.quiet {
				if got := <-s.fleet.Suspects(); got != home.id {
					t.Errorf("%s is suspected", got)
				}
				s.serving(other)
			}
			if who, _, err := query(ctx, c, "SELECT who"); err != nil || who != other.id {
				t.Errorf("the session afterwards: %q, %v", who, err)
			}
			if _, open := e.pins.count(); open != 0 {
				t.Errorf("%d sessions in a transaction", open)
			}
		})
	}
}

func TestTransactionIDOfANodeThatIsGone(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one, two)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	begin := func() *flightsql.Txn {
		t.Helper()
		tx, err := c.BeginTransaction(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecuteUpdate(ctx, "INSERT a"); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	committed, rolledBack := begin(), begin()
	home, other := holder(t, one, two)
	home.kill()
	s.serving(other)
	lost(t, committed.Commit(ctx), codes.Aborted, "pinned node disappeared; transaction lost")
	if err := rolledBack.Rollback(ctx); err != nil {
		t.Errorf("ROLLBACK of what is gone anyway: %v", err)
	}
	if err := begin().Commit(ctx); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

func TestHandlesOfANodeThatIsGone(t *testing.T) {
	s := newStack(t)
	one, two := s.peer(backend.Dual), s.peer(backend.Dual)
	s.serving(one)
	_, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	read, err := c.Execute(ctx, "SELECT who")
	if err != nil {
		t.Fatal(err)
	}
	wrote, err := c.Execute(ctx, "INSERT a")
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Prepare(ctx, "SELECT who")
	if err != nil {
		t.Fatal(err)
	}
	one.kill()
	s.serving(two)
	if who, _, err := fetch(ctx, c, read); err != nil || who != two.id {
		t.Errorf("the ticket of a read, which any node can run: %q, %v", who, err)
	}
	_, _, err = fetch(ctx, c, wrote)
	lost(t, err, codes.Unavailable, "node restarted; run the query again")
	info, err := st.Execute(ctx)
	if err != nil {
		t.Fatalf("a prepared statement, which any node can prepare: %v", err)
	}
	if who, _, err := fetch(ctx, c, info); err != nil || who != two.id {
		t.Errorf("its result: %q, %v", who, err)
	}
	if err := st.Close(ctx); err != nil {
		t.Errorf("close of what is gone anyway: %v", err)
	}
	if two.times("INSERT a") != 0 {
		t.Error("the write ran again")
	}
}

func TestClosedSessionIsForgotten(t *testing.T) {
	s := newStack(t)
	p := s.peer(backend.Dual)
	s.serving(p)
	e, addr := s.edge()
	c := s.client(addr)
	ctx := s.login(c, "ana")
	if _, _, err := query(ctx, c, "SET x"); err != nil {
		t.Fatal(err)
	}
	if active, _ := e.pins.count(); active != 1 {
		t.Errorf("%d sessions are active", active)
	}
	if _, err := c.CloseSession(ctx, &flight.CloseSessionRequest{}); err != nil {
		t.Fatal(err)
	}
	if active, _ := e.pins.count(); active != 0 {
		t.Errorf("%d sessions are active after the close", active)
	}
}

func TestRoute(t *testing.T) {
	at := func(node string) wire.Handle { return wire.Handle{Node: node, Incarnation: "i"} }
	of := func(h wire.Handle, kind wire.HandleKind, alter func(*wire.Handle)) wire.Handle {
		h.Kind = kind
		if alter != nil {
			alter(&h)
		}
		return h
	}
	anywhere := func(h *wire.Handle) { h.SQL, h.ReadOnly = "SELECT 1", true }
	pinTo := func(node string, s wire.State) pin {
		p := pin{state: s}
		p.Node, p.Incarnation = node, "i"
		return p
	}
	tests := map[string]struct {
		h      handles
		pin    pin
		node   string
		hard   bool
		loss   loss
		pinned bool
	}{
		"free":                       {},
		"stateful":                   {pin: pinTo("a", wire.Stateful), pinned: true, node: "a", hard: true, loss: lossSession},
		"in a transaction":           {pin: pinTo("a", wire.InTransaction), pinned: true, node: "a", hard: true, loss: lossTransaction},
		"transaction id":             {h: handles{transaction: of(at("b"), wire.TransactionID, nil)}, node: "b", hard: true, loss: lossTransaction},
		"transaction id first":       {h: handles{transaction: of(at("b"), wire.TransactionID, nil)}, pin: pinTo("a", wire.Stateful), pinned: true, node: "b", hard: true, loss: lossTransaction},
		"ticket of a read":           {h: handles{ticket: of(at("b"), wire.Ticket, anywhere)}, node: "b", loss: lossResult},
		"ticket of a write":          {h: handles{ticket: of(at("b"), wire.Ticket, nil)}, pin: pinTo("a", wire.Stateful), pinned: true, node: "b", hard: true, loss: lossResult},
		"ticket within the session":  {h: handles{ticket: of(at("a"), wire.Ticket, nil)}, pin: pinTo("a", wire.InTransaction), pinned: true, node: "a", hard: true, loss: lossTransaction},
		"ticket with parameters":     {h: handles{ticket: of(at("b"), wire.Ticket, func(h *wire.Handle) { anywhere(h); h.Bind = "x" })}, node: "b", hard: true, loss: lossResult},
		"prepared":                   {h: handles{prepared: of(at("b"), wire.Prepared, anywhere)}, node: "b", loss: lossPrepared},
		"prepared, session pinned":   {h: handles{prepared: of(at("b"), wire.Prepared, anywhere)}, pin: pinTo("a", wire.Stateful), pinned: true, node: "a", hard: true, loss: lossSession},
		"prepared in a transaction":  {h: handles{prepared: of(at("b"), wire.Prepared, func(h *wire.Handle) { anywhere(h); h.Transaction = "x" })}, node: "b", hard: true, loss: lossTransaction},
		"prepared, too long to keep": {h: handles{prepared: of(at("b"), wire.Prepared, nil)}, node: "b", hard: true, loss: lossPrepared},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := route(tc.h, tc.pin, tc.pinned)
			node := ""
			if got.pin != nil {
				node = got.pin.Node
			}
			if node != tc.node || got.hard != tc.hard || got.loss != tc.loss {
				t.Errorf("route = %q hard %t loss %d, want %q %t %d", node, got.hard, got.loss, tc.node, tc.hard, tc.loss)
			}
		})
	}
}
