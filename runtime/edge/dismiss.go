package edge

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

const (
	// sweepEvery is how often sessions with state are looked at even if nothing changed: nodes tell of some
	// after the change that ended them.
	sweepEvery = 500 * time.Millisecond
	closeLimit = 5 * time.Second
	// closers bounds the sessions that are being closed at a time.
	closers = 16
	// dismissedLimit bounds the sessions that are remembered as over, dismissedLife for how long.
	dismissedLimit = 8192
	dismissedLife  = 24 * time.Hour
)

// dismissal is the cause of a call that is cancelled because its user or session is no longer welcome.
type dismissal struct{ err error }

func (d *dismissal) Error() string { return d.err.Error() }

// Unwrap returns why.
func (d *dismissal) Unwrap() error { return d.err }

func (d *dismissal) failure() *failure {
	f := notAuthorized(d.err)
	f.status, f.text = statusCancelled, "the statement was cancelled: "+f.text
	return f
}

// errDismissed is told to the session of a user that was barred when it had state, should the user be let in
// again. What it had is gone, and to go on without it would be half of what the client means: statements
// outside of their transaction, or in another one.
var errDismissed = &access.EndedError{Code: "session_closed", Text: "the session was closed and rolled back while its user was not allowed in"}

// judge says why nothing of the session may run any more, nil if it may.
func judge(d *access.Directory, s access.Session) error {
	if err := d.Ended(s); err != nil {
		return err
	}
	return d.Barred(s.User)
}

// dismissals are the calls that run, and the sessions that are over because they had something to lose.
type dismissals struct {
	mu     sync.Mutex
	live   map[*call]context.CancelCauseFunc
	closed map[string]time.Time // session ids
	busy   map[session]bool     // being closed
}

func newDismissals() *dismissals {
	return &dismissals{live: map[*call]context.CancelCauseFunc{}, closed: map[string]time.Time{}, busy: map[session]bool{}}
}

// enter has the call cancelled with its user or session, until the returned function is called.
func (ds *dismissals) enter(c *call, cancel context.CancelCauseFunc) func() {
	ds.mu.Lock()
	ds.live[c] = cancel
	ds.mu.Unlock()
	if err := judge(c.edge.directory.Current(), c.who.life); err != nil { // it changed just before
		cancel(&dismissal{err})
	}
	return func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		delete(ds.live, c)
	}
}

// sweep cancels the calls that may not go on.
func (ds *dismissals) sweep(d *access.Directory) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for c, cancel := range ds.live {
		if err := judge(d, c.who.life); err != nil {
			cancel(&dismissal{err})
			ds.close(c.session) // what it began may become known only later
		}
	}
}

// remember notes that the session has lost what it had.
func (ds *dismissals) remember(id string) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.close(id)
}

// close is remember; the caller holds the lock.
func (ds *dismissals) close(id string) {
	now := time.Now()
	if len(ds.closed) >= dismissedLimit {
		for id, at := range ds.closed {
			if now.Sub(at) > dismissedLife || len(ds.closed) >= dismissedLimit {
				delete(ds.closed, id)
			}
		}
	}
	ds.closed[id] = now
}

func (ds *dismissals) has(id string) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	_, ok := ds.closed[id]
	return ok
}

// begin reports whether the session is not being closed already; end must follow.
func (ds *dismissals) begin(s session) bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.busy[s] || len(ds.busy) >= closers {
		return false
	}
	ds.busy[s] = true
	return true
}

func (ds *dismissals) end(s session) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	delete(ds.busy, s)
}

// enforce ends what runs for users and sessions that are no longer welcome, as soon as the directory says
// so, until ctx ends.
func (e *Edge) enforce(ctx context.Context) {
	var closing sync.WaitGroup
	defer closing.Wait()
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		d, changed := e.directory.Watch()
		e.dismissals.sweep(d)
		for s, at := range e.pins.all() {
			over := at.owner.User != "" && judge(d, at.owner) != nil || e.dismissals.has(s.id)
			if !over || !e.dismissals.begin(s) {
				continue
			}
			closing.Go(func() {
				defer e.dismissals.end(s)
				e.closeSession(ctx, s, at)
			})
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// closeSession has the node end what runs in the session and roll back. One that cannot be reached now is
// tried again by the next sweep.
func (e *Edge) closeSession(ctx context.Context, s session, at pin) {
	e.dismissals.remember(s.id)
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	err := e.onNode(s.pool, at.Pin, func(c *wire.Client) error { return c.CloseSession(ctx, at.owner.User, s.id) })
	if err != nil && !errors.Is(err, errNotThere) {
		e.log.Warn("session not closed", "session", s.id, "node", at.Node, "err", err)
		return
	}
	e.pins.clear(s, at.Pin)
	e.log.Info("a session that is no longer welcome was closed and rolled back", "session", s.id, "node", at.Node)
}

var errNotThere = errors.New("the process is not there")

// onNode calls f with a client of the process.
func (e *Edge) onNode(poolID string, at router.Pin, f func(*wire.Client) error) error {
	snapshot, _ := e.fleet.Current()
	members := snapshot.Pools[poolID]
	i := slices.IndexFunc(members, func(m backend.Member) bool { return m.ID == at.Node && m.Incarnation == at.Incarnation })
	if i < 0 {
		return errNotThere
	}
	n, err := e.nodes.take(members[i])
	if err != nil {
		return err
	}
	defer e.nodes.release(n)
	keys, err := e.keys.pool(e.keyring(), poolID)
	if err != nil {
		return err
	}
	return f(wire.NewClient(n.conn, keys))
}
