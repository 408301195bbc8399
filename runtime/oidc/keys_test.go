package oidc

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/qod-io/qod/runtime/oidc/oidctest"
)

func TestRotation(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	v := verifierOf(i, c)
	token := func() string { return i.Token(t, "qod", "ana@corp.com", map[string]any{"exp": c.in(48 * time.Hour)}) }
	want := func(what, text, code string) {
		t.Helper()
		if _, err := check(t.Context(), v, text); codeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	first := token()
	want("before", first, "")
	i.Rotate(t)
	second := token()
	want("after a rotation, while serving", second, "")
	want("the key that left", first, "token_key")
	i.Rotate(t)
	want("the next rotation", token(), "")
	// A key that the issuer withdraws stops counting, although no token names another.
	last := token()
	i.Rotate(t)
	want("a key just withdrawn", last, "")
	c.pass(refreshAfter + time.Second)
	want("a key withdrawn before the keys got old", last, "token_key")
}

// The keys count while the issuer is away, but not for ever; it is asked again, but not by every login.
func TestIssuerAway(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	v := verifierOf(i, c)
	token := i.Token(t, "qod", "ana@corp.com", map[string]any{"exp": c.in(48 * time.Hour)})
	away := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
	want := func(what, code string) {
		t.Helper()
		if _, err := check(t.Context(), v, token); codeOf(err) != code {
			t.Errorf("%s: %v, want %q", what, err, code)
		}
	}
	i.Answer(away)
	want("away from the start", "issuer_away")
	i.Answer(nil)
	want("back", "")
	i.Answer(away)
	asked := i.Asked(oidctest.Discovery)
	c.pass(refreshAfter + time.Second)
	for range 100 {
		want("away", "")
	}
	if n := i.Asked(oidctest.Discovery) - asked; n == 0 || n > fetchBurst {
		t.Errorf("asked %d times", n)
	}
	c.pass(keepFor)
	want("away for too long", "issuer_away")
	i.Answer(nil)
	want("back again", "")
}

func TestUnknownKeysFetchLittle(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	v := verifierOf(i, c)
	good := i.Token(t, "qod", "ana@corp.com", nil)
	if _, err := check(t.Context(), v, good); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	storm := func() {
		var wait sync.WaitGroup
		for n := range 200 {
			text := oidctest.Sign(t, signing(jose.EdDSA, "unknown-"+string(rune('a'+n%26)), key), "JWT", i.Claims("qod", "ana@corp.com", nil))
			wait.Go(func() {
				if _, err := check(t.Context(), v, text); codeOf(err) != "token_key" {
					t.Errorf("an unknown key: %v", err)
				}
			})
		}
		wait.Wait()
	}
	storm()
	if n := i.Asked(oidctest.Keys); n > fetchBurst {
		t.Errorf("200 tokens fetched the keys %d times", n)
	}
	asked := i.Asked(oidctest.Keys)
	c.pass(fetchEvery)
	storm()
	if n := i.Asked(oidctest.Keys) - asked; n > 1 {
		t.Errorf("within %s the keys were fetched %d times", fetchEvery, n)
	}
	// Who rotates in the storm waits for one turn at most.
	i.Rotate(t)
	c.pass(fetchEvery)
	if _, err := check(t.Context(), v, i.Token(t, "qod", "ana@corp.com", nil)); err != nil {
		t.Errorf("a rotation in a storm: %v", err)
	}
}

// The first of many fetches for all, and whoever gives up waiting keeps nobody from it.
func TestOneFetchesForAll(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	v := verifierOf(i, c)
	asked, release := make(chan struct{}, 1), make(chan struct{})
	i.Answer(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == oidctest.Discovery {
			asked <- struct{}{}
			<-release
			i.Answer(nil)
		}
		i.ServeHTTP(w, r)
	})
	token := i.Token(t, "qod", "ana@corp.com", nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = check(ctx, v, token) }) // fetches
	<-asked
	gone, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	wait.Go(func() {
		_, err := check(gone, v, token)
		left <- err
	})
	for range 10 {
		wait.Go(func() {
			if _, err := check(t.Context(), v, token); err != nil {
				t.Errorf("who waits: %v", err)
			}
		})
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up: %v", err)
	}
	cancel()
	close(release)
	wait.Wait()
	if n := i.Asked(oidctest.Keys); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

func TestBadIssuers(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.NotFoundHandler())
	defer elsewhere.Close()
	document := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v) // the client may have read enough
	}
	tests := map[string]struct {
		answer func(i *oidctest.Issuer, w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"another's document": {func(_ *oidctest.Issuer, w http.ResponseWriter, _ *http.Request) {
			document(w, map[string]string{"issuer": "https://login.evil.example", "jwks_uri": "https://login.evil.example/keys"})
		}, "did not match the issuer"},
		"keys without TLS": {func(i *oidctest.Issuer, w http.ResponseWriter, _ *http.Request) {
			document(w, map[string]string{"issuer": i.URL, "jwks_uri": "http://169.254.169.254/keys"})
		}, "no https URL"},
		"keys in a file": {func(i *oidctest.Issuer, w http.ResponseWriter, _ *http.Request) {
			document(w, map[string]string{"issuer": i.URL, "jwks_uri": "file:///etc/passwd"})
		}, "no https URL"},
		"redirect to another host": {func(_ *oidctest.Issuer, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		}, "redirects to another host"},
		"redirect to no TLS": {func(i *oidctest.Issuer, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(i.URL, "https", "http", 1), http.StatusFound)
		}, "redirects to another host"},
		"redirect for ever": {func(_ *oidctest.Issuer, w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, "redirects too often"},
		"endless document": {func(_ *oidctest.Issuer, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, err := w.Write([]byte(`{"issuer":"`)); err == nil; {
				_, err = w.Write(make([]byte, 1<<16))
			}
		}, "too large"},
		"no JSON": {func(_ *oidctest.Issuer, w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>")) // the client may have read enough
		}, "decode"},
		"no keys": {func(i *oidctest.Issuer, w http.ResponseWriter, r *http.Request) {
			document(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + oidctest.Keys, "keys": []any{}})
		}, "none that could sign"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := oidctest.New(t)
			i.Answer(func(w http.ResponseWriter, r *http.Request) { tc.answer(i, w, r) })
			_, err := check(t.Context(), verifierOf(i, newClock()), i.Token(t, "qod", "ana@corp.com", nil))
			if codeOf(err) != "issuer_away" || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q", err, tc.want)
			}
		})
	}
}

// A set may hold keys of kinds that nobody here knows.
func TestUnknownKindsOfKeysAreLeftOut(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	jwk := public("good", key.Public())
	good, err := jwk.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	raw := `{"keys":[{"kty":"OKP","crv":"Ed448","x":"AA"},{"kty":"new"},"odd",{"kty":"EC","crv":"secp256k1"},` + string(good) + `]}`
	keys, err := parseKeys([]byte(raw))
	if err != nil || len(keys) != 1 || keys[0].KeyID != "good" {
		t.Errorf("keys %v, %v", keys, err)
	}
	many := `{"keys":[` + strings.Repeat(string(good)+",", maxKeys) + string(good) + `]}`
	if _, err := parseKeys([]byte(many)); err == nil {
		t.Error("too many keys are taken")
	}
}
