package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// How often nodes are probed that are not simply serving.
const (
	startingInterval    = 100 * time.Millisecond
	drainingInterval    = 200 * time.Millisecond
	quarantinedInterval = time.Second
)

// nodeClient is the part of wire.Client that probing needs.
type nodeClient interface {
	Status(ctx context.Context) (wire.Status, error)
	Configure(ctx context.Context, live wire.Live) error
	SetKeys(ctx context.Context, keys []wire.Key) error
	Drain(ctx context.Context) error
}

// nodeConn is a connection to a node.
type nodeConn interface {
	io.Closer
	client(pool *wire.Keyring) nodeClient
}

type dialer func(endpoint string) (nodeConn, error)

type grpcConn struct{ *grpc.ClientConn }

func (c grpcConn) client(pool *wire.Keyring) nodeClient { return wire.NewClient(c.ClientConn, pool) }

func dialNode(endpoint string) (nodeConn, error) {
	conn, err := wire.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	return grpcConn{conn}, nil
}

// told is what a node's process has been told.
type told struct {
	incarnation string
	live        *wire.Live
	keys        []wire.Key
}

// question is what a probe asks of a node and what it is to be told.
type question struct {
	node  backend.Node
	tell  bool // only who may act tells nodes anything
	live  *backend.Live
	drain bool
}

// probe asks a node how it is until ctx ends. Nodes are probed independently: one that hangs delays
// no other.
func (l *Loop) probe(ctx context.Context, m *member, endpoint string) {
	conn, err := l.dial(endpoint)
	if err != nil {
		l.heard(m, wire.Status{}, err)
		return
	}
	defer conn.Close()
	var t told
	for {
		l.mu.Lock()
		q := question{node: m.node, tell: l.acting(), live: m.live, drain: m.phase == backend.Draining}
		l.mu.Unlock()
		answer, err := l.ask(ctx, conn, q, &t)
		if ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(l.heard(m, answer, err))
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// ask probes a node once, and tells it what it has not been told: every process is told everything
// once by whoever may act, since nobody else knows what it was told before.
func (l *Loop) ask(ctx context.Context, conn nodeConn, q question, t *told) (wire.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ProbeTimeout)
	defer cancel()
	pool, err := l.cfg.Keys().Pool(q.node.PoolID)
	if err != nil {
		return wire.Status{}, err
	}
	client, s, err := greet(ctx, conn, pool)
	if err != nil {
		return s, l.explain(err)
	}
	if err := identify(q.node, s); err != nil {
		return wire.Status{}, err
	}
	if !q.tell {
		return s, nil
	}
	if t.incarnation != s.Incarnation {
		*t = told{incarnation: s.Incarnation}
	}
	if keys := pool.Keys(); !slices.EqualFunc(t.keys, keys, sameKey) {
		if err := client.SetKeys(ctx, keys); err != nil {
			return s, l.explain(err)
		}
		t.keys = keys
	}
	if q.live != nil && (t.live == nil || *t.live != wire.Live(*q.live)) {
		live := wire.Live(*q.live)
		if err := client.Configure(ctx, live); err != nil {
			return s, l.explain(err)
		}
		t.live = &live
	}
	if q.drain && !s.Draining { // whether it is idle then, the next answer says
		if err := client.Drain(ctx); err != nil {
			return s, l.explain(err)
		}
	}
	return s, nil
}

// greet asks for the status with the pool's current key and, of a node that does not know it yet, with
// each earlier one.
func greet(ctx context.Context, conn nodeConn, pool *wire.Keyring) (nodeClient, wire.Status, error) {
	client := conn.client(pool)
	s, err := client.Status(ctx)
	if status.Code(err) != codes.Unauthenticated {
		return client, s, err
	}
	for _, k := range pool.Keys()[1:] {
		earlier, ringErr := wire.NewKeyring(k)
		if ringErr != nil {
			return nil, s, ringErr
		}
		client = conn.client(earlier)
		if s, err = client.Status(ctx); status.Code(err) != codes.Unauthenticated {
			return client, s, err
		}
	}
	return nil, s, err
}

func sameKey(a, b wire.Key) bool { return a.ID == b.ID && slices.Equal(a.Key, b.Key) }

// identify refuses an answer that is not of the node that was asked.
func identify(n backend.Node, s wire.Status) error {
	switch {
	case s.Version < wire.MinVersion || s.Version > wire.Version:
		return fmt.Errorf("it speaks version %d of the node protocol, not %d", s.Version, wire.Version)
	case s.ID != n.ID || s.PoolID != n.PoolID:
		return fmt.Errorf("node %s of pool %s answers in its place", s.ID, s.PoolID)
	case s.SpecHash != n.SpecHash || s.Role != string(n.Role):
		return errors.New("it runs something else than it was started with")
	case n.PID != 0 && s.PID != n.PID:
		return fmt.Errorf("process %d answers in place of %d", s.PID, n.PID)
	case s.Incarnation == "":
		return errors.New("it names no incarnation")
	}
	return nil
}

// explain puts a failed call into words without gRPC's own.
func (l *Loop) explain(err error) error {
	if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", l.cfg.ProbeTimeout)
	}
	var s interface{ GRPCStatus() *status.Status }
	if errors.As(err, &s) {
		return errors.New(s.GRPCStatus().Message())
	}
	return err
}

// heard takes a probe's outcome into account, and returns when to probe again.
func (l *Loop) heard(m *member, s wire.Status, err error) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	before := m.phase
	m.probed = true
	switch {
	case before == backend.Gone:
	case err != nil:
		if m.silent.IsZero() {
			m.silent = now
		}
		m.quarantine(err.Error())
	default:
		m.silent = time.Time{}
		m.heard(s, now, l.began)
	}
	if m.phase != before {
		l.cfg.Log.Info("node is "+string(m.phase), "pool", l.addr(m.node.PoolID), "node", m.node.ID, "reason", m.reason)
	}
	if m.phase != before || m.status.Fatal != "" || m.phase == backend.Draining && m.idle() {
		l.again()
	}
	l.publish()
	l.passed()
	switch m.phase {
	case backend.Starting:
		return min(startingInterval, l.cfg.ProbeInterval)
	case backend.Draining:
		return min(drainingInterval, l.cfg.ProbeInterval)
	case backend.Quarantined:
		return min(quarantinedInterval, l.cfg.ProbeInterval)
	default:
		return l.cfg.ProbeInterval
	}
}

// heard takes an answer of the node itself into account. One that is older than the loop may have served
// before, and is kept like one that did.
func (m *member) heard(s wire.Status, now, began time.Time) {
	m.status, m.incarnation = s, s.Incarnation
	switch {
	case s.Draining || m.phase == backend.Draining:
		m.phase, m.answered = backend.Draining, now
		if m.drain.IsZero() {
			m.drain = now
		}
	case s.Fatal != "":
		m.quarantine("its engine is unusable: " + s.Fatal)
	case !s.Ready:
		if m.phase == backend.Starting && m.node.Started.Before(began) && !m.node.Started.IsZero() {
			m.phase = backend.Serving // as far as is known
		}
		m.quarantine(s.Message)
	default:
		m.phase, m.reason, m.answered = backend.Serving, "", now
		if m.served.IsZero() {
			m.served = now
		}
	}
}

// quarantine keeps statements from the node until a good probe. One that never had any stays starting.
func (m *member) quarantine(reason string) {
	m.reason = reason
	if m.phase == backend.Serving {
		m.phase = backend.Quarantined
	}
}

// idle reports whether nothing is lost when the node ends. Only an answer that it gave while draining
// counts: before, a statement may have come in after the answer.
func (m *member) idle() bool {
	return m.status.Draining && m.status.InFlight == 0 && m.status.Transactions == 0
}
