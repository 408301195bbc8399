package api

import (
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/qod-io/qod/engine/store"
)

type restartBody struct {
	ID string `json:"id"`
}

// restart has the nodes of an object replaced. The answer is the object with that still to do.
func (c *call) restart() *failure {
	var in restartBody
	if f := c.read(&in); f != nil {
		return f
	}
	if in.ID == "" {
		in.ID = uuid.NewString()
	} else if uuid.Validate(in.ID) != nil {
		return badRequest("want a uuid").at("id")
	}
	addr, ok := keyOf(c.kind, c.params)
	if !ok {
		return notFound()
	}
	snap, err := c.rest.Engine.Store.Snapshot(c.Context())
	if err != nil {
		return broken(err)
	}
	o := c.caller.lookup(snap, addr)
	if o == nil {
		c.refusedChange("not_found")
		return notFound()
	}
	switch err := c.rest.Engine.Restart(c.Context(), *o, in.ID); {
	case errors.Is(err, store.ErrNotFound):
		return notFound()
	case err != nil:
		return broken(err)
	}
	e := c.event(actionRestart, addr.String())
	e.Detail = "restart " + in.ID
	c.rest.Note(e)
	if snap, err = c.rest.Engine.Store.Snapshot(c.Context()); err != nil {
		return broken(err)
	}
	if o = byID(snap, o.ID); o == nil { // somebody removed it since
		return notFound()
	}
	return c.one(http.StatusOK, snap, *o)
}
