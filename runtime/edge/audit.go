package edge

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	grpcpeer "google.golang.org/grpc/peer"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// Event is something that the audit keeps.
type Event struct {
	ID                              string    // "" and
	At                              time.Time // zero: given to it when it is kept
	User, Tenant, Realm, From       string
	Action, Object, Code, Privilege string
	Detail, SQL                     string
}

// Actions of events.
const (
	actionLogin     = "auth.login"
	actionFailure   = "auth.login.failure"
	actionLockout   = "auth.lockout"
	actionRefused   = "auth.session.refused" // a bearer that was revoked
	actionNoAccess  = "access.denied"        // to a pool
	actionDenied    = "sql.denied"
	actionCancelled = "sql.cancelled" // because its user or session was ended
)

// Events per minute of one user that are kept of logins that fail, or of one address where there is no such
// user, and of logins that do not: some clients log in with every call.
const (
	mostFailures = 10
	mostLogins   = 60
)

// auditor makes events.
type auditor struct {
	note             func(Event) // must not block
	suppressed       func()      // called for an event that is one too many
	failures, logins access.Quota
}

func newAuditor(note func(Event), suppressed func()) *auditor {
	if note == nil {
		note = func(Event) {}
	}
	return &auditor{note: note, suppressed: suppressed, failures: access.Quota{Most: mostFailures}, logins: access.Quota{Most: mostLogins}}
}

// limited notes the event if the quota has room.
func (a *auditor) limited(q *access.Quota, key string, e Event) {
	if !q.Take(key, time.Now()) {
		a.suppressed()
		return
	}
	a.note(e)
}

// loggedIn notes a login that went well and the session that it began.
func (a *auditor) loggedIn(from string, p access.Principal, session string) {
	a.limited(&a.logins, p.UserID+" "+from, Event{
		User: p.UserName, Tenant: p.Tenant, Realm: p.Realm, From: from, Action: actionLogin, Object: "session " + session, Detail: ofToken(p.Token),
	})
}

// maxDetail bounds, in bytes, what callers and issuers have a say in.
const maxDetail = 300

func ofToken(id string) string {
	if id == "" {
		return ""
	}
	return "token " + id
}

// refused notes a login that failed. Of a user that does not exist the name is what a client sent, and
// people type passwords into the wrong field: what does not look like a name is not kept.
func (a *auditor) refused(from string, r *access.Refused) {
	e := Event{
		User: r.User, Tenant: r.Tenant, Realm: r.Realm, From: from, Action: actionFailure, Code: r.Code,
		Detail: cmp.Or(ofToken(r.Token), storable(cut(r.Detail, maxDetail))),
	}
	key := r.Tenant + "/" + r.User
	if r.Code == "unknown_user" || r.User == "" {
		key = "from " + from
		for _, name := range []*string{&e.User, &e.Tenant} {
			if !access.Plain(*name) {
				*name = "?"
			}
		}
	}
	a.limited(&a.failures, key, e)
	if r.Wait > 0 {
		e.Action, e.Code, e.Detail = actionLockout, "failures", "no login counts for "+r.Wait.String()
		a.note(e)
	}
}

// noteEnded notes the use of a bearer after its session was ended.
func (e *Edge) noteEnded(from string, s access.Session, err error) {
	d := e.directory.Current()
	event := Event{
		User: d.Name(s.User), Tenant: d.Tenant(s.User), Realm: access.RealmSession, From: from, Action: actionRefused,
		Object: "session " + s.ID, Code: codeOf(err), Detail: err.Error(),
	}
	e.audit.limited(&e.audit.failures, s.User, event)
}

// codeOf names the reason for which somebody is turned away.
func codeOf(err error) string {
	var (
		ended     *access.EndedError
		disabled  *access.DisabledError
		ambiguous *access.AmbiguousError
		pool      *access.PoolError
	)
	switch {
	case errors.As(err, &ended):
		return ended.Code
	case errors.As(err, &disabled):
		return "disabled"
	case errors.As(err, &ambiguous):
		return "ambiguous_pool"
	case errors.As(err, &pool):
		return "no_pool"
	case errors.Is(err, access.ErrNoUser):
		return "no_user"
	}
	return ""
}

// audited notes the call if it was refused, or ended with its user or session. Who could not even say who
// it is has been noted before.
func (c *call) audited(o outcome, f *failure) {
	if f == nil || c.who.user == "" {
		return
	}
	e := Event{
		User: c.access.UserName, Tenant: c.access.Tenant, Realm: c.who.realm, From: addressOf(c.stream.Context()), Code: f.reason,
		Detail: cut(f.text, maxMessage), SQL: storable(sqltext.Redact(c.request.sql, maxSQL)),
	}
	if c.access.Pool != "" {
		e.Object = "pool " + c.access.Tenant + "/" + c.access.Pool
	} else {
		e.Tenant, _, e.User = c.refusedAt()
	}
	switch {
	case o.reason == wire.Denied:
		e.Action, e.Code, e.Privilege = actionDenied, o.denial.Code, o.denial.Privilege
		if o.denial.Object != "" {
			e.Object = o.denial.Object
		}
	case f.status == statusCancelled && f.reason != "":
		e.Action = actionCancelled
	case f.reason == reasonStale:
		e.Action = actionDenied
		c.edge.audit.limited(&c.edge.audit.failures, c.who.user, e)
		return
	case f.reason != "":
		e.Action = actionNoAccess
	default:
		return
	}
	c.edge.audit.note(e)
}

// addressOf is where a call comes from, without the port.
func addressOf(ctx context.Context) string {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return ""
	}
	host, _, err := net.SplitHostPort(p.Addr.String())
	if err != nil {
		return p.Addr.String()
	}
	return host
}
