package test

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/oidc/oidctest"
)

// sso is an installation whose tenant trusts an issuer that is up.
type sso struct {
	identity
	issuer *oidctest.Issuer
}

// newSSO writes the issuer into the configuration, and a user who has no password and no roles.
func newSSO(t *testing.T) sso {
	t.Helper()
	s := sso{identity{installation: install(t, "quickstart")}, oidctest.New(t)}
	s.edit(t, `  display_name = "Acme"
}
`, fmt.Sprintf(`  display_name = "Acme"
  auth {
    issuer         = %q
    audience       = ["qod"]
    username_claim = "preferred_username"
    roles_claim    = "roles"
  }
}

user "sam" {
  tenant = tenant.acme
}
`, s.issuer.URL))
	s.must(t, "apply", "--auto-approve")
	s.expect(t, 0, nil, "plan", "--detailed-exitcode")
	roots := filepath.Join(s.root, "issuer.crt")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.issuer.Certificate.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s.leader = s.with("SSL_CERT_FILE=" + roots).serve(t)
	return s
}

func (s sso) token(t *testing.T, user string, roles []string, set map[string]any) string {
	t.Helper()
	all := map[string]any{"preferred_username": user, "roles": roles}
	for name, v := range set {
		all[name] = v
	}
	return s.issuer.Token(t, "qod", "", all)
}

// unsigned is the token without its signature.
func unsigned(token string) string { return token[:strings.LastIndexByte(token, '.')+1] }

// bearing returns a client that gives the token with every call.
func (s sso) bearing(t *testing.T, token string, more ...string) *client {
	t.Helper()
	c := s.dial(t, s.leader.Flight)
	c.ctx = metadata.AppendToOutgoingContext(t.Context(), append([]string{"authorization", "Bearer " + token}, more...)...)
	return c
}

// Tokens of a tenant's issuer, from the file to the client.
func TestOIDC(t *testing.T) {
	s := newSSO(t)
	owner := []string{"owner", "qod:admin", "nobody"}
	good := s.token(t, "sam", owner, nil)
	if got := s.bearing(t, good).value(t, "SELECT 42"); got != "42" {
		t.Errorf("a bearer gets %q", got)
	}
	held := s.enter(t, s.leader.Flight, "whoever@acme/bi", good) // as tools do that only have a password
	held.run(t, "CREATE TABLE notes (n INTEGER)")
	s.issuer.Rotate(t)
	rotated := s.enter(t, s.leader.Flight, "sam@acme/bi", s.token(t, "sam", owner, nil))
	rotated.run(t, "INSERT INTO notes VALUES (1)")
	held.run(t, "SELECT 1") // of a key that has left

	for name, tc := range map[string]struct {
		token string
		code  codes.Code
		text  string
	}{
		"no roles":      {s.token(t, "sam", nil, nil), codes.PermissionDenied, ""},
		"virtual role":  {s.token(t, "sam", []string{"qod:admin"}, nil), codes.PermissionDenied, ""},
		"unknown user":  {s.token(t, "tom", owner, nil), codes.Unauthenticated, "wrong user name or password"},
		"administrator": {s.token(t, "admin", owner, nil), codes.Unauthenticated, "wrong user name or password"},
		"expired": {s.token(t, "sam", owner, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
			codes.Unauthenticated, "wrong user name or password"},
		"for others": {s.token(t, "sam", owner, map[string]any{"aud": "others"}), codes.Unauthenticated, "wrong user name or password"},
		"not signed": {unsigned(s.token(t, "sam", owner, nil)), codes.Unauthenticated, "wrong user name or password"},
	} {
		_, _, err := s.bearing(t, tc.token, "tenant", "acme", "pool", "bi").query("SELECT 42")
		if status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: %v", name, err)
		}
	}

	before := s.bearing(t, s.token(t, "sam", owner, nil))
	before.run(t, "SELECT 1")
	s.must(t, "session", "revoke", "--user", "sam", "--tenant", "acme")
	for _, c := range []*client{held, rotated, before} {
		c.refused(t, codes.Unauthenticated, atOnce)
	}
	later := map[string]any{"iat": time.Now().Add(2 * time.Second).Unix()} // tokens know whole seconds
	again := s.enter(t, s.leader.Flight, "sam@acme/bi", s.token(t, "sam", owner, later))
	again.run(t, "SELECT 1")
	s.edit(t, `audience       = ["qod"]`, `audience       = ["others"]`)
	s.must(t, "apply", "--auto-approve")
	again.refused(t, codes.Unauthenticated, atOnce)
	s.audited(t, good)
}

// audited shows that the audit has it all, and nothing the token.
func (s sso) audited(t *testing.T, token string) {
	want := map[string]bool{
		"auth.login oidc sam": true, "auth.login.failure oidc token_audience": true, "auth.login.failure oidc token_expired": true,
		"auth.login.failure oidc token_signature": true, "auth.login.failure oidc unknown_user": true,
		"auth.login.failure oidc token_revoked": true, "auth.session.refused session issuer_changed": true,
	}
	defer func() {
		for word := range want {
			t.Errorf("the audit has no %s", word)
		}
	}()
	eventually(t, 5*time.Second, "all of it is in the audit", func() bool {
		for _, e := range s.events(t) {
			delete(want, e.Action+" "+e.Realm+" "+e.Code)
			delete(want, e.Action+" "+e.Realm+" "+e.User)
		}
		return len(want) == 0
	})
	silent(t, strings.TrimPrefix(token, unsigned(token)), map[string][]byte{
		"the store": s.allRows(t, "qod"), "serve's log": s.read(t, s.state("serve.log")), "audit": []byte(s.must(t, "audit", "--json", "--limit", "0")),
	})
}
