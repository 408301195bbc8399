package node

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/qod-io/qod/runtime/wire"
)

// do does an action of the manager and reads its first answer into v.
func (c *client) do(action string, body, v any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	stream, err := c.Client.Client.DoAction(c.n.t.Context(), &flight.Action{Type: action, Body: raw}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	result, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(result.Body, v); err != nil {
		return err
	}
	_, _ = stream.Recv() // the trailer comes with the end
	return nil
}

func (c *client) status() wire.Status {
	c.n.t.Helper()
	var s wire.Status
	if err := c.do(wire.StatusAction, nil, &s); err != nil {
		c.n.t.Fatal(err)
	}
	return s
}

func (c *client) waitReady() {
	c.n.t.Helper()
	select {
	case err := <-c.n.done:
		c.n.done <- err
		c.n.t.Fatalf("node does not start: %v", err)
	default:
	}
	answered := make(chan wire.Status, 1)
	go func() {
		var s wire.Status
		if c.do(wire.StatusAction, nil, &s) == nil {
			answered <- s
		}
	}()
	select {
	case s := <-answered:
		if !s.Ready {
			c.n.t.Fatalf("node is not ready: %+v", s)
		}
	case err := <-c.n.done:
		c.n.done <- err
		c.n.t.Fatalf("node does not start: %v", err)
	case <-time.After(patience):
		c.n.t.Fatal("node does not answer")
	}
}

func TestStatus(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	c.query("SELECT 1")
	c.exec("BEGIN")
	s := m.status()
	if s.ID != n.cfg.ID || s.Role != "dual" || s.SpecHash != "hash" || s.Incarnation == "" || s.MemoryBytes == 0 {
		t.Errorf("status does not identify the node: %+v", s)
	}
	if !s.Ready || s.Sessions != 1 || s.Transactions != 1 || s.Served != 2 || s.P50 <= 0 || s.P99 < s.P50 {
		t.Errorf("status does not say what the node does: %+v", s)
	}
	health := grpc_health_v1.NewHealthClient(plain(t, n))
	reply, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || reply.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health is %v, %v", reply, err)
	}
	m.wantCode(c.do(wire.StatusAction, nil, &s), codes.PermissionDenied, "")
}

func TestSessionsAreWatched(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := m.Client.Client.DoAction(ctx, &flight.Action{Type: wire.SessionsAction})
	if err != nil {
		t.Fatal(err)
	}
	next := func() map[string]wire.State {
		result, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var s wire.Sessions
		if err := json.Unmarshal(result.Body, &s); err != nil {
			t.Fatal(err)
		}
		states := map[string]wire.State{}
		for _, one := range s.Sessions {
			states[one.ID] = one.State
		}
		return states
	}
	if got := next(); len(got) != 0 {
		t.Errorf("at first: %v", got)
	}
	c.query("BEGIN")
	c.wantState(wire.InTransaction)
	if got := next(); got["s1"] != wire.InTransaction {
		t.Errorf("after BEGIN: %v", got)
	}
	c.query("ROLLBACK")
	c.wantState(wire.Free)
	if got := next(); len(got) != 0 {
		t.Errorf("after ROLLBACK: %v", got)
	}
	c.query("CREATE TEMP TABLE x (i INTEGER)")
	c.wantState(wire.Stateful)
	if got := next(); got["s1"] != wire.Stateful {
		t.Errorf("after a temporary table: %v", got)
	}
	if _, err := c.CloseSession(t.Context(), &flight.CloseSessionRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := next(); len(got) != 0 {
		t.Errorf("after close: %v", got)
	}
}

func TestConfigureAndKeys(t *testing.T) {
	n := startNode(t, newLake(t))
	c, m := n.client("s1"), n.manager()
	var s wire.Status
	if err := m.do(wire.ConfigureAction, wire.Live{StatementTimeout: 200 * time.Millisecond}, &s); err != nil {
		t.Fatal(err)
	}
	_, err := c.tryQuery(slow)
	c.wantCode(err, codes.DeadlineExceeded, wire.Timeout)
	next := wire.Key{ID: 2, Key: make([]byte, wire.KeySize)}
	info, err := c.Execute(t.Context(), "SELECT 42")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.do(wire.SetKeysAction, []wire.Key{next, n.cfg.Keys[0]}, &s); err != nil {
		t.Fatal(err)
	}
	if rows, err := c.rows(info); err != nil || rows[0][0] != "42" {
		t.Errorf("a ticket sealed with the previous key: %v, %v", rows, err)
	}
	if err := m.do(wire.SetKeysAction, []wire.Key{next}, &s); err != nil {
		t.Fatal(err)
	}
	_, err = c.tryQuery("SELECT 1")
	c.wantCode(err, codes.Unauthenticated, "")
}
