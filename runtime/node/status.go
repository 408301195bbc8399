package node

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// checkEvery is how often the node checks itself.
	checkEvery = 5 * time.Second
	// checkLimit is how long a check may take. It is a limit on being ready, not on the check: a call
	// into the engine that hangs cannot be ended from here.
	checkLimit = 5 * time.Second
	// latencies is how many statements the quantiles are of.
	latencies = 1024
)

// tally counts statements and remembers how long the latest took.
type tally struct {
	mu     sync.Mutex
	served int64
	ring   []time.Duration
}

func newTally() *tally { return &tally{ring: make([]time.Duration, 0, latencies)} }

func (t *tally) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ring) < latencies {
		t.ring = append(t.ring, took)
	} else {
		t.ring[t.served%latencies] = took
	}
	t.served++
}

func (t *tally) read() (served int64, p50, p95, p99 time.Duration) {
	t.mu.Lock()
	sorted := slices.Clone(t.ring)
	served = t.served
	t.mu.Unlock()
	if len(sorted) == 0 {
		return served, 0, 0, 0
	}
	slices.Sort(sorted)
	at := func(q float64) time.Duration { return sorted[int(q*float64(len(sorted)-1))] }
	return served, at(0.50), at(0.95), at(0.99)
}

// health is the last self-check, and why the engine is unusable if it is.
type health struct {
	mu      sync.Mutex
	started time.Time // of the check in progress; zero between checks
	passed  bool
	message string // why the last check failed
	lake    string // why the lake could not be reached, though the engine works
	fatal   string // sticky
}

func (h *health) fail(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fatal == "" {
		h.fatal = trim(why)
	}
}

// read says whether the node is ready, and why not, and what is wrong although it is.
func (h *health) read(now time.Time) (ready bool, message, fatal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.fatal != "":
		return false, "the engine is unusable", h.fatal
	case !h.started.IsZero() && now.Sub(h.started) > checkLimit:
		return false, "the self-check does not return", ""
	case !h.passed:
		return false, h.message, ""
	}
	return true, h.lake, ""
}

// selfCheck asks the engine for SELECT 1 and the lake for its schema. An unreachable lake does not make
// the node unready: Postgres may be away for hours, and a new node could not reach it either.
func (s *server) selfCheck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	s.health.mu.Lock()
	s.health.started = time.Now()
	s.health.mu.Unlock()
	c, err := s.engine.connect()
	var lake error
	if err == nil {
		defer c.close()
		if err = c.run(ctx, "SELECT 1"); err == nil {
			lake = s.pool.enter(ctx, c)
		}
	}
	_ = s.note(err)
	s.health.mu.Lock()
	defer s.health.mu.Unlock()
	s.health.started = time.Time{}
	s.health.passed, s.health.message, s.health.lake = err == nil, "", ""
	if err != nil {
		s.health.message = "self-check: " + trim(err.Error())
	}
	if lake != nil {
		s.health.lake = "lake: " + trim(lake.Error())
	}
}

// status says what the node is and does. It never waits for the engine.
func (s *server) status() wire.Status {
	now := time.Now()
	st := wire.Status{
		Version: wire.Version, ID: s.cfg.ID, PoolID: s.cfg.PoolID, Incarnation: s.incarnation,
		SpecHash: s.cfg.SpecHash, Role: s.cfg.Role, PID: os.Getpid(), Started: s.started,
		Draining: s.draining.Load(), InFlight: int(s.inFlight.Load()), MemoryBytes: residentBytes(),
	}
	if id := s.running.deaf(now); id != "" {
		s.health.fail("statement " + id + " does not end although it was interrupted a minute ago")
	}
	st.Ready, st.Message, st.Fatal = s.health.read(now)
	st.Served, st.P50, st.P95, st.P99 = s.stats.read()
	sessions, _ := s.sessions.list()
	st.Sessions = len(sessions)
	for _, n := range sessions {
		if n.State == wire.InTransaction {
			st.Transactions++
		}
	}
	return st
}

// residentBytes is the memory of this process that is in use, 0 where that cannot be told.
func residentBytes() int64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// probe is gRPC's health service. It needs no assertion and tells nothing else.
type probe struct {
	grpc_health_v1.UnimplementedHealthServer
	s *server
}

func (p probe) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	state := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if st := p.s.status(); st.Ready && !st.Draining {
		state = grpc_health_v1.HealthCheckResponse_SERVING
	}
	return &grpc_health_v1.HealthCheckResponse{Status: state}, nil
}

func (p probe) Watch(*grpc_health_v1.HealthCheckRequest, grpc_health_v1.Health_WatchServer) error {
	return faultf(codes.Unimplemented, "", "watching health is not supported")
}
