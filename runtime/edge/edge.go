package edge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// Config is what an Edge needs. Directory, Fleet, Keyring and Log are required.
type Config struct {
	Directory *access.Holder
	Fleet     *backend.Fleet
	Keyring   func() *wire.Keyring // the cluster's; the same value until the keys change
	Log       *slog.Logger

	Certificate *Certificate          // nil: no TLS
	Record      func(Record)          // called once per statement; it must not block. nil: no history
	Audit       func(Event)           // called for what the audit keeps; it must not block. nil: no audit
	Registerer  prometheus.Registerer // nil: no metrics

	BearerLife   time.Duration // of a session's token; 0: 24 h
	DrainLimit   time.Duration // for calls to end when Run is told to; 0: 30 s
	NodeWait     time.Duration // for a node to serve, when none does; 0: 5 s
	QueueWait    time.Duration // for a place on a node; 0: 30 s
	QueueLength  int           // statements that wait per pool; 0: 256
	MaxRecvBytes int           // of a client's message; 0: 64 MiB

	// Stale is for how long the directory may go unconfirmed before statements of all but administrators are
	// refused; 0: for ever. nil: for ever. It is asked at each call.
	Stale func() time.Duration
}

// Edge is Flight SQL in front of the nodes.
type Edge struct {
	directory  *access.Holder
	fleet      *backend.Fleet
	keyring    func() *wire.Keyring
	log        *slog.Logger
	note       func(Record)
	bearerLife time.Duration
	drainLimit time.Duration

	server      *grpc.Server
	callOptions []grpc.CallOption
	metrics     *metrics
	keys        poolKeys
	pins        *pins
	dismissals  *dismissals
	audit       *auditor
	stale       func() time.Duration
	nodes       nodes
	admission   *admission
	budgets     budgets
	background  sync.WaitGroup // readers of clients' streams, which end just after their calls
}

// New returns an edge that Run starts.
func New(c Config) (*Edge, error) {
	if c.Directory == nil || c.Fleet == nil || c.Keyring == nil || c.Log == nil {
		return nil, errors.New("make edge: Directory, Fleet, Keyring and Log are required")
	}
	e := &Edge{
		directory: c.Directory, fleet: c.Fleet, keyring: c.Keyring, log: c.Log, note: c.Record,
		bearerLife:  cmp.Or(c.BearerLife, 24*time.Hour),
		drainLimit:  cmp.Or(c.DrainLimit, 30*time.Second),
		callOptions: []grpc.CallOption{grpc.ForceCodecV2(newCodec()), grpc.MaxCallRecvMsgSize(wire.MaxMessageSize)},
		pins:        newPins(),
		dismissals:  newDismissals(),
		stale:       c.Stale,
		nodes:       nodes{all: map[process]*node{}, dial: wire.Dial},
		admission: newAdmission(c.Fleet, cmp.Or(c.NodeWait, 5*time.Second), cmp.Or(c.QueueWait, 30*time.Second),
			cmp.Or(c.QueueLength, 256)),
		budgets: budgets{saved: map[string]float64{}},
	}
	if e.note == nil {
		e.note = func(Record) {}
	}
	var err error
	if e.metrics, err = newMetrics(c.Registerer, e.pins); err != nil {
		return nil, fmt.Errorf("make edge: %w", err)
	}
	e.audit = newAuditor(c.Audit, e.metrics.suppressed.Inc)
	if e.stale == nil {
		e.stale = func() time.Duration { return 0 }
	}
	e.nodes.left = func(id string) { e.metrics.inFlight.DeletePartialMatch(prometheus.Labels{"node": id}) }
	e.server = e.newServer(c.Certificate, cmp.Or(c.MaxRecvBytes, 64<<20))
	return e, nil
}

// Run serves on the listener until ctx ends; then it takes no new calls, lets those that run end for as
// long as the drain limit allows, and cancels the rest. It returns nil, or why it could not serve. An
// edge runs once.
func (e *Edge) Run(ctx context.Context, l net.Listener) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx)) // pins are needed while draining
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	wait.Go(func() { e.watch(watching) })
	wait.Go(func() { e.enforce(watching) })
	served := make(chan error, 1)
	wait.Go(func() { served <- e.server.Serve(l) })
	select {
	case err := <-served:
		e.server.Stop()
		e.background.Wait()
		return fmt.Errorf("serve Flight SQL: %w", err)
	case <-ctx.Done():
	}
	e.drain()
	e.background.Wait()
	if err := <-served; err != nil {
		return fmt.Errorf("serve Flight SQL: %w", err)
	}
	return nil
}

// drain ends the server gracefully, or not, when the limit has passed.
func (e *Edge) drain() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.server.GracefulStop()
	}()
	limit := time.NewTimer(e.drainLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		e.log.Warn("calls still run at the drain limit and are cancelled", "limit", e.drainLimit)
		e.server.Stop()
		<-done
	}
}
