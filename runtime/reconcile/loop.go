package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// Config says what a Loop works on. Only the fields with a default may be left out.
type Config struct {
	Backend backend.Backend // nil: this process only follows
	Store   store.Store
	Nodes   store.Nodes
	Fleet   *backend.Fleet
	Keys    func() *wire.Keyring // the cluster's, as they are now
	Spec    SpecFunc
	// Host names the host whose nodes the Backend runs. It must be the same for ever: a pool with node
	// rows of another host is left to that one.
	Host string
	// Acting is closed once this process may act; nil: never.
	Acting <-chan struct{}

	ReconcileInterval time.Duration // between rounds without a cause; default 0: none
	ProbeInterval     time.Duration // default 5 s
	ProbeTimeout      time.Duration // default 2 s
	StartLimit        time.Duration // for a new node to pass a probe; default 60 s
	SilentLimit       time.Duration // for a quarantined node to answer; default 30 s
	DrainLimit        time.Duration // for work to end on a draining node; default 60 s
	StopGrace         time.Duration // between asking a node to end and killing it; default 10 s

	Registerer prometheus.Registerer // default: none
	Log        *slog.Logger          // default: none
}

func (c *Config) fill() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.ProbeInterval, 5 * time.Second},
		{&c.ProbeTimeout, 2 * time.Second},
		{&c.StartLimit, time.Minute},
		{&c.SilentLimit, 30 * time.Second},
		{&c.DrainLimit, time.Minute},
		{&c.StopGrace, 10 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

// Loop makes nodes what the store asks for. One of Run and Converge may be called, and once.
type Loop struct {
	cfg  Config
	dial dialer

	kick  chan struct{} // asks for a round
	first chan struct{} // closed after the first pass

	began time.Time // nodes that were started before are adopted

	mu         sync.Mutex
	members    map[string]*member // by node id
	pools      map[string]*pool   // by pool id
	snapshot   *store.Snapshot    // the last that could be read
	published  *backend.Snapshot
	round      int // counts rounds; work that ended in or after one is not judged by it
	rounds     int // rounds that saw store and backend
	background sync.WaitGroup
}

// pool is what the loop remembers of a pool between rounds: only what no one else can tell.
type pool struct {
	target
	busy    bool // steps are under way
	settled int  // the round in which the last of them ended
	judged  int  // the round in which a node failed last
	backoff backoff
	state   PoolState
}

// New returns a Loop. It fails if the metrics are registered already.
func New(cfg Config) (*Loop, error) {
	cfg.fill()
	l := &Loop{
		cfg: cfg, dial: dialNode,
		kick: make(chan struct{}, 1), first: make(chan struct{}), began: time.Now(),
		members: map[string]*member{}, pools: map[string]*pool{},
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(collector{l}); err != nil {
			return nil, fmt.Errorf("register node metrics: %w", err)
		}
	}
	return l, nil
}

// FirstPass is closed once a round saw store and backend and every node it found has been probed.
func (l *Loop) FirstPass() <-chan struct{} { return l.first }

// Run keeps the nodes as the store asks, and returns nil when ctx ends. Nodes go on.
func (l *Loop) Run(ctx context.Context) error {
	l.run(ctx, func(Report, bool) bool { return false })
	return nil
}

// Converge runs rounds until nothing is missing or too much, calling progress with every new report.
// When ctx ends before, the error names what is missing. Nodes go on.
func (l *Loop) Converge(ctx context.Context, progress func(Report)) (Report, error) {
	var last Report
	done := false
	l.run(ctx, func(r Report, whole bool) bool {
		if !r.equal(last) && progress != nil {
			progress(r)
		}
		last = r
		done = whole && r.Converged()
		return done
	})
	if done {
		return last, nil
	}
	return last, fmt.Errorf("converge nodes: %w: %s", context.Cause(ctx), last)
}

// run does rounds until ctx ends or enough says so. It gets each round's report, and whether the round
// was whole: it saw everything, and no step is under way.
func (l *Loop) run(ctx context.Context, enough func(Report, bool) bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer l.background.Wait()
	defer cancel()
	l.background.Go(func() { _ = l.cfg.Store.Watch(ctx, func(store.Revision) { l.again() }) })
	l.background.Go(func() { l.hearSuspects(ctx) })
	l.background.Go(func() { l.hearExits(ctx) })
	l.background.Go(func() { l.recordSeen(ctx) })
	defer l.stopProbes()
	var tick <-chan time.Time
	if l.cfg.ReconcileInterval > 0 {
		ticker := time.NewTicker(l.cfg.ReconcileInterval)
		defer ticker.Stop()
		tick = ticker.C
	}
	for failures := 0; ; {
		whole, after, err := l.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failures++
			after = time.Now().Add(delay(min(failures, 6), rand.Float64()))
			l.cfg.Log.Error("reconcile: nothing is changed", "error", err)
		} else {
			failures = 0
		}
		if enough(l.report(), whole && err == nil) {
			return
		}
		if !l.sleep(ctx, after, tick) {
			return
		}
	}
}

// sleep waits for a cause to look again.
func (l *Loop) sleep(ctx context.Context, after time.Time, tick <-chan time.Time) bool {
	var alarm <-chan time.Time
	if !after.IsZero() {
		timer := time.NewTimer(time.Until(after))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.kick:
	case <-tick:
	case <-alarm:
	}
	return true
}

// again asks for a round. It never blocks.
func (l *Loop) again() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (l *Loop) acting() bool {
	if l.cfg.Backend == nil || l.cfg.Acting == nil {
		return false
	}
	select {
	case <-l.cfg.Acting:
		return true
	default:
		return false
	}
}

func (l *Loop) hearSuspects(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-l.cfg.Fleet.Suspects():
			l.mu.Lock()
			if m := l.members[id]; m != nil {
				m.prod()
			}
			l.mu.Unlock()
		}
	}
}

// hearExits waits for the right to act, and from then on takes nodes out of routing as they exit.
func (l *Loop) hearExits(ctx context.Context) {
	if l.cfg.Backend == nil || l.cfg.Acting == nil {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-l.cfg.Acting:
		l.again()
	}
	for failures := 1; ; failures++ {
		begin := time.Now()
		err := l.cfg.Backend.Exits(ctx, l.exited)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > goodLife {
			failures = 1
		}
		if err == nil {
			err = errors.New("it ended")
		}
		l.cfg.Log.Error("watch exits of nodes", "error", err)
		if !pause(ctx, delay(min(failures, 6), rand.Float64())) {
			return
		}
	}
}

// seenInterval is how often it is recorded which nodes answer, for those who know them only by row.
const seenInterval = 30 * time.Second

func (l *Loop) recordSeen(ctx context.Context) {
	for pause(ctx, seenInterval) {
		if !l.acting() {
			continue
		}
		var ids []string
		l.mu.Lock()
		for id, m := range l.members {
			if !m.remote && time.Since(m.answered) < seenInterval+l.cfg.ProbeInterval {
				ids = append(ids, id)
			}
		}
		l.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		if err := l.cfg.Nodes.SawNodes(ctx, ids); err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("record which nodes answer", "error", err)
		}
	}
}

// pause waits, and reports false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
