package edge

import (
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/router"
	"github.com/qod-io/qod/runtime/wire"
)

// destination is where a call must or should go.
type destination struct {
	pin  *router.Pin // nil: anywhere
	hard bool        // nothing else will do
	loss loss        // what is lost with the process
}

// handles are the sealed handles that a call carries; the zero Handle stands for none.
type handles struct{ prepared, ticket, transaction wire.Handle }

// locate opens the call's handles and says where it goes.
func (c *call) locate() *failure {
	h, f := c.open()
	if f != nil {
		return f
	}
	c.session = c.who.session
	for _, of := range []wire.Handle{h.prepared, h.ticket, h.transaction} {
		if of.Kind == "" {
			continue
		}
		c.session = of.Session // where the thing lives; it is the same user's
		if of.Kind != wire.TransactionID {
			c.request.sql = of.SQL
		}
	}
	c.refine(h)
	at, pinned := c.edge.pins.of(c.acts())
	c.to = route(h, at, pinned)
	if c.request.closing && !c.to.hard { // the statement is to be closed where it is
		c.to.hard = true
	}
	return nil
}

// refine puts what the handles know in place of guesses.
func (c *call) refine(h handles) {
	if h.prepared.Kind != "" && isRead(c.request.class) && !c.request.safe && !h.prepared.ReadOnly {
		c.request.class = wire.Write
	}
	if h.ticket.Kind == "" {
		return
	}
	c.statement = h.ticket.Statement
	if h.ticket.SQL == "" {
		c.request.class = wire.Write
		c.request.counting = never // it was counted when it ran; this fetches its answer
	}
}

// route is pure: a transaction's process comes first, then the one that alone has a result or bound
// parameters, then the session's, then the one that has seen the statement before.
func route(h handles, at pin, pinned bool) destination {
	session := destination{pin: &at.Pin, hard: true, loss: lossSession}
	if at.state == wire.InTransaction {
		session.loss = lossTransaction
	}
	for _, of := range []wire.Handle{h.transaction, h.ticket, h.prepared} {
		if of.Kind == "" {
			continue
		}
		to := destination{pin: &router.Pin{Node: of.Node, Incarnation: of.Incarnation}, hard: !portable(of), loss: lossOf(of)}
		switch {
		case pinned && *to.pin == at.Pin:
			session.loss = max(session.loss, to.loss)
			return session
		case pinned && !to.hard:
			return session
		}
		return to
	}
	if pinned {
		return session
	}
	return destination{}
}

// portable reports whether any node of the pool can do what the handle stands for.
func portable(h wire.Handle) bool {
	return h.Kind != wire.TransactionID && h.SQL != "" && h.Bind == "" && h.Transaction == "" &&
		(h.Kind == wire.Prepared || h.ReadOnly)
}

func lossOf(h wire.Handle) loss {
	switch {
	case h.Kind == wire.TransactionID, h.Transaction != "":
		return lossTransaction
	case h.Kind == wire.Prepared:
		return lossPrepared
	}
	return lossResult
}

// open opens the call's handles. They must be of this pool, of their kind and this user's.
func (c *call) open() (h handles, f *failure) {
	if h.prepared, f = c.handle(c.request.prepared, wire.Prepared); f != nil {
		return h, f
	}
	if h.ticket, f = c.handle(c.request.ticket, wire.Ticket); f != nil {
		return h, f
	}
	h.transaction, f = c.handle(c.request.transaction, wire.TransactionID)
	return h, f
}

func (c *call) handle(sealed []byte, kind wire.HandleKind) (h wire.Handle, f *failure) {
	if len(sealed) == 0 {
		return h, nil
	}
	if c.keys.Open(wire.PurposeHandle, sealed, &h) != nil || h.Kind != kind || h.User != c.access.User {
		return wire.Handle{}, fail(codes.NotFound, statusPermanent,
			"unknown or expired handle: it is not one of yours in this pool")
	}
	return h, nil
}
