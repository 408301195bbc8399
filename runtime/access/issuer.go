package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/oidc"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/schema"
)

// mostClaimed bounds the roles and groups that a token adds, which every bearer of its session carries.
const mostClaimed = 64

// issuer is who logs in users of a tenant by tokens.
type issuer struct {
	schema.TenantAuth
	name string // of these settings: after a change it is another one
}

// readIssuer returns the tenant's issuer, nil where it has none.
func readIssuer(o *store.Object) *issuer {
	if o.Spec.GetAttr("auth").IsNull() {
		return nil
	}
	v, problems := o.Kind.Complete(o.Spec)
	t, err := schema.As[schema.Tenant](v)
	if len(problems) > 0 || err != nil || t.Auth == nil { // of a newer qod: it logs nobody in
		return nil
	}
	raw, err := json.Marshal(t.Auth)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(raw)
	return &issuer{*t.Auth, base64.RawURLEncoding.EncodeToString(sum[:9])}
}

// issuerName names the settings of the issuer of the user's tenant, "" where there is none.
func (d *Directory) issuerName(userID string) string {
	u, ok := d.users[userID]
	if !ok {
		return ""
	}
	if t, ok := d.tenants[u.tenant]; ok && t.issuer != nil {
		return t.issuer.name
	}
	return ""
}

// issuers have the verifiers for the tokens of the tenants' issuers. They outlive directories, for the keys they hold.
type issuers struct {
	client *http.Client

	mu  sync.Mutex
	all map[string]checker // by the tenant's id
}

type checker struct {
	*oidc.Verifier
	issuer string // name
}

func newIssuers() *issuers {
	return &issuers{client: oidc.NewClient(nil), all: map[string]checker{}}
}

// of returns the verifier of a tenant that has an issuer.
func (vs *issuers) of(t *tenant) *oidc.Verifier {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v, ok := vs.all[t.id]
	if !ok || v.issuer != t.issuer.name {
		v = checker{oidc.New(oidc.Config{Issuer: t.issuer.Issuer, Audience: t.issuer.Audience, Client: vs.client}), t.issuer.name}
		vs.all[t.id] = v
	}
	return v.Verifier
}

// keep forgets the verifiers of tenants that have no issuer any more.
func (vs *issuers) keep(d *Directory) {
	having := map[string]bool{}
	for _, t := range d.tenants {
		having[t.id] = t.issuer != nil
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	for id := range vs.all {
		if !having[id] {
			delete(vs.all, id)
		}
	}
}

// attest finds the user that an issuer's token, given as a password, is of. The user's name in the login only
// chooses tenant and pool. Whatever is wrong, the caller is told what it is told of a wrong password.
func (d *Directory) attest(ctx context.Context, l Login, vs *issuers) (Principal, error) {
	refused := &Refused{Tenant: l.Tenant, Realm: RealmIssuer, err: ErrUnauthenticated}
	token, err := oidc.Parse(l.Password)
	if err != nil {
		return Principal{}, refused.because(err)
	}
	t, code := d.vouched(token, schema.Fold(l.Tenant))
	if code != "" {
		refused.Code = code
		return Principal{}, refused
	}
	refused.Tenant = t.name
	claims, err := vs.of(t).Verify(ctx, token)
	if err != nil {
		if ctx.Err() != nil {
			return Principal{}, context.Cause(ctx)
		}
		return Principal{}, refused.because(err)
	}
	name := claims.Username(t.issuer.UsernameClaim)
	u := d.member(t, name)
	held, fits := d.claimed(t, claims)
	refused.User = name
	if u != nil {
		refused.User = u.name
	}
	switch {
	case name == "":
		refused.Code = "no_username"
	case u == nil:
		refused.Code = "unknown_user"
	case u.disabled:
		refused.Code = "disabled"
	case !fits: // leaving some out could leave out a role that restricts
		refused.Code = "too_many_claims"
	case d.cut(u.id, claims.Issued):
		refused.Code = "token_revoked"
	}
	if refused.Code != "" {
		return Principal{}, refused
	}
	p := d.principal(u, l)
	p.Realm, p.Issuer, p.Claimed, p.Expires = RealmIssuer, t.issuer.name, held, claims.Expires
	return p, nil
}

// because gives the reason that the check of the token has.
func (r *Refused) because(err error) *Refused {
	var e *oidc.Error
	if errors.As(err, &e) {
		r.Code, r.Detail = e.Code, e.Error()
	}
	return r
}

// vouched returns the tenant whose issuer the token is to be checked with: the one that is named, or else the
// only one that the token could be for. It says why there is none.
func (d *Directory) vouched(token *oidc.Token, tenantName string) (t *tenant, code string) {
	if tenantName != "" {
		t = d.tenants[tenantName]
		if t == nil || t.issuer == nil {
			return nil, "no_issuer"
		}
	}
	for _, other := range d.tenants {
		if tenantName != "" || other.issuer == nil || !token.Names(other.issuer.Issuer, other.issuer.Audience) {
			continue
		}
		if t != nil {
			return nil, "ambiguous_tenant"
		}
		t = other
	}
	switch {
	case t == nil:
		return nil, "no_issuer"
	case t.disabled:
		return nil, "tenant_disabled"
	}
	return t, ""
}

// member returns the tenant's user of that name. It is never a system administrator: those belong to no tenant.
// What tokens name is folded from A to Z only. Folding all letters would make one name of several, among which
// people choose theirs at the issuer: with a Kelvin sign for the k, or a dotted capital for the i.
func (d *Directory) member(t *tenant, name string) *user {
	for _, u := range d.names[sqltext.Fold(name)] {
		if !u.system && u.tenant == t.name {
			return u
		}
	}
	return nil
}

// Claimed are the roles and groups that a user holds by its token, beside its own.
type Claimed struct{ Roles, Groups []string }

// key tells apart what is claimed.
func (c Claimed) key() string {
	if len(c.Roles) == 0 && len(c.Groups) == 0 {
		return ""
	}
	return strings.Join(c.Roles, ",") + ";" + strings.Join(c.Groups, ",")
}

// claimed returns the roles and groups of the token that the tenant has, and whether they are not too many.
func (d *Directory) claimed(t *tenant, claims oidc.Claims) (Claimed, bool) {
	list := func(claim *string) []string {
		if claim == nil {
			return nil
		}
		names := claims.List(*claim)
		for i := range names {
			names[i] = sqltext.Fold(names[i])
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	c := d.existing(t.name, Claimed{list(t.issuer.RolesClaim), list(t.issuer.GroupsClaim)})
	return c, len(c.Roles)+len(c.Groups) <= mostClaimed
}

// existing leaves out what the tenant does not have. The roles that every tenant has are not among those that
// it has stored, so a token cannot make an administrator.
func (d *Directory) existing(tenant string, c Claimed) (known Claimed) {
	for _, name := range c.Roles {
		if _, ok := d.roles[path{tenant, name}]; ok {
			known.Roles = append(known.Roles, name)
		}
	}
	for _, name := range c.Groups {
		if _, ok := d.groups[path{tenant, name}]; ok {
			known.Groups = append(known.Groups, name)
		}
	}
	return known
}

// with returns the user with what it holds by its token, as far as that still exists.
func (d *Directory) with(u *user, c Claimed) *user {
	if c.key() == "" || u.system {
		return u
	}
	c = d.existing(u.tenant, c)
	more := *u
	more.roles, more.groups = union(u.roles, c.Roles), union(u.groups, c.Groups)
	return &more
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
