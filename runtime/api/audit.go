package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
)

// Actions of events.
const (
	actionLogin   = "auth.login"
	actionFailure = "auth.login.failure"
	actionLockout = "auth.lockout"
	actionChange  = "rest.change"
	actionRefused = "rest.refused" // of a request that would have changed something
	actionRestart = "pool.restart"
)

// event is one that the caller causes.
func (c *call) event(action, object string) store.Event {
	return store.Event{
		User: c.caller.Name, Tenant: c.caller.Tenant, Realm: c.caller.realm, From: c.from, Action: action, Object: object,
	}
}

// noteLogin notes who logged in, and the session that it began: with each request only once a minute.
func (c *call) noteLogin(session string) {
	if session == "" && !c.rest.noted.Take("login "+c.caller.ID+" "+c.from, time.Now()) {
		return
	}
	e := c.event(actionLogin, cmp.Or(session, "rest"))
	if c.caller.life.Token != "" {
		e.Detail = "token " + c.caller.life.Token
	}
	c.rest.Note(e)
}

// mostFailures bounds the events of one address in a minute.
const mostFailures = 10

// noteRefused notes a login that failed. Of a user that does not exist the name is what a client sent, and
// people type passwords into the wrong field: what does not look like a name is not kept.
func (c *call) noteRefused(r *access.Refused) {
	e := store.Event{User: r.User, Tenant: r.Tenant, Realm: r.Realm, From: c.from, Action: actionFailure, Object: "rest", Code: r.Code}
	if r.Token != "" {
		e.Detail = "token " + r.Token
	}
	for _, name := range []*string{&e.User, &e.Tenant} {
		if !access.Plain(*name) {
			*name = "?"
		}
	}
	if c.rest.denied.Take(c.from, time.Now()) {
		c.rest.Note(e)
	}
	if r.Wait > 0 {
		e.Action, e.Code, e.Detail = actionLockout, "failures", "no login counts for "+r.Wait.String()
		c.rest.Note(e)
	}
}

// noteChange notes a commit.
func (c *call) noteChange(object string, revision store.Revision, p *plan.Plan) {
	e := c.event(actionChange, object)
	add, change, destroy := p.Counts()
	e.Detail = fmt.Sprintf("%s at revision %d of stack %s: %d to add, %d to change, %d to destroy", c.Method, revision, p.Stack, add, change, destroy)
	c.rest.Note(e)
}

// refusedChange notes that a request which would have changed something was refused.
func (c *call) refusedChange(code string) {
	e := c.event(actionRefused, strings.TrimPrefix(shorten(c.URL.Path), Root+"/"))
	e.Code, e.Detail = code, c.Method
	c.rest.Note(e)
}
