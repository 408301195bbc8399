package access

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/oidc"
	"github.com/qod-io/qod/runtime/oidc/oidctest"
	"github.com/qod-io/qod/runtime/wire"
)

// corp is two tenants with an issuer each and one that has none. Ana is a user of all.
type corp struct {
	*world
	acme, zeta *oidctest.Issuer
}

func newCorp(t testing.TB) *corp {
	t.Helper()
	c := &corp{newWorld(t), oidctest.New(t), oidctest.New(t)}
	c.tenant("acme", c.acme.URL, "qod", `,"roles_claim":"realm_access.roles","groups_claim":"groups"`)
	c.tenant("zeta", c.zeta.URL, "qod", "")
	c.add("tenant", "t-none", `{"name":"none"}`)
	for _, tenant := range []string{"acme", "zeta", "none"} {
		c.add("tenant_db", "d-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"sales","kind":"ducklake"}`, tenant))
		c.add("pool", "p-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"bi","tenant_db":"sales"}`, tenant))
		c.add("user", "u-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"Ana@corp.com","roles":["own"]}`, tenant))
		c.add("role", "r-"+tenant, fmt.Sprintf(`{"tenant":%q,"name":"own"}`, tenant))
	}
	c.add("role", "r-all", `{"tenant":"acme","name":"all","permission":[{"catalog":"sales","privileges":["all"]}]}`)
	c.add("role", "r-zeta-only", `{"tenant":"zeta","name":"zeta-only","permission":[{"catalog":"sales","privileges":["all"]}]}`)
	c.add("group", "g-staff", `{"tenant":"acme","name":"staff","roles":["all"]}`)
	c.add("pool_grant", "1", `{"tenant":"acme","pool":"bi","role":"all"}`)
	c.add("user", "u-eve", `{"tenant":"acme","name":"eve@corp.com","disabled":true}`)
	c.add("user", "u-kim", `{"tenant":"acme","name":"kim@corp.com"}`)
	c.add("user", "u-odd", `{"tenant":"acme","name":"Özil@corp.com"}`)
	c.add("user", "u-root", `{"name":"root@corp.com","system":true}`)
	return c
}

func (c *corp) tenant(name, issuer, audience, more string) {
	c.add("tenant", "t-"+name, fmt.Sprintf(`{"name":%q,"auth":{"issuer":%q,"audience":[%q]%s}}`, name, issuer, audience, more))
}

// retell changes the stored tenant.
func (c *corp) retell(name, issuer, audience, more string) {
	c.remove("t-" + name)
	c.tenant(name, issuer, audience, more)
}

func (c *corp) remove(id string) {
	c.snap.Objects = slices.DeleteFunc(c.snap.Objects, func(o store.Object) bool { return o.ID == id })
}

func (c *corp) holder() *Holder {
	h := NewHolder(c.directory())
	tr, ok := c.acme.Client.Transport.(*http.Transport)
	if !ok {
		c.t.Fatal("no transport")
	}
	h.gate.issuers.client = oidc.NewClient(tr.TLSClientConfig.RootCAs) // of both: httptest has one certificate
	return h
}

func (c *corp) token(email string, set map[string]any) string {
	return c.acme.Token(c.t, "qod", email, set)
}

// login returns the refusal, too, which has no code for a login that went well.
func login(t testing.TB, h *Holder, l Login) (Principal, Refused) {
	t.Helper()
	p, err := h.Authenticate(t.Context(), l)
	if err == nil {
		return p, Refused{}
	}
	var refused *Refused
	if !errors.As(err, &refused) || refused.Code == "" {
		t.Fatal(err)
	}
	if !errors.Is(err, ErrUnauthenticated) || err.Error() != ErrUnauthenticated.Error() {
		t.Errorf("%s is told as %q", refused.Code, err)
	}
	return p, *refused
}

func TestIssuerLogsIn(t *testing.T) {
	c := newCorp(t)
	h := c.holder()
	type set = map[string]any
	tests := map[string]struct {
		from  *oidctest.Issuer // nil: acme's
		email string           // "": Ana's
		set   set
		login Login
		user  string
		code  string
	}{
		"by issuer and audience":    {user: "u-acme"},
		"tenant named":              {login: Login{Tenant: "ACME"}, user: "u-acme"},
		"tenant in the user's name": {login: Login{User: "whoever@acme/bi"}, user: "u-acme"},
		"other tenant":              {from: c.zeta, user: "u-zeta"},
		"case of the name":          {email: "ANA@Corp.com", user: "u-acme"},
		"name beyond ASCII":         {email: "özil@corp.com", user: "u-odd"},
		"capital beyond ASCII":      {email: "Özil@corp.com", code: "unknown_user"},
		"Kelvin sign":               {email: "\u212aim@corp.com", code: "unknown_user"},
		"dotted capital":            {email: "k\u0130m@corp.com", code: "unknown_user"},
		"tenant without issuer":     {login: Login{Tenant: "none"}, code: "no_issuer"},
		"no such tenant":            {login: Login{Tenant: "nil"}, code: "no_issuer"},
		"into another tenant":       {login: Login{Tenant: "zeta"}, code: "token_signature"},
		"into another, by name":     {login: Login{User: "ana@corp.com@zeta/bi"}, code: "token_signature"},
		"other's issuer as iss":     {set: set{"iss": c.zeta.URL}, code: "token_signature"},
		"unknown issuer":            {set: set{"iss": "https://evil.example"}, code: "no_issuer"},
		"wrong audience":            {set: set{"aud": "x"}, code: "no_issuer"},
		"wrong audience, named":     {set: set{"aud": "x"}, login: Login{Tenant: "acme"}, code: "token_audience"},
		"expired":                   {set: set{"exp": time.Now().Add(-time.Second).Unix()}, code: "token_expired"},
		"unknown user":              {email: "bob@corp.com", code: "unknown_user"},
		"disabled user":             {email: "eve@corp.com", code: "disabled"},
		"system administrator":      {email: "root@corp.com", code: "unknown_user"},
		"address not verified":      {set: set{"email_verified": false}, code: "no_username"},
		"no address":                {set: set{"email": nil}, code: "no_username"},
		"claims to be admin":        {set: set{"admin": true, "system": true, "roles": []string{"qod:admin"}}, user: "u-acme"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			from, email := tc.from, tc.email
			if from == nil {
				from = c.acme
			}
			if email == "" {
				email = "Ana@corp.com"
			}
			tc.login.Password = from.Token(t, "qod", email, tc.set)
			p, refused := login(t, h, tc.login)
			if refused.Code != tc.code || p.UserID != tc.user || strings.Contains(refused.Detail, tc.login.Password) {
				t.Fatalf("got %+v, refused %+v; want %s%s", p, refused, tc.user, tc.code)
			}
			if tc.code != "" {
				return
			}
			if left := time.Until(p.Expires); left > time.Hour || left < 50*time.Minute {
				t.Errorf("it lives for %s", left)
			}
			if p.Realm != RealmIssuer || p.Issuer == "" || p.System || p.Claimed.key() != "" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

// Two tenants may trust one issuer: the audience tells for which a token is, or the caller.
func TestOneIssuerOfTwoTenants(t *testing.T) {
	c := newCorp(t)
	c.retell("zeta", c.acme.URL, "zeta", "")
	h := c.holder()
	both := []string{"qod", "zeta"}
	tests := map[string]struct {
		audience           any
		tenant, user, code string
	}{
		"for one":             {audience: "qod", user: "u-acme"},
		"for the other":       {audience: "zeta", user: "u-zeta"},
		"for both":            {audience: both, code: "ambiguous_tenant"},
		"for both, named":     {audience: both, tenant: "zeta", user: "u-zeta"},
		"for the other alone": {audience: "zeta", tenant: "acme", code: "token_audience"},
	}
	for name, tc := range tests {
		token := c.token("ana@corp.com", map[string]any{"aud": tc.audience})
		if p, refused := login(t, h, Login{Tenant: tc.tenant, Password: token}); p.UserID != tc.user || refused.Code != tc.code {
			t.Errorf("%s: %+v, refused %+v", name, p, refused)
		}
	}
}

func TestClaimedRoles(t *testing.T) {
	c := newCorp(t)
	h := c.holder()
	all := []wire.Permission{{Catalog: "sales", Schema: "*", Table: "*", Privileges: []string{"all"}}}
	many := make([]string, 200)
	for n := range many {
		many[n] = fmt.Sprintf("many-%d", n)
	}
	type set = map[string]any
	tests := map[string]struct {
		set    set
		want   Claimed
		grants []wire.Permission // nil: no pool may be entered
	}{
		"nothing":           {set{}, Claimed{}, nil},
		"a role":            {set{"realm_access": set{"roles": []string{"ALL", "all"}}}, Claimed{Roles: []string{"all"}}, all},
		"a group":           {set{"groups": "staff"}, Claimed{Groups: []string{"staff"}}, all},
		"unknown":           {set{"realm_access": set{"roles": many}, "groups": []string{"nobody"}}, Claimed{}, nil},
		"virtual":           {set{"realm_access": set{"roles": []string{"qod:admin", "qod:reader", "QOD:WRITER", "admin", "*", ""}}}, Claimed{}, nil},
		"of another tenant": {set{"realm_access": set{"roles": []string{"zeta-only"}}}, Claimed{}, nil},
		"role as group":     {set{"groups": []string{"all"}}, Claimed{}, nil},
		"of the wrong type": {set{"realm_access": set{"roles": set{"all": true}}, "groups": 7}, Claimed{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, refused := login(t, h, Login{Password: c.token("ana@corp.com", tc.set)})
			if diff := cmp.Diff(tc.want, p.Claimed); diff != "" || refused.Code != "" {
				t.Fatalf("refused %q, claimed (-want +got):\n%s", refused.Code, diff)
			}
			a, err := h.Current().AuthorizeClaimed(p.UserID, p.Claimed, "", "")
			if (err == nil) != (tc.grants != nil) {
				t.Fatalf("authorize: %v", err)
			}
			if diff := cmp.Diff(tc.grants, a.Permissions.Grants); diff != "" || a.Permissions.Admin {
				t.Errorf("admin %t, grants (-want +got):\n%s", a.Permissions.Admin, diff)
			}
			// What the token adds is the session's alone, not the user's.
			if _, err := h.Current().Authorize(p.UserID, "", ""); err == nil {
				t.Error("the user holds what its token claimed")
			}
		})
	}
}

// A bearer cannot hold what the tenant does not have, whoever sealed it and whenever.
func TestClaimedRolesFollowTheDirectory(t *testing.T) {
	c := newCorp(t)
	held := Claimed{Roles: []string{"all", "qod:admin", "zeta-only"}, Groups: []string{"nobody"}}
	if a, err := c.directory().AuthorizeClaimed("u-acme", held, "", ""); err != nil || a.Permissions.Admin || len(a.Permissions.Grants) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.directory().AuthorizeClaimed("u-eve", held, "", ""); err == nil {
		t.Error("a disabled user is let in by a role")
	}
	if _, err := c.directory().AuthorizeClaimed("u-acme", held, "zeta", "bi"); err == nil {
		t.Error("a role lets a user into another tenant")
	}
	c.remove("r-all")
	if a, err := c.directory().AuthorizeClaimed("u-acme", held, "", ""); err == nil {
		t.Errorf("a role that was deleted still grants %v", a.Permissions.Grants)
	}
}

func TestTooManyClaimedRoles(t *testing.T) {
	c := newCorp(t)
	names := make([]string, mostClaimed+1)
	for n := range names {
		names[n] = fmt.Sprintf("many-%d", n)
		c.add("role", "r-"+names[n], fmt.Sprintf(`{"tenant":"acme","name":%q}`, names[n]))
	}
	h := c.holder()
	for n, want := range map[int]string{mostClaimed: "", mostClaimed + 1: "too_many_claims"} {
		roles := map[string]any{"realm_access": map[string]any{"roles": names[:n]}}
		p, refused := login(t, h, Login{Password: c.token("ana@corp.com", roles)})
		if refused.Code != want || want == "" && len(p.Claimed.Roles) != n {
			t.Errorf("%d roles: %+v, refused %+v", n, p.Claimed, refused)
		}
	}
}

// Another issuer, audience or claim ends what the old ones began, and counts from the next login on.
func TestIssuerChanges(t *testing.T) {
	c := newCorp(t)
	h := c.holder()
	p, _ := login(t, h, Login{Password: c.token("ana@corp.com", nil)})
	s := Session{ID: "s", User: p.UserID, Issuer: p.Issuer, Issued: time.Now()}
	if err := h.Current().Ended(s); err != nil || p.Issuer == "" {
		t.Errorf("ended: %v", err)
	}
	changes := map[string]func(){
		"audience": func() { c.retell("acme", c.acme.URL, "new", "") },
		"claim":    func() { c.retell("acme", c.acme.URL, "qod", `,"username_claim":"sub"`) },
		"issuer":   func() { c.retell("acme", c.zeta.URL, "qod", "") },
		"none":     func() { c.remove("t-acme"); c.add("tenant", "t-acme", `{"name":"acme"}`) },
	}
	for name, change := range changes {
		change()
		h.Swap(c.directory())
		var ended *EndedError
		if err := h.Current().Ended(s); !errors.As(err, &ended) || ended.Code != "issuer_changed" {
			t.Errorf("another %s: ended %v", name, err)
		}
		if _, refused := login(t, h, Login{Tenant: "acme", Password: c.token("ana@corp.com", nil)}); refused.Code == "" {
			t.Errorf("another %s: a token of before logs in", name)
		}
	}
}

// A change of the store that is none of the issuer's keeps its keys, and nothing is kept for who has none.
func TestKeysOutliveDirectories(t *testing.T) {
	c := newCorp(t)
	h := c.holder()
	if n := c.acme.Asked(oidctest.Discovery); n != 0 {
		t.Errorf("the issuer was asked %d times before the first login", n)
	}
	for range 3 {
		if _, refused := login(t, h, Login{Password: c.token("ana@corp.com", nil)}); refused.Code != "" {
			t.Fatal(refused.Code)
		}
		h.Swap(c.directory())
	}
	if n := c.acme.Asked(oidctest.Keys); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
	c.remove("t-acme")
	h.Swap(c.directory())
	if n := len(h.gate.issuers.all); n != 0 {
		t.Errorf("%d verifiers are kept for nobody", n)
	}
}

// A revocation of all that a user began covers the tokens that it had until then.
func TestRevokedUserNeedsAnotherToken(t *testing.T) {
	c := newCorp(t)
	now := time.Now()
	c.snap.Revoked = append(c.snap.Revoked, store.Revocation{User: "u-acme", At: now.Add(-time.Minute)})
	h := c.holder()
	for name, tc := range map[string]struct {
		issued any
		want   string
	}{
		"before": {now.Add(-2 * time.Minute).Unix(), "token_revoked"}, "after": {now.Unix(), ""}, "who knows when": {nil, "token_revoked"},
	} {
		if _, refused := login(t, h, Login{Password: c.token("ana@corp.com", map[string]any{"iat": tc.issued})}); refused.Code != tc.want {
			t.Errorf("issued %s: %q, want %q", name, refused.Code, tc.want)
		}
	}
}

func TestDisabledTenantAsksNobody(t *testing.T) {
	c := newCorp(t)
	c.remove("t-acme")
	c.add("tenant", "t-acme", fmt.Sprintf(`{"name":"acme","disabled":true,"auth":{"issuer":%q,"audience":["qod"]}}`, c.acme.URL))
	h := c.holder()
	for _, tenant := range []string{"", "acme"} {
		if _, refused := login(t, h, Login{Tenant: tenant, Password: c.token("ana@corp.com", nil)}); refused.Code != "tenant_disabled" {
			t.Errorf("refused %+v", refused)
		}
	}
	if n := c.acme.Asked(oidctest.Discovery); n != 0 {
		t.Errorf("the issuer was asked %d times", n)
	}
}

func TestIssuerLoginsWhileItRotatesAndGoesAway(t *testing.T) {
	c := newCorp(t)
	h := c.holder()
	var wait sync.WaitGroup
	for range 4 {
		token := c.token("ana@corp.com", nil)
		for range 8 {
			wait.Go(func() {
				if _, err := h.Authenticate(t.Context(), Login{Password: token}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		c.acme.Answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		if _, refused := login(t, h, Login{Password: token}); refused.Code != "" {
			t.Errorf("while the issuer is away: %+v", refused)
		}
		c.acme.Answer(nil)
		c.acme.Rotate(t)
	}
}
