package edge

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

// node is the connection to one process. It is closed when the process has left the fleet and the
// last call to it has ended.
type node struct {
	backend.Member
	conn *grpc.ClientConn
	stop context.CancelFunc // of the one that listens to its sessions

	calls int // guarded by nodes.mu, as gone is
	gone  bool
}

func (n *node) pin() router.Pin { return router.Pin{Node: n.ID, Incarnation: n.Incarnation} }

// process names what a connection leads to.
type process struct{ node, incarnation, endpoint string }

func processOf(m backend.Member) process { return process{m.ID, m.Incarnation, m.Endpoint} }

// nodes has one connection per process.
type nodes struct {
	mu   sync.Mutex
	all  map[process]*node
	dial func(endpoint string) (*grpc.ClientConn, error)
	left func(id string) // called when a connection is closed
}

// take returns the connection to the member for one call. The caller gives it back with release.
func (ns *nodes) take(m backend.Member) (*node, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n, err := ns.get(m)
	if err != nil {
		return nil, err
	}
	n.calls++
	return n, nil
}

func (ns *nodes) get(m backend.Member) (*node, error) {
	key := processOf(m)
	if n, ok := ns.all[key]; ok {
		return n, nil
	}
	conn, err := ns.dial(m.Endpoint)
	if err != nil {
		return nil, err
	}
	n := &node{Member: m, conn: conn}
	ns.all[key] = n
	return n, nil
}

func (ns *nodes) release(n *node) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	n.calls--
	ns.reap(n)
}

func (ns *nodes) reap(n *node) {
	if n.gone && n.calls == 0 {
		n.conn.Close()
		delete(ns.all, processOf(n.Member))
		ns.left(n.ID)
	}
}

// settle drops the processes that are not among the wanted, and has the others listened to.
func (ns *nodes) settle(wanted map[process]backend.Member, listen func(*node) context.CancelFunc) (err error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	for key, n := range ns.all {
		if _, ok := wanted[key]; ok || n.gone {
			continue
		}
		n.gone = true
		if n.stop != nil {
			n.stop()
		}
		ns.reap(n)
	}
	for _, m := range wanted {
		n, dialErr := ns.get(m)
		if dialErr != nil {
			err = dialErr
			continue
		}
		if n.gone { // it was out of sight for a moment
			n.gone, n.stop = false, nil
		}
		if n.stop == nil {
			n.stop = listen(n)
		}
	}
	return err
}

// watch keeps connections and session lists in step with the fleet until ctx ends.
func (e *Edge) watch(ctx context.Context) {
	var listeners sync.WaitGroup
	defer listeners.Wait()
	defer e.nodes.settle(nil, nil)
	for {
		snapshot, changed := e.fleet.Current()
		there := processes(snapshot)
		e.pins.keep(there)
		err := e.nodes.settle(there, func(n *node) context.CancelFunc {
			ctx, cancel := context.WithCancel(ctx)
			listeners.Go(func() { e.listen(ctx, n) })
			return cancel
		})
		if err != nil {
			e.log.Error("node not dialled", "err", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// processes lists those that have, or may have, sessions.
func processes(s *backend.Snapshot) map[process]backend.Member {
	wanted := map[process]backend.Member{}
	for _, members := range s.Pools {
		for _, m := range members {
			if m.Incarnation != "" && m.Phase != backend.Gone {
				wanted[processOf(m)] = m
			}
		}
	}
	return wanted
}

const listenAgain = 200 * time.Millisecond

// listen follows the node's list of sessions until ctx ends.
func (e *Edge) listen(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		keys, err := e.keys.pool(e.keyring(), n.PoolID)
		if err == nil {
			err = wire.NewClient(n.conn, keys).Sessions(ctx, func(l wire.Sessions) { e.pins.list(n.PoolID, n.ID, l) })
		}
		if ctx.Err() != nil {
			return
		}
		e.log.Debug("session list ended", "node", n.ID, "err", err)
		select {
		case <-time.After(listenAgain):
		case <-ctx.Done():
		}
	}
}

// learned waits until every node of the pool that is not gone has told its sessions, but not for long:
// a session that this edge has not seen may have state on any of them. It fails if one that may have
// sessions stays silent; one that never passed a probe has none that matter.
func (e *Edge) learned(ctx context.Context, poolID string) *failure {
	const patience = 2 * time.Second
	var timeout <-chan time.Time
	for {
		snapshot, changed := e.fleet.Current()
		silent, told := e.pins.unheard(snapshot.Pools[poolID])
		if len(silent) == 0 {
			return nil
		}
		if timeout == nil {
			timeout = time.After(patience)
		}
		select {
		case <-told:
		case <-changed:
		case <-timeout:
			if slices.ContainsFunc(silent, mayHaveSessions) {
				return fail(codes.Unavailable, statusTransient, "the pool's nodes have not told their sessions yet: try again")
			}
			return nil
		case <-ctx.Done():
			return ended(ctx)
		}
	}
}

// mayHaveSessions reports whether the member has ever taken statements, as far as is known.
func mayHaveSessions(m backend.Member) bool {
	return !m.Probed.IsZero() || m.Phase == backend.Draining || m.Phase == backend.Quarantined
}

// alive finds out whether the process is still there after a call to it broke: by what the fleet says,
// or by asking it.
func (e *Edge) alive(ctx context.Context, n *node, keys *wire.Keyring) bool {
	const patience, pause = time.Second, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := wire.NewClient(n.conn, keys)
	for ctx.Err() == nil {
		if e.left(n) {
			return false
		}
		if s, err := client.Status(ctx); err == nil {
			return s.Incarnation == n.Incarnation
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return false
}

// left reports whether the fleet has seen the process go.
func (e *Edge) left(n *node) bool {
	snapshot, _ := e.fleet.Current()
	_, there := processes(snapshot)[processOf(n.Member)]
	return !there
}
