package access

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/qod-io/qod/engine/store"
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
}

// Principal is a caller that has logged in.
type Principal struct {
	UserID, UserName string
	Tenant           string // "" for a system administrator that named none
	Pool             string // "" when the login named none
	System           bool
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
	return Login{User: l.User[:at], Password: l.Password, Tenant: tenant, Pool: pool}
}

// Authenticate checks a login. Its errors are ErrUnauthenticated, after the same time for an unknown
// user as for a wrong password, or that of ctx.
func (d *Directory) Authenticate(ctx context.Context, l Login) (Principal, error) {
	return d.authenticate(ctx, l, d.checks)
}

func (d *Directory) authenticate(ctx context.Context, l Login, c *checks) (Principal, error) {
	l = l.target()
	u := d.find(schema.Fold(l.User), schema.Fold(l.Tenant))
	phc, known := d.verifier(u)
	ok, err := c.verify(ctx, phc, l.Password)
	switch {
	case ctx.Err() != nil:
		return Principal{}, fmt.Errorf("check password: %w", context.Cause(ctx))
	case err != nil, !ok, !known, u.disabled, d.shut(u):
		return Principal{}, ErrUnauthenticated
	}
	p := Principal{UserID: u.id, UserName: u.name, Tenant: u.tenant, Pool: schema.Fold(l.Pool), System: u.system}
	if u.system {
		p.Tenant = schema.Fold(l.Tenant)
	}
	return p, nil
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
