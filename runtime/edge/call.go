package edge

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// method is one that is forwarded.
type method struct {
	name     string
	up, down bool // streams
	late     bool // its answer is let through when its end is known
	parse    func(first []byte) (request, *failure)
}

// call is one call of a client on its way to a node.
type call struct {
	edge   *Edge
	stream grpc.ServerStream
	method method
	first  *frame
	up     *upstream // nil where the client sends one message

	who       caller
	request   request
	access    access.Access
	keys      *wire.Keyring // of the pool
	session   string        // that the node acts in: the caller's, or that of the handle
	statement string
	started   time.Time
	to        destination
	node      string // the last one that was tried
}

// forward handles a method by finding its node.
func (e *Edge) forward(m method) grpc.StreamHandler {
	return func(_ any, s grpc.ServerStream) error {
		c := &call{
			edge: e, stream: s, method: m, first: &frame{}, started: time.Now(), statement: uuid.NewString(),
		}
		defer func() { c.first.free() }()
		ctx, cancel := context.WithCancelCause(s.Context())
		defer cancel(nil)
		f := c.prepare(ctx)
		if f == nil {
			defer e.dismissals.enter(c, cancel)()
			f = c.run(ctx)
		} else {
			c.record(outcome{}, f)
		}
		if f != nil {
			return f
		}
		return nil
	}
}

// prepare finds out who calls, what for, and where it must go.
func (c *call) prepare(ctx context.Context) (f *failure) {
	md, _ := metadata.FromIncomingContext(ctx)
	if c.who, f = c.edge.identify(ctx, md); f != nil {
		return f
	}
	if c.who.token != "" {
		_ = c.stream.SetHeader(metadata.Pairs(headerAuth, "Bearer "+c.who.token))
	}
	if err := c.stream.RecvMsg(c.first); err != nil {
		if ctx.Err() != nil {
			return ended(ctx)
		}
		return malformed("call: it has no message")
	}
	if c.request, f = c.method.parse(flat(c.first)); f != nil {
		return f
	}
	var err error
	if c.access, err = c.edge.directory.Current().AuthorizeClaimed(c.who.user, c.who.claimed, c.who.tenant, c.who.pool); err != nil {
		return notAuthorized(err)
	}
	if f = c.confirmed(); f != nil {
		return f
	}
	if c.keys, err = c.edge.keys.pool(c.edge.keyring(), c.access.PoolID); err != nil {
		c.edge.log.Error("pool key not derived", "pool", c.access.PoolID, "err", err)
		return fail(codes.Internal, statusTransient, "the pool's key could not be derived")
	}
	if f = c.enter(ctx); f != nil {
		return f
	}
	if f = c.locate(); f != nil {
		return f
	}
	if c.edge.dismissals.has(c.session) {
		return notAuthorized(errDismissed)
	}
	return nil
}

// confirmed refuses the call if its rights are too old to go by.
func (c *call) confirmed() *failure {
	limit := c.edge.stale()
	if limit == 0 || c.access.Permissions.Admin {
		return nil
	}
	if age := c.edge.directory.Age(time.Now()); age > limit {
		return outdated(age, limit)
	}
	return nil
}

// enter notes the caller's session, once it is known where one that this edge has not seen has state.
func (c *call) enter(ctx context.Context) *failure {
	if c.who.token != "" { // it has just begun
		return nil
	}
	s := session{c.access.PoolID, c.who.session}
	if !c.edge.pins.knows(s) {
		if f := c.edge.learned(ctx, s.pool); f != nil {
			return f
		}
	}
	c.edge.pins.touch(s)
	return nil
}

// acts is the session that the node acts in.
func (c *call) acts() session { return session{c.access.PoolID, c.session} }

// flat returns the frame's bytes, copied only if they are in pieces.
func flat(f *frame) []byte {
	if len(f.b) == 1 {
		return f.b[0].ReadOnlyData()
	}
	return f.b.Materialize()
}

// run makes attempts until one settles the call.
func (c *call) run(ctx context.Context) *failure {
	if c.method.up {
		c.up = &upstream{client: c.stream}
		defer c.up.close()
	}
	c.edge.budgets.earn(c.access.PoolID)
	f := facts{safe: c.request.safe, asked: c.up != nil} // a stream is not to be sent twice for that
	asks := c.ask()
	for {
		o, n, failed := c.once(ctx, asks, f.asked)
		if failed != nil {
			return c.absent(failed)
		}
		f.pinned, f.read = asks.request.Pin != nil && c.to.hard, o.err != nil && c.onlyReads(o)
		f.replayable = c.up == nil || c.up.replayable()
		if c.settled(o, n) {
			f.pinned = true
		}
		f.alone = o.err != nil && !c.edge.admission.able(without(asks, n.ID))
		f.waited = time.Since(asks.since) > c.edge.admission.busyWait
		switch decide(o, f, func() bool { return c.edge.budgets.spend(c.access.PoolID) }) {
		case permissions:
			f.asked = true
		case again:
			c.edge.admission.rest(n.ID)
			continue
		case reroute:
			f.rerouted = true
			asks.request.Class, asks.request.Pin = other(asks.request.Class, o.class), nil
		case elsewhere:
			f.moved++
			asks = without(asks, n.ID)
		default:
			return c.finish(ctx, o, n)
		}
		asks.since = time.Now()
	}
}

// ask is the order for a node, as far as known before the first attempt.
func (c *call) ask() order {
	o := order{poolID: c.access.PoolID, user: c.access.User, soft: !c.to.hard, since: time.Now(), request: router.Request{
		Pool: c.access.Tenant + "/" + c.access.Pool, Class: c.request.class, Pin: c.to.pin,
	}}
	if c.request.limited && !c.to.hard {
		o.limit = c.access.MaxConcurrent
	}
	if c.request.sql != "" {
		o.request.Fingerprint = sqltext.Fingerprint(c.request.sql)
	}
	return o
}

// without is the order for any node but this one and those that were tried before.
func without(o order, node string) order {
	o.request.Pin = nil
	o.request.Exclude = append(slices.Clip(o.request.Exclude), node)
	return o
}

// once is admitted to a node and calls it.
func (c *call) once(ctx context.Context, asks order, withPermissions bool) (outcome, *node, *failure) {
	e, a := c.edge, c.access
	m, err := e.admission.acquire(ctx, asks)
	if err != nil {
		return outcome{}, nil, notAdmitted(ctx, err, c.to.loss)
	}
	defer e.admission.release(a.PoolID, m.ID)
	n, err := e.nodes.take(m)
	if err != nil {
		e.log.Error("node not dialled", "node", m.ID, "err", err)
		return outcome{}, nil, notAdmitted(ctx, router.ErrNoNode, c.to.loss)
	}
	defer e.nodes.release(n)
	c.node = n.ID
	gauge := e.metrics.inFlight.WithLabelValues(a.Tenant, a.Pool, n.ID)
	gauge.Inc()
	defer gauge.Dec()
	return c.attempt(ctx, n, withPermissions), n, nil
}

// settled tells the fleet of a fault. It reports whether the session has state on the node, which ties
// the call to it.
func (c *call) settled(o outcome, n *node) bool {
	if o.broken() || o.reason == wire.Fatal {
		c.edge.fleet.Suspect(n.ID)
	}
	at, ok := c.edge.pins.of(c.acts())
	return ok && at.Pin == n.pin()
}

// class is what the statement is, as far as known.
func (c *call) class(o outcome) wire.Class {
	if o.class != "" {
		return o.class
	}
	return c.request.class
}

// onlyReads reports whether the statement reads and does nothing else, as far as that is known. A guess
// looks at the first of several statements only.
func (c *call) onlyReads(o outcome) bool {
	if o.class != "" || c.request.sql == "" || !isRead(c.request.class) {
		return isRead(c.class(o))
	}
	parts, err := sqltext.Split(c.request.sql)
	return err == nil && len(parts) <= 1
}

func isRead(c wire.Class) bool { return c == wire.Read || c == wire.Metadata }

// other is the class to route by after a node said that the statement is not for its role.
func other(guessed, told wire.Class) wire.Class {
	if told != "" && isRead(told) != isRead(guessed) {
		return told
	}
	if isRead(guessed) {
		return wire.Write
	}
	return wire.Read
}

func classWord(c wire.Class) string {
	switch c {
	case wire.Read, wire.Write, wire.DDL, wire.Transaction:
		return string(c)
	}
	return "other"
}
