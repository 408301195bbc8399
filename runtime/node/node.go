package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/qod-io/qod/runtime/wire"
)

const (
	// sweepEvery is how often idle sessions are looked for.
	sweepEvery = time.Second
	// fetchGrace is how long a draining node waits for a client to come for a result it was promised.
	fetchGrace = 5 * time.Second
	// stopLimit is how long a stopping node waits for statements that it has interrupted.
	stopLimit = 5 * time.Second
)

// Config is what Run needs. All of it must be set.
type Config struct {
	Node     wire.NodeConfig
	Listener net.Listener // Run closes it
	Log      *slog.Logger
}

// Run attaches the lake, closes the engine to everything else and serves until ctx ends. Then it takes no
// new statements, lets what runs end for up to DrainLimit, interrupts the rest and returns nil. It
// returns an error when it cannot start or the listener fails; one that wraps ErrNoExtension when an
// extension is missing, and ErrOutgrown when the process has to end at once.
func Run(ctx context.Context, cfg Config) error {
	defer cfg.Listener.Close()
	if v := cfg.Node.Version; v < wire.MinVersion || v > wire.Version {
		return fmt.Errorf("run node: configuration is of version %d, this qod speaks %d to %d", v, wire.MinVersion, wire.Version)
	}
	if cfg.Node.MemoryBytes > 0 {
		debug.SetMemoryLimit(cfg.Node.MemoryBytes / 8)
	}
	started := time.Now()
	e, err := openLake(ctx, cfg.Node)
	if err != nil {
		return fmt.Errorf("run node %s: %w", cfg.Node.ID, err)
	}
	s, err := newServer(cfg.Node, e, cfg.Log)
	if err != nil {
		e.close()
		return fmt.Errorf("run node %s: %w", cfg.Node.ID, err)
	}
	s.selfCheck(ctx)
	cfg.Log.InfoContext(ctx, "node serves", "node", cfg.Node.ID, "lake", cfg.Node.Lake.Name,
		"incarnation", s.incarnation, "took", time.Since(started))
	quiet, err := s.watched(func() (bool, error) { return s.serve(ctx, cfg.Listener) })
	if quiet { // otherwise a call is still in the engine, and the end of the process has to end it
		s.close()
		e.close()
	}
	if err != nil {
		return fmt.Errorf("run node %s: %w", cfg.Node.ID, err)
	}
	return nil
}

// serve serves until ctx ends and the node is drained. It says whether no call is left in the engine.
func (s *server) serve(ctx context.Context, listener net.Listener) (quiet bool, err error) {
	g := newGRPC(s)
	var group errgroup.Group
	upkeep, stopUpkeep := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan struct{})
	group.Go(func() error {
		defer close(failed)
		return g.Serve(listener)
	})
	checks := make(chan struct{})
	go func() { // not in the group: a hung engine must not keep the node from stopping
		defer close(checks)
		every(upkeep, checkEvery, func() { s.selfCheck(upkeep) })
	}()
	group.Go(func() error {
		every(upkeep, sweepEvery, func() {
			now := time.Now()
			s.closeLanes(upkeep, s.sessions.sweep(now, s.live.Load().SessionIdleTimeout))
			s.outcomes.sweep(now)
		})
		return nil
	})
	select {
	case <-ctx.Done():
		s.drain(failed)
	case <-failed:
	}
	close(s.stopping)
	quiet = s.stop(g)
	stopUpkeep()
	err = group.Wait()
	select {
	case <-checks:
	case <-time.After(stopLimit):
		quiet = false
	}
	if errors.Is(err, grpc.ErrServerStopped) {
		err = nil
	}
	return quiet, err
}

// drain takes no new statements and waits, up to the limit, until nothing is left to wait for.
func (s *server) drain(failed <-chan struct{}) {
	s.draining.Store(true)
	limit := time.NewTimer(s.cfg.DrainLimit)
	defer limit.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !s.drained() {
		select {
		case <-tick.C:
		case <-limit.C:
			s.log.Warn("drain limit reached", "node", s.cfg.ID, "running", s.running.count())
			return
		case <-failed:
			return
		}
	}
}

func (s *server) drained() bool {
	if s.running.count() > 0 || s.outcomes.unfetched(fetchGrace) {
		return false
	}
	sessions, _ := s.sessions.list()
	for _, n := range sessions {
		if n.State == wire.InTransaction {
			return false
		}
	}
	return true
}

// stop interrupts what still runs and ends all connections. It says whether every call has returned.
func (s *server) stop(g *grpc.Server) bool {
	s.running.cancelAll("", errStopping)
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Stop()
		s.sends.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
		defer cancel()
		s.closeLanes(ctx, s.sessions.takeAll())
	}()
	select {
	case <-done:
		return true
	case <-time.After(2 * stopLimit):
		return false // the process ends with a call in the engine
	}
}

// every calls f again and again until ctx ends.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}
