package api

import (
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// caller is who makes a request.
type caller struct {
	access.Account
	realm    string
	readOnly bool
	expires  time.Time      // zero: as long as the password is right
	life     access.Session // what vouches for it ends with
	claimed  access.Claimed // what it holds beside, by the token of an issuer
}

// who is the caller as the history has it.
func (c *call) who() engine.Who { return engine.Who{By: c.caller.String(), From: c.from} }

// sees reports whether the caller sees what is in a tenant.
func (c caller) sees(tenant string) bool {
	return c.System || c.Admin && tenant != "" && tenant == schema.Fold(c.Tenant)
}

// mayChange reports whether the caller may make an object be so. To a tenant's administrator the tenant itself is
// only to see.
func (c caller) mayChange(k *schema.Kind, v cty.Value) bool {
	return c.sees(k.TenantOf(v)) && (c.System || !k.Bounds())
}

// hides reports whether the caller must not see or set the attribute.
func (c caller) hides(a *schema.Attr) bool { return a.Host && !c.System }

func unauthenticated(message string) *failure {
	return refuse(http.StatusUnauthorized, "unauthenticated", message)
}

// identify finds out who calls, and whether REST is for it.
func (c *call) identify() *failure {
	scheme, rest, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	rest = strings.TrimSpace(rest)
	var f *failure
	switch strings.ToLower(scheme) {
	case "":
		return unauthenticated("no credentials: give a bearer token, or a user's name and password")
	case "basic":
		user, password, ok := basic(rest)
		if !ok {
			return unauthenticated("the credentials are not a user's name and password")
		}
		f = c.logIn(user, "", password)
	case "bearer":
		if access.LogsIn(rest) {
			f = c.logIn("", "", rest)
		} else {
			f = c.resume(rest)
		}
	default:
		return unauthenticated("this kind of credentials is not known: give Basic or Bearer")
	}
	if f != nil {
		return f
	}
	if stale := c.stale(); stale && !c.caller.System {
		return broken(errors.New("grants are stale"))
	}
	if !c.caller.System && !c.caller.Admin {
		return refuse(http.StatusForbidden, "forbidden", "REST is for administrators")
	}
	return nil
}

func (c *call) stale() bool {
	if c.rest.Stale == nil {
		return false
	}
	most := c.rest.Stale()
	return most > 0 && c.rest.Directory.Age(time.Now()) > most
}

func basic(encoded string) (user, password string, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(raw), ":")
}

// logIn checks a password or what stands for one. The user's name may be TENANT/NAME.
func (c *call) logIn(user, tenant, password string) *failure {
	if access.IsBearer(password) {
		return c.resume(password)
	}
	if before, after, ok := strings.Cut(user, "/"); ok && tenant == "" {
		tenant, user = before, after
	}
	// By name too: a proxy gives all clients one address.
	guesser := c.from + " " + tenant + "/" + user
	if wait := c.rest.failures.empty(guesser); wait > 0 && !access.LogsIn(password) {
		return tooMany(wait)
	}
	p, err := c.rest.Directory.Authenticate(c.Context(), access.Login{User: user, Tenant: tenant, Password: password, From: c.from})
	var refused *access.Refused
	switch {
	case errors.As(err, &refused):
		c.rest.failures.take(guesser)
		c.noteRefused(refused)
		return unauthenticated(err.Error())
	case err != nil:
		return broken(err)
	}
	life := access.Session{User: p.UserID, Token: p.Token, Verifier: p.Verifier, Issuer: p.Issuer, Issued: time.Now()}
	return c.become(life, p.Realm, p.Expires, p.Claimed)
}

// resume takes the bearer of a login.
func (c *call) resume(text string) *failure {
	b, err := access.OpenBearer(c.rest.Keyring(), text)
	switch {
	case err != nil:
		return unauthenticated(err.Error())
	case !time.Now().Before(b.Expires):
		return unauthenticated("the token expired: log in again")
	}
	life := access.SessionOf(b)
	if err := c.rest.Directory.Current().Ended(life); err != nil {
		return unauthenticated(err.Error())
	}
	return c.become(life, access.RealmSession, b.Expires, access.Claimed{Roles: b.Roles, Groups: b.Groups})
}

func (c *call) become(life access.Session, realm string, expires time.Time, claimed access.Claimed) *failure {
	d := c.rest.Directory.Current()
	account, err := d.Account(life.User)
	if err != nil {
		return unauthenticated(access.ErrUnauthenticated.Error())
	}
	c.caller = caller{
		Account: account, realm: realm, readOnly: d.ReadOnly(life.Token), expires: expires, life: life, claimed: claimed,
	}
	if realm != access.RealmSession {
		c.noteLogin("")
	}
	return nil
}

// current reports whether the caller still is what it was when the request began, for those that last.
func (c *call) current() bool {
	d := c.rest.Directory.Current()
	account, err := d.Account(c.caller.ID)
	if err != nil || d.Ended(c.caller.life) != nil || account != c.caller.Account || c.stale() && !account.System {
		return false
	}
	return c.caller.expires.IsZero() || time.Now().Before(c.caller.expires)
}

type loginBody struct {
	User     string `json:"user"`
	Tenant   string `json:"tenant"`
	Password string `json:"password"`
}

// login answers a name and a password with a bearer.
func (c *call) login() *failure {
	var in loginBody
	if f := c.read(&in); f != nil {
		return f
	}
	if f := c.logIn(in.User, in.Tenant, in.Password); f != nil {
		return f
	}
	if !c.caller.System && !c.caller.Admin {
		return refuse(http.StatusForbidden, "forbidden", "REST is for administrators")
	}
	life, expires := c.caller.life, time.Now().Add(c.rest.BearerLife)
	if at := c.caller.expires; !at.IsZero() && at.Before(expires) {
		expires = at
	}
	root := life.Root
	if life.ID != "" && root == "" {
		root = life.ID
	}
	b := wire.Bearer{
		Session: uuid.NewString(), Root: root, User: life.User, Tenant: c.caller.Tenant, Issued: life.Issued, Expires: expires,
		Token: life.Token, Verifier: life.Verifier, Issuer: life.Issuer, Roles: c.caller.claimed.Roles, Groups: c.caller.claimed.Groups,
	}
	token, err := access.SealBearer(c.rest.Keyring(), b)
	if err != nil {
		return broken(err)
	}
	c.noteLogin("session " + b.Session)
	return c.ok(map[string]any{"token": token, "expires": expires.UTC()})
}

// me says who the caller is.
func (c *call) me() *failure {
	scope := "tenant"
	if c.caller.System {
		scope = "system"
	}
	out := map[string]any{
		"user": c.caller.Name, "tenant": c.caller.Tenant, "scope": scope, "read_only": c.caller.readOnly, "realm": c.caller.realm,
		"expires": nil,
	}
	if !c.caller.expires.IsZero() {
		out["expires"] = c.caller.expires.UTC()
	}
	return c.ok(out)
}

// host is an address without its port.
func host(address string) string {
	h, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return h
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// learned waits until the directory knows of a commit, so that who was made by it can log in. It does not
// wait long: the store may be faster than its news.
func (a *REST) learned(ctx context.Context, known func(*access.Directory) bool) {
	const most = time.Second
	limit := time.NewTimer(most)
	defer limit.Stop()
	for {
		d, changed := a.Directory.Watch()
		if known(d) {
			return
		}
		select {
		case <-changed:
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *REST) learnedRevision(ctx context.Context, r store.Revision) {
	a.learned(ctx, func(d *access.Directory) bool { return d.Revision() >= r })
}
