package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/oidc"
	"github.com/qod-io/qod/schema"
)

// ErrUnauthenticated is returned for a login that fails, whatever the reason: it does not tell whether
// the user, the tenant or the password was wrong.
var ErrUnauthenticated = errors.New("wrong user name or password")

// Login is what a caller gives to log in.
type Login struct {
	// User may carry tenant and pool after a "/" behind its last "@": ann@corp.com@acme/bi.
	User, Password string
	// Tenant and Pool are those of the call's headers, if any; what the user's name carries goes first.
	Tenant, Pool string
	From         string // address of the caller, without port
}

// Realms: what vouches for a caller.
const (
	RealmPassword = "password"
	RealmToken    = "token"
	RealmIssuer   = "oidc"
	RealmSession  = "session" // a bearer
	RealmHost     = "host"    // whoever runs qod there
)

// Refused is the error of a login that failed. What a caller is told of it never tells whether the user, the
// tenant or the password was wrong, or whether the user must wait; what is beside it is for the audit.
type Refused struct {
	User, Tenant string // as in the directory, or as the caller said
	Realm        string
	Token        string        // id of the one that was given, if it was right
	Code         string        // why: unknown_user, password, locked, disabled …
	Detail       string        // more of that; it may hold what the caller or an issuer sent
	Wait         time.Duration // that this failure began
	err          error
}

func (r *Refused) Error() string { return r.err.Error() }

// Unwrap makes errors.Is(err, ErrUnauthenticated) true for failed passwords.
func (r *Refused) Unwrap() error { return r.err }

// Principal is a caller that has logged in.
type Principal struct {
	UserID, UserName string
	Tenant           string // "" for a system administrator that named none
	Pool             string // "" when the login named none
	System           bool

	Realm    string
	Verifier string    // names that of the password, "" without one
	Token    string    // id of the token, "" without one
	Issuer   string    // names the settings of the issuer whose token this was, "" without one
	Claimed  Claimed   // by that token
	Expires  time.Time // of either token; zero: never
}

// target splits what the user's name carries off it.
func (l Login) target() Login {
	at := strings.LastIndexByte(l.User, '@')
	if at < 0 {
		return l
	}
	tenant, pool, ok := strings.Cut(l.User[at+1:], "/")
	if !ok {
		return l
	}
	l.User, l.Tenant, l.Pool = l.User[:at], tenant, pool
	return l
}

// Authenticate checks a login. Its errors are a *Refused, after the same time for an unknown user as for a
// wrong password or one that does not count yet, or that of ctx.
func (d *Directory) Authenticate(ctx context.Context, l Login) (Principal, error) {
	return d.authenticate(ctx, l, d.gate)
}

func (d *Directory) authenticate(ctx context.Context, l Login, g *gate) (Principal, error) {
	l = l.target()
	if IsToken(l.Password) {
		return d.redeem(l, time.Now())
	}
	if oidc.IsToken(l.Password) {
		return d.attest(ctx, l, g.issuers)
	}
	u := d.find(schema.Fold(l.User), schema.Fold(l.Tenant))
	phc, known := d.verifier(u)
	held := u != nil && g.lockout.holds(u.id, l.From, time.Now())
	ok, err := g.checks.verify(ctx, phc, l.Password, held)
	if ctx.Err() != nil {
		return Principal{}, fmt.Errorf("check password: %w", context.Cause(ctx))
	}
	if u == nil {
		return Principal{}, &Refused{User: l.User, Tenant: l.Tenant, Realm: RealmPassword, Code: "unknown_user", err: ErrUnauthenticated}
	}
	if code, wait := d.admit(u, l, g.lockout, held, known && err == nil && ok); code != "" {
		return Principal{}, &Refused{
			User: u.name, Tenant: u.tenant, Realm: RealmPassword, Code: code, Wait: wait, err: ErrUnauthenticated,
		}
	}
	p := d.principal(u, l)
	p.Realm, p.Verifier = RealmPassword, d.verifierName(u.id)
	return p, nil
}

// admit says why a login whose password was checked does not count, "" if it does. Others may have failed
// while it was checked, so the lockout is asked again.
func (d *Directory) admit(u *user, l Login, waits *lockout, held, right bool) (code string, wait time.Duration) {
	now := time.Now()
	switch {
	case held || waits.holds(u.id, l.From, now):
		return "locked", 0
	case !right:
		return "password", waits.fail(u.id, l.From, now)
	case u.disabled:
		return "disabled", 0
	case d.shut(u):
		return "tenant_disabled", 0
	}
	waits.succeed(u.id, l.From, now)
	return "", 0
}

// find returns the user of the tenant, or the system administrator of that name. Without a tenant the
// name must exist once.
func (d *Directory) find(name, tenant string) *user {
	var system *user
	for _, u := range d.names[name] {
		switch {
		case tenant == "" && len(d.names[name]) == 1:
			return u
		case u.system:
			system = u
		case tenant != "" && u.tenant == tenant:
			return u
		}
	}
	if tenant == "" {
		return nil
	}
	return system
}

// verifier returns the user's verifier, or one that costs the same to fail at.
func (d *Directory) verifier(u *user) (phc string, known bool) {
	if u == nil {
		return d.dummy, false
	}
	key := store.SecretKey{Object: u.id, Attr: verifierAttr}
	sealed, ok := d.secrets[key]
	if !ok {
		return d.dummy, false
	}
	raw, err := d.sealer.Open(key, sealed)
	if err != nil {
		return d.dummy, false
	}
	if _, err := parseVerifier(string(raw)); err != nil {
		return d.dummy, false
	}
	return string(raw), true
}

// shut reports whether the user's tenant is disabled or gone.
func (d *Directory) shut(u *user) bool {
	if u.system {
		return false
	}
	t, ok := d.tenants[u.tenant]
	return !ok || t.disabled
}
