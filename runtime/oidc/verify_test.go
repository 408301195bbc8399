package oidc

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/oidc/oidctest"
)

// clock is one that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// clientOf trusts the issuer's certificate.
func clientOf(i *oidctest.Issuer) *http.Client {
	roots := x509.NewCertPool()
	if tr, ok := i.Client.Transport.(*http.Transport); ok && tr.TLSClientConfig != nil {
		roots = tr.TLSClientConfig.RootCAs
	}
	return NewClient(roots)
}

func verifierOf(i *oidctest.Issuer, c *clock) *Verifier {
	return New(Config{Issuer: i.URL, Audience: []string{"qod", "other"}, Client: clientOf(i), Now: c.now})
}

func check(ctx context.Context, v *Verifier, text string) (Claims, error) {
	t, err := Parse(text)
	if err != nil {
		return Claims{}, err
	}
	return v.Verify(ctx, t)
}

func codeOf(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return err.Error()
}

// in is the time after d, as tokens have it.
func (c *clock) in(d time.Duration) int64 { return c.now().Add(d).Unix() }

func TestVerify(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	v := verifierOf(i, c)
	type set = map[string]any
	tests := map[string]struct {
		set  set
		want string
	}{
		"good":                  {nil, ""},
		"several audiences":     {set{"aud": []string{"x", "other"}}, ""},
		"wrong audience":        {set{"aud": "x"}, "token_audience"},
		"audience as a prefix":  {set{"aud": "qo"}, "token_audience"},
		"no audience":           {set{"aud": nil}, "token_audience"},
		"wrong issuer":          {set{"iss": "https://login.evil.example"}, "token_issuer"},
		"issuer with a slash":   {set{"iss": i.URL + "/"}, "token_issuer"},
		"no issuer":             {set{"iss": nil}, "token_issuer"},
		"expired":               {set{"exp": c.in(-time.Second)}, "token_expired"},
		"expired long ago":      {set{"exp": c.in(-time.Hour)}, "token_expired"},
		"never expires":         {set{"exp": nil}, "token_expired"},
		"not yet, nearly":       {set{"nbf": c.in(leeway / 2)}, ""},
		"not yet":               {set{"nbf": c.in(2 * leeway)}, "token_not_yet"},
		"issued in the future":  {set{"iat": c.in(2 * leeway)}, "token_not_yet"},
		"does not say when":     {set{"iat": nil}, ""},
		"tells of a logout":     {set{"events": set{"http://schemas.openid.net/event/backchannel-logout": set{}}}, "token_type"},
		"expiry that is a word": {set{"exp": "tomorrow"}, "token_malformed"},
		"long":                  {set{"x": strings.Repeat("x", maxToken)}, "token_malformed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			claims, err := check(t.Context(), v, i.Token(t, "qod", "ana@corp.com", tc.set))
			if got := codeOf(err); got != tc.want {
				t.Fatalf("%q (%v), want %q", got, err, tc.want)
			}
			if err == nil && (claims.Username("email") != "ana@corp.com" || !claims.Expires.After(c.now())) {
				t.Errorf("claims %+v", claims)
			}
		})
	}
	if n := i.Asked(oidctest.Keys); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestTypesOfTokens(t *testing.T) {
	i := oidctest.New(t)
	v := verifierOf(i, newClock())
	for typ, want := range map[string]string{
		"": "", "JWT": "", "jwt": "", "at+jwt": "", "application/at+jwt": "", "logout+jwt": "token_type", "dpop+jwt": "token_type",
	} {
		_, err := check(t.Context(), v, oidctest.Sign(t, i.Signer(), typ, i.Claims("qod", "a@b.c", nil)))
		if got := codeOf(err); got != want {
			t.Errorf("type %q: %q, want %q", typ, got, want)
		}
	}
}

func TestClaims(t *testing.T) {
	var all map[string]any
	const text = `{"email":"ana@corp.com","sub":"7","n":7,"roles":["a",1,"b"],"role":"one","realm_access":{"roles":["in"],"name":"x"},
		"https://corp.com/roles":["dotted"]}`
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for verified, want := range map[any]string{
		true: "ana@corp.com", "true": "ana@corp.com", false: "", "false": "", nil: "", 1.0: "",
	} {
		all["email_verified"] = verified
		if got := (Claims{all: all}).Username("email"); got != want {
			t.Errorf("an address that is verified %v names %q", verified, got)
		}
	}
	c := Claims{all: all}
	for claim, want := range map[string]string{"sub": "7", "n": "", "roles": "", "nothing": "", "realm_access.name": "x", "sub.x": ""} {
		if got := c.Username(claim); got != want {
			t.Errorf("%s names %q, want %q", claim, got, want)
		}
	}
	for claim, want := range map[string][]string{
		"roles": {"a", "b"}, "role": {"one"}, "realm_access.roles": {"in"}, "https://corp.com/roles": {"dotted"}, "n": nil, "realm_access": nil,
	} {
		if got := c.List(claim); !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", claim, got, want)
		}
	}
}
