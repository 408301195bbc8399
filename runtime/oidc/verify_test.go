package oidc

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

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

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(kid string, key crypto.PublicKey) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: kid}
}

func signing(alg jose.SignatureAlgorithm, kid string, key any) jose.SigningKey {
	return jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}
}

func TestAlgorithms(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	strong, weak := rsaKey(t, 2048), rsaKey(t, 1024)
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	shared := []byte("a secret of 48 bytes or more, which both sides have")
	encrypting, otherAlg := public("k", strong.Public()), public("k", strong.Public())
	encrypting.Use, otherAlg.Algorithm = "enc", string(jose.PS256)
	tests := map[string]struct {
		signer    jose.SigningKey
		published jose.JSONWebKey
		want      string
	}{
		"RS256":             {signing(jose.RS256, "k", strong), public("k", strong.Public()), ""},
		"PS512":             {signing(jose.PS512, "k", strong), public("k", strong.Public()), ""},
		"ES384":             {signing(jose.ES384, "k", p384), public("k", p384.Public()), ""},
		"EdDSA":             {signing(jose.EdDSA, "k", ed), public("k", ed.Public()), ""},
		"no kid":            {jose.SigningKey{Algorithm: jose.EdDSA, Key: ed}, public("k", ed.Public()), ""},
		"weak RSA":          {signing(jose.RS256, "k", weak), public("k", weak.Public()), "issuer_away"},
		"key to encrypt":    {signing(jose.RS256, "k", strong), encrypting, "issuer_away"},
		"key of other alg":  {signing(jose.RS256, "k", strong), otherAlg, "token_signature"},
		"another's key":     {signing(jose.RS256, "k", strong), public("k", p384.Public()), "token_signature"},
		"published secret":  {signing(jose.HS256, "k", shared), public("k", shared), "token_malformed"},
		"HS384 with a kid":  {signing(jose.HS384, "k", shared), public("k", strong.Public()), "token_malformed"},
		"published private": {signing(jose.EdDSA, "k", ed), public("k", ed), "issuer_away"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i.Use(tc.signer, tc.published)
			_, err := check(t.Context(), verifierOf(i, c), i.Token(t, "qod", "ana@corp.com", nil))
			if got := codeOf(err); got != tc.want {
				t.Errorf("%q (%v), want %q", got, err, tc.want)
			}
		})
	}
}

// What is known to fool libraries that believe a token's own header.
func TestForgeries(t *testing.T) {
	i, c := oidctest.New(t), newClock()
	key := rsaKey(t, 2048)
	i.Use(signing(jose.RS256, "k", key), public("k", key.Public()))
	v := verifierOf(i, c)
	good := i.Token(t, "qod", "ana@corp.com", nil)
	parts := strings.Split(good, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	published := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	claims := i.Claims("qod", "ana@corp.com", nil)
	mine := rsaKey(t, 2048)
	embedded := func() string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: mine}, &jose.SignerOptions{EmbedJWK: true})
		if err != nil {
			t.Fatal(err)
		}
		payload, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign(payload)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	other := strings.Split(oidctest.Sign(t, i.Signer(), "JWT", i.Claims("qod", "root@corp.com", nil)), ".")
	tests := map[string]string{
		"alg none":                    header(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None":                    header(`{"alg":"None","kid":"k"}`) + "." + parts[1] + ".",
		"alg none with signature":     header(`{"alg":"none","kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                      header(`{"kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"no signature":                parts[0] + "." + parts[1] + ".",
		"HS256 by the PEM":            oidctest.Sign(t, signing(jose.HS256, "k", published), "JWT", claims),
		"HS256 by the DER":            oidctest.Sign(t, signing(jose.HS256, "k", der), "JWT", claims),
		"HS256 by the modulus":        oidctest.Sign(t, signing(jose.HS256, "k", key.N.Bytes()), "JWT", claims),
		"another's key, same kid":     oidctest.Sign(t, signing(jose.RS256, "k", mine), "JWT", claims),
		"key in the header":           embedded(),
		"claims of another token":     parts[0] + "." + other[1] + "." + parts[2],
		"header of another alg":       header(`{"alg":"PS256","kid":"k"}`) + "." + parts[1] + "." + parts[2],
		"critical extension":          header(`{"alg":"RS256","kid":"k","crit":["b64"],"b64":false}`) + "." + parts[1] + "." + parts[2],
		"one bit":                     good[:len(good)-3] + flip(good[len(good)-3:]),
		"more signatures":             `{"payload":"` + parts[1] + `","signatures":[{"protected":"` + parts[0] + `","signature":"` + parts[2] + `"}]}`,
		"nothing":                     "",
		"dots":                        "..",
		"five parts, as if to unseal": good + ".a.b",
	}
	for name, text := range tests {
		if _, err := check(t.Context(), v, text); err == nil {
			t.Errorf("%s: it counts", name)
		} else if c := codeOf(err); !slices.Contains([]string{"token_malformed", "token_signature", "token_key"}, c) {
			t.Errorf("%s: %q", name, c)
		}
	}
	if _, err := check(t.Context(), v, good); err != nil {
		t.Errorf("the token itself: %v", err)
	}
	for text, want := range map[string]bool{
		good: true, tests["alg none"]: true, tests["HS256 by the PEM"]: true, tests["nothing"]: false, tests["dots"]: false,
		"a.b.c": false, "eyJhbGciOi.x.y": false, "qodp_x.y.z": false, "correct.horse.battery": false,
	} {
		if IsToken(text) != want {
			t.Errorf("IsToken(%.20q) = %t", text, !want)
		}
	}
}

// flip changes the first character, all bits of which count.
func flip(tail string) string {
	if tail[0] == 'A' {
		return "B" + tail[1:]
	}
	return "A" + tail[1:]
}

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
