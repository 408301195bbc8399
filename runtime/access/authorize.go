package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// ErrNoUser is returned for a user that was deleted since the login.
var ErrNoUser = errors.New("the user does not exist any more")

// PoolError says that the pool does not exist or is not granted: which, it does not tell.
type PoolError struct{ Tenant, Pool string }

func (e *PoolError) Error() string {
	if e.Pool == "" {
		return "no pool is granted to you"
	}
	return fmt.Sprintf("there is no pool %s/%s, or it is not granted to you", e.Tenant, e.Pool)
}

// DisabledError says what is switched off: "user ana", "pool acme/bi".
type DisabledError struct{ What, How string }

func (e *DisabledError) Error() string { return e.What + " is " + e.How }

// AmbiguousError says that the caller must choose a pool.
type AmbiguousError struct{ Choices []string } // as tenant/pool, sorted

func (e *AmbiguousError) Error() string {
	const limit = 20
	shown := e.Choices[:min(len(e.Choices), limit)]
	more := ""
	if n := len(e.Choices) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("more than one pool is granted to you: choose with the headers tenant and pool among %s%s",
		strings.Join(shown, ", "), more)
}

// Access is what a caller may do in a pool.
type Access struct {
	User, UserName   string // id and name
	Tenant, TenantID string
	Pool, PoolID     string
	Database         string // its name in SQL
	Permissions      wire.Permissions
	PermissionsHash  string
	MaxConcurrent    int // statements per node of the pool
}

type accessKey struct{ user, claimed, tenant, pool string }

// Authorize tells what the user may do in the pool. Without a tenant it is the user's own; without a
// pool, the only one the user may enter. Errors: ErrNoUser, *DisabledError, *PoolError, *AmbiguousError.
func (d *Directory) Authorize(userID, tenant, pool string) (Access, error) {
	return d.AuthorizeClaimed(userID, Claimed{}, tenant, pool)
}

// AuthorizeClaimed is Authorize for a user that holds more by its token.
func (d *Directory) AuthorizeClaimed(userID string, claimed Claimed, tenant, pool string) (Access, error) {
	key := accessKey{userID, claimed.key(), schema.Fold(tenant), schema.Fold(pool)}
	if a, ok := d.memo.Load(key); ok {
		return a.(Access), nil
	}
	a, err := d.authorize(key.user, claimed, key.tenant, key.pool)
	if err != nil {
		return Access{}, err
	}
	d.memo.Store(key, a)
	return a, nil
}

func (d *Directory) authorize(userID string, claimed Claimed, tenant, poolName string) (Access, error) {
	u, ok := d.users[userID]
	switch {
	case !ok:
		return Access{}, ErrNoUser
	case u.disabled:
		return Access{}, &DisabledError{"user " + u.name, "disabled"}
	case tenant == "":
		tenant = u.tenant
	case !u.system && tenant != u.tenant:
		return Access{}, &PoolError{tenant, poolName}
	}
	if t, ok := d.tenants[tenant]; ok && t.disabled {
		return Access{}, &DisabledError{"tenant " + tenant, "disabled"}
	}
	u = d.with(u, claimed)
	p, err := d.choose(u, tenant, poolName)
	if err != nil {
		return Access{}, err
	}
	return d.enter(u, p)
}

// choose returns the pool that is named, or the only one that the user may enter.
func (d *Directory) choose(u *user, tenant, name string) (*pool, error) {
	if name != "" && tenant != "" {
		p, ok := d.pools[path{tenant, name}]
		if !ok || !d.granted(u, p) {
			return nil, &PoolError{tenant, name}
		}
		return p, nil
	}
	var found []*pool
	for _, p := range d.pools {
		if (tenant == "" || p.tenant == tenant) && (name == "" || p.name == name) && d.granted(u, p) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return nil, &PoolError{tenant, name}
	case 1:
		return found[0], nil
	}
	choices := make([]string, len(found))
	for i, p := range found {
		choices[i] = p.tenant + "/" + p.name
	}
	slices.Sort(choices)
	return nil, &AmbiguousError{choices}
}

func (d *Directory) granted(u *user, p *pool) bool {
	if u.system {
		return true
	}
	if u.tenant != p.tenant {
		return false
	}
	if u.admin || d.grantsTo(grantee{u.tenant, "user", u.name}, p) {
		return true
	}
	for _, g := range u.groups {
		if d.grantsTo(grantee{u.tenant, "group", g}, p) {
			return true
		}
	}
	return slices.ContainsFunc(d.rolesOf(u), func(r string) bool {
		return d.grantsTo(grantee{u.tenant, "role", r}, p)
	})
}

func (d *Directory) grantsTo(g grantee, p *pool) bool {
	pools := d.grants[g]
	return slices.Contains(pools, p.name) || slices.Contains(pools, "*")
}

// rolesOf lists the roles that the user holds itself and through its groups.
func (d *Directory) rolesOf(u *user) []string {
	held := slices.Clone(u.roles)
	for _, g := range u.groups {
		held = append(held, d.groups[path{u.tenant, g}]...)
	}
	slices.Sort(held)
	return slices.Compact(held)
}

// enter checks that the pool is in service and collects what the user may do there.
func (d *Directory) enter(u *user, p *pool) (Access, error) {
	t, known := d.tenants[p.tenant]
	db, has := d.dbs[path{p.tenant, p.db}]
	name := p.tenant + "/" + p.name
	switch {
	case !known || !has:
		return Access{}, &PoolError{p.tenant, p.name}
	case t.disabled:
		return Access{}, &DisabledError{"tenant " + t.name, "disabled"}
	case p.disabled:
		return Access{}, &DisabledError{"pool " + name, "disabled"}
	case p.suspended:
		return Access{}, &DisabledError{"pool " + name, "suspended"}
	case db.disabled:
		return Access{}, &DisabledError{"the database of pool " + name, "disabled"}
	}
	a := Access{
		User: u.id, UserName: u.name, Tenant: t.name, TenantID: t.id, Pool: p.name, PoolID: p.id,
		Database: db.name, Permissions: d.permissionsOf(u, db.name), MaxConcurrent: p.maxConcurrent,
	}
	a.PermissionsHash = a.Permissions.Hash()
	return a, nil
}
