package node

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	duck "github.com/duckdb/duckdb-go-bindings"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// Roles of a node, as in wire.NodeConfig.
const (
	roleRead  = "read"
	roleWrite = "write"
)

type duckValue = duck.Value

func allocator() memory.Allocator { return memory.DefaultAllocator }

// server answers Flight SQL for one engine.
type server struct {
	flightsql.BaseServer

	cfg         wire.NodeConfig
	incarnation string
	log         *slog.Logger
	engine      *engine
	guard       *guard.Guard
	home        *names // on a connection on which nothing was set
	keys        atomic.Pointer[wire.Keyring]
	live        atomic.Pointer[wire.Live]
	pool        *pool
	changes     *latch
	plans       *latch
	sessions    *sessions
	running     *running
	outcomes    *outcomes
	permissions *permissionSets
	stats       *tally
	health      *health
	inFlight    atomic.Int64
	draining    atomic.Bool
	started     time.Time
	stopping    chan struct{} // closed when the node stops
	outgrown    chan struct{} // closed when it takes so much memory that the process has to end
	sends       sync.WaitGroup
}

func newServer(cfg wire.NodeConfig, e *engine, log *slog.Logger) (*server, error) {
	keys, err := wire.NewKeyring(cfg.Keys...)
	if err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	checker, err := guard.New(guard.Config{})
	if err != nil {
		return nil, fmt.Errorf("make server: %w", err)
	}
	s := &server{
		cfg:         cfg,
		incarnation: newID(),
		log:         log,
		engine:      e,
		guard:       checker,
		home:        homeNames(cfg.Lake),
		changes:     newChanges(),
		plans:       newPlans(),
		sessions:    newSessions(),
		running:     newRunning(),
		outcomes:    &outcomes{byID: map[string]*outcome{}},
		permissions: newPermissionSets(),
		stats:       newTally(),
		health:      &health{},
		started:     time.Now(),
		stopping:    make(chan struct{}),
		outgrown:    make(chan struct{}),
	}
	s.pool = &pool{engine: e, home: home(cfg.Lake), root: "USE " + quoteName(cfg.Lake.Name), plans: s.plans}
	s.keys.Store(keys)
	live := cfg.Live
	s.live.Store(&live)
	return s, s.registerInfo()
}

// note looks at an error on its way out: one that says that the engine is unusable is remembered.
func (s *server) note(err error) error {
	if err == nil {
		return nil
	}
	if f := asFault(err); f.reason == wire.Fatal {
		s.health.fail(f.message)
		s.log.Error("engine is unusable", "node", s.cfg.ID, "error", f.message)
	}
	return err
}

// close lets go of everything. No call is in progress.
func (s *server) close() {
	s.guard.Close()
	s.pool.close()
}
