package edge

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// peer is a Flight SQL server that speaks to the edge as a node does: it checks assertions, mints
// handles and says in trailers what became of the session. It stands where a node would, because this
// package must not link an engine.
type peer struct {
	flight.FlightServer
	t                testing.TB
	id, incarnation  string
	role             backend.Role
	keys             *wire.Keyring
	endpoint, socket string
	server           *grpc.Server
	cancelled        chan string  // SQL of streams that were cancelled
	reached          chan string  // SQL of statements that began to run
	batches          atomic.Int64 // that were made for streams

	mu       sync.Mutex
	sets     map[string]bool
	sessions map[string]wire.State
	watchers map[chan struct{}]bool
	refuse   []wire.Reason // of the next calls, in turn
	calls    []seen
	ran      map[string]int // statements that ran, by SQL
}

// seen is what reached the node of one call.
type seen struct {
	method    string
	assertion wire.Assertion
	md        metadata.MD
}

func startPeer(t testing.TB, role backend.Role, keys *wire.Keyring) *peer {
	t.Helper()
	dir, err := os.MkdirTemp("", "qod")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &peer{
		t: t, id: uuid.NewString(), incarnation: uuid.NewString(), role: role, keys: keys,
		socket: filepath.Join(dir, "n.sock"), endpoint: "unix://" + filepath.Join(dir, "n.sock"),
		cancelled: make(chan string, 4096), reached: make(chan string, 4096),
		sets: map[string]bool{}, sessions: map[string]wire.State{}, watchers: map[chan struct{}]bool{}, ran: map[string]int{},
	}
	p.FlightServer = flightsql.NewFlightServer(&engine{peer: p})
	p.server = grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, r any, i *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			a, err := p.admit(ctx, i.FullMethod)
			if err != nil {
				return nil, err
			}
			defer func() { grpc.SetTrailer(ctx, p.trailer(a)) }()
			return next(ctx, r)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, i *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			a, err := p.admit(s.Context(), i.FullMethod)
			if err != nil {
				return err
			}
			defer func() { s.SetTrailer(p.trailer(a)) }()
			return next(srv, s)
		}),
		grpc.MaxRecvMsgSize(64<<20),
	)
	flight.RegisterFlightServiceServer(p.server, p)
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.server.Serve(l)
	}()
	t.Cleanup(func() {
		p.server.Stop()
		<-done
	})
	return p
}

// kill ends the peer as a crash does.
func (p *peer) kill() { p.server.Stop() }

func (p *peer) member(phase backend.Phase) backend.Member {
	return backend.Member{
		Node:        backend.Node{ID: p.id, PoolID: poolID, Role: p.role, Endpoint: p.endpoint},
		Incarnation: p.incarnation, Phase: phase, Probed: time.Now(),
	}
}

func (p *peer) admit(ctx context.Context, method string) (wire.Assertion, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	var a wire.Assertion
	sealed := md.Get(wire.AssertionKey)
	if len(sealed) != 1 || p.keys.Open(wire.PurposeAssertion, []byte(sealed[0]), &a) != nil || time.Now().After(a.Expires) {
		return a, status.Error(codes.Unauthenticated, "no good assertion")
	}
	if a.Manager {
		return a, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, seen{method[len(service):], a, md})
	if len(p.refuse) > 0 {
		reason := p.refuse[0]
		p.refuse = p.refuse[1:]
		grpc.SetTrailer(ctx, metadata.Pairs(wire.ReasonKey, string(reason)))
		if reason == wire.Denied {
			grpc.SetTrailer(ctx, metadata.Pairs(wire.DeniedKey, `{"code":"permission","object":"main.secret","privilege":"select"}`))
		}
		return a, status.Error(codes.FailedPrecondition, "refused: "+string(reason))
	}
	if p.sets[a.Permissions] {
		return a, nil
	}
	var set wire.Permissions
	if got := md.Get(wire.PermissionsKey); len(got) == 1 {
		if p.keys.Open(wire.PurposePermissions, []byte(got[0]), &set) != nil || set.Hash() != a.Permissions {
			return a, status.Error(codes.Unauthenticated, "not the asserted permissions")
		}
		p.sets[a.Permissions] = true
		return a, nil
	}
	grpc.SetTrailer(ctx, metadata.Pairs(wire.ReasonKey, string(wire.NeedPermissions)))
	return a, status.Error(codes.FailedPrecondition, "need_permissions "+a.Permissions)
}

func (p *peer) trailer(a wire.Assertion) metadata.MD {
	if a.Manager {
		return nil
	}
	return metadata.Pairs(wire.SessionKey, string(p.state(a.Session)))
}

func (p *peer) state(session string) wire.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, ok := p.sessions[session]; ok {
		return s
	}
	return wire.Free
}

func (p *peer) setState(session string, s wire.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[session] = s
	if s == wire.Free {
		delete(p.sessions, session)
	}
	for w := range p.watchers {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

func (p *peer) refuseNext(reasons ...wire.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = append(p.refuse, reasons...)
}

// took returns the calls of that method so far.
func (p *peer) took(method string) []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(s seen) bool { return s.method != method })
}

func (p *peer) times(sql string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ran[sql]
}

// DoAction answers the manager's actions and leaves the others to Flight SQL.
func (p *peer) DoAction(a *flight.Action, s flight.FlightService_DoActionServer) error {
	switch a.GetType() {
	case wire.StatusAction:
		body, err := json.Marshal(wire.Status{ID: p.id, Incarnation: p.incarnation, Ready: true})
		if err != nil {
			return err
		}
		return s.Send(&flight.Result{Body: body})
	case wire.SessionsAction:
		return p.tellSessions(s)
	}
	return p.FlightServer.DoAction(a, s)
}

func (p *peer) tellSessions(s flight.FlightService_DoActionServer) error {
	changed := make(chan struct{}, 1)
	p.mu.Lock()
	p.watchers[changed] = true
	p.mu.Unlock()
	for {
		p.mu.Lock()
		l := wire.Sessions{Incarnation: p.incarnation}
		for id, state := range p.sessions {
			l.Sessions = append(l.Sessions, wire.Session{ID: id, State: state})
		}
		p.mu.Unlock()
		body, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if err := s.Send(&flight.Result{Body: body}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}
