package edge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/oidc/oidctest"
)

// The token of a tenant's issuer logs in like a password, and its session holds what it claimed.
func TestIssuersToken(t *testing.T) {
	w, i := newWorld(t), oidctest.NewPlain(t)
	trust := func(audience string) {
		w.change("tenant", "t", fmt.Sprintf(`{"name":"acme","auth":{"issuer":%q,"audience":[%q],"roles_claim":"roles","groups_claim":"groups"}}`, i.URL, audience))
	}
	trust("qod")
	w.add("role", "r-in", `{"tenant":"acme","name":"in"}`)
	w.add("group", "g-in", `{"tenant":"acme","name":"staff"}`)
	w.add("user", "u-sam", `{"tenant":"acme","name":"sam@corp.com"}`)
	w.add("pool_grant", "g-role", `{"tenant":"acme","pool":"bi","role":"in"}`)
	w.swap()
	ends := time.Now().Add(time.Minute).Truncate(time.Second)
	claims := map[string]any{"exp": ends.Unix(), "roles": []string{"in", "out", "qod:admin"}, "groups": []string{"staff"}}
	token := i.Token(t, "qod", "sam@corp.com", claims)
	var sessions []context.Context
	// The first names its pool, so that it does not go to another one later.
	for n, authorization := range []string{basic("sam@corp.com@acme/bi", token), "Bearer " + token, basic("token", token)} {
		ctx, b := w.begin(authorization)
		if b.User != "u-sam" || b.Issuer == "" || !slices.Equal(b.Roles, []string{"in"}) || !slices.Equal(b.Groups, []string{"staff"}) || !b.Expires.Equal(ends) {
			t.Errorf("login %d: bearer %+v", n, b)
		}
		w.want(ctx, codes.OK, "")
		w.want(withHeaders(testContext(t), "authorization", authorization), codes.OK, "")
		sessions = append(sessions, ctx)
	}
	if e := w.event(actionLogin); e.User != "sam@corp.com" || e.Tenant != "acme" || e.Realm != access.RealmIssuer || e.From != "127.0.0.1" {
		t.Errorf("audit %+v", e)
	}
	derived, b := w.begin("Bearer " + w.bearerOf(sessions[0]))
	if b.Issuer == "" || len(b.Roles) != 1 || !b.Expires.Equal(ends) {
		t.Errorf("a bearer's bearer %+v", b)
	}
	w.want(derived, codes.OK, "")

	w.want(withHeaders(testContext(t), "authorization", "Bearer "+i.Token(t, "other", "sam@corp.com", nil), "tenant", "acme"),
		codes.Unauthenticated, "wrong user name or password")
	if e := w.event(actionFailure); e.Tenant != "acme" || e.Realm != access.RealmIssuer || e.Code != "token_audience" || !strings.Contains(e.Detail, "other") {
		t.Errorf("audit %+v", e)
	}
	// A role that is taken from the pool, and one that is gone, count for the next statement.
	w.change("pool_grant", "g-role", `{"tenant":"acme","pool":"idle","role":"in"}`)
	w.want(sessions[0], codes.PermissionDenied, "")
	w.change("pool_grant", "g-role", `{"tenant":"acme","pool":"bi","role":"in"}`)
	w.want(sessions[0], codes.OK, "")
	w.change("role", "r-in", `{"tenant":"acme","name":"renamed"}`)
	w.want(sessions[0], codes.PermissionDenied, "")
	w.change("role", "r-in", `{"tenant":"acme","name":"in"}`)
	trust("another")
	for _, ctx := range append(sessions, derived) {
		w.want(ctx, codes.Unauthenticated, "the tenant trusts another issuer")
	}
	for _, e := range w.events() {
		if text := fmt.Sprintf("%+v", e); strings.Contains(text, token) {
			t.Errorf("the audit has the token: %s", text)
		}
	}
}
