package edge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/router"
)

var (
	errSaturated = errors.New("every node is at its limit of concurrent statements")
	errQueueFull = errors.New("too many statements wait for the pool")
	errQueueTime = errors.New("the statement waited too long for a node at its limit of concurrent statements")
)

// admission gives statements places on nodes: each at once where there is one, else in turn of the
// users that wait, so that one user's many statements do not hold up another's one.
type admission struct {
	fleet              *backend.Fleet
	nodeWait, busyWait time.Duration // how long to wait for a node at all, and for a place
	waiters            int           // per pool

	mu    sync.Mutex
	load  map[string]int       // node to the calls out to it
	busy  map[string]time.Time // node to when it may be tried again
	pools map[string]*queue
}

// order is what a statement asks for.
type order struct {
	poolID, user string
	request      router.Request
	soft         bool      // the request's pin is only a wish
	since        time.Time // when the wait began, over several tries
	limit        int       // of calls on a node; 0: none, for what must not wait behind others
}

type waiter struct {
	order
	got chan admitted // one place: the answer never blocks
}

type admitted struct {
	member backend.Member
	err    error
}

// queue has the waiters of a pool by user, and the users in turn.
type queue struct {
	turns   []string
	waiting map[string][]*waiter
	n       int
}

func newAdmission(fleet *backend.Fleet, nodeWait, busyWait time.Duration, waiters int) *admission {
	return &admission{
		fleet: fleet, nodeWait: nodeWait, busyWait: busyWait, waiters: waiters,
		load: map[string]int{}, busy: map[string]time.Time{}, pools: map[string]*queue{},
	}
}

// acquire returns the node for a statement and counts it as loaded until release. It waits, in the
// user's turn, while there is no node or no place.
func (a *admission) acquire(ctx context.Context, o order) (backend.Member, error) {
	w, m, err := a.enter(o)
	if w == nil {
		return m, err
	}
	for {
		_, changed := a.fleet.Current()
		select {
		case r := <-w.got:
			return r.member, r.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-changed:
			a.dispatch(o.poolID)
			continue
		case <-time.After(busyPause): // a node that said it is busy tells nobody when it no longer is
			a.dispatch(o.poolID)
			if err = a.impatient(w, time.Since(w.since)); err == nil {
				continue
			}
		}
		if r, taken := a.leave(w); taken {
			return r.member, r.err
		}
		return backend.Member{}, err
	}
}

// busyPause is how long a node that said it is busy is left alone.
const busyPause = 25 * time.Millisecond

func (a *admission) enter(o order) (*waiter, backend.Member, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.pools[o.poolID]
	if q == nil || q.n == 0 || o.limit == 0 {
		m, err := a.pick(o)
		if err == nil || !waitsFor(err) {
			return nil, m, err
		}
	}
	if q == nil {
		q = &queue{waiting: map[string][]*waiter{}}
		a.pools[o.poolID] = q
	}
	if q.n >= a.waiters {
		return nil, backend.Member{}, fmt.Errorf("pool %s: %w (%d)", o.request.Pool, errQueueFull, q.n)
	}
	w := &waiter{order: o, got: make(chan admitted, 1)}
	if len(q.waiting[o.user]) == 0 {
		q.turns = append(q.turns, o.user)
	}
	q.waiting[o.user] = append(q.waiting[o.user], w)
	q.n++
	a.serve(o.poolID) // there may be a place for it that the ones before it cannot use
	return w, backend.Member{}, nil
}

func waitsFor(err error) bool {
	return errors.Is(err, errSaturated) || errors.Is(err, router.ErrNoNode) || errors.Is(err, router.ErrPinAway)
}

// pick finds a node with a place and takes it. The caller holds the lock.
func (a *admission) pick(o order) (backend.Member, error) {
	snapshot, _ := a.fleet.Current()
	members := snapshot.Pools[o.poolID]
	now := time.Now()
	free := slices.DeleteFunc(slices.Clone(members), func(m backend.Member) bool {
		return now.Before(a.busy[m.ID]) || o.limit > 0 && a.load[m.ID] >= o.limit
	})
	load := func(id string) int { return a.load[id] }
	m, err := router.Pick(free, o.request, load)
	if err != nil && o.soft && o.request.Pin != nil {
		o.request.Pin = nil
		m, err = router.Pick(free, o.request, load)
	}
	if err == nil {
		a.load[m.ID]++
		return m, nil
	}
	if len(free) == len(members) {
		return m, err
	}
	if _, err = router.Pick(members, o.request, load); err == nil {
		err = errSaturated
	}
	return backend.Member{}, err
}

// able reports whether a node could take the statement if it had a place.
func (a *admission) able(o order) bool {
	snapshot, _ := a.fleet.Current()
	_, err := router.Pick(snapshot.Pools[o.poolID], o.request, func(string) int { return 0 })
	return err == nil
}

// impatient returns an error once the waiter has waited long enough for what it waits for.
func (a *admission) impatient(w *waiter, waited time.Duration) error {
	if waited < a.nodeWait && waited < a.busyWait {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	snapshot, _ := a.fleet.Current()
	r := w.request
	if w.soft {
		r.Pin = nil
	}
	_, err := router.Pick(snapshot.Pools[w.poolID], r, func(string) int { return 0 })
	switch {
	case err != nil && waited >= a.nodeWait:
		return err
	case waited >= a.busyWait:
		return fmt.Errorf("pool %s: %w (%s)", w.request.Pool, errQueueTime, a.busyWait)
	}
	return nil
}

// leave takes the waiter out of the queue, unless it has an answer already.
func (a *admission) leave(w *waiter) (admitted, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case r := <-w.got:
		return r, true
	default:
	}
	q := a.pools[w.poolID]
	q.remove(w.user, slices.Index(q.waiting[w.user], w))
	if q.n == 0 {
		delete(a.pools, w.poolID)
	}
	return admitted{}, false
}

func (q *queue) remove(user string, i int) {
	q.waiting[user] = slices.Delete(q.waiting[user], i, i+1)
	q.n--
	if len(q.waiting[user]) == 0 {
		delete(q.waiting, user)
		q.turns = slices.DeleteFunc(q.turns, func(u string) bool { return u == user })
	}
}

// release gives a place back.
func (a *admission) release(poolID, node string) {
	a.mu.Lock()
	if a.load[node]--; a.load[node] <= 0 {
		delete(a.load, node)
	}
	a.mu.Unlock()
	a.dispatch(poolID)
}

// rest leaves a node alone for a moment, since it said that it is busy.
func (a *admission) rest(node string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for id, until := range a.busy {
		if now.After(until) {
			delete(a.busy, id)
		}
	}
	a.busy[node] = now.Add(busyPause)
}

func (a *admission) dispatch(poolID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serve(poolID)
}

// serve gives the places there are to the users in turn, of each to the first that can use one: a
// statement that waits for a node of its own does not hold up those behind it. The caller holds the lock.
func (a *admission) serve(poolID string) {
	q := a.pools[poolID]
	for tried := 0; q != nil && tried < len(q.turns); {
		user := q.turns[0]
		q.turns = append(q.turns[1:], user)
		if a.serveOne(q, user) {
			tried = 0
		} else {
			tried++
		}
	}
	if q != nil && q.n == 0 {
		delete(a.pools, poolID)
	}
}

func (a *admission) serveOne(q *queue, user string) bool {
	for i, w := range q.waiting[user] {
		m, err := a.pick(w.order)
		if err != nil && waitsFor(err) {
			continue
		}
		w.got <- admitted{m, err}
		q.remove(user, i)
		return true
	}
	return false
}
