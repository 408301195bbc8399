// Package oidctest is an OpenID Connect issuer for tests: it serves a discovery document and keys, and signs
// whatever it is told to.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Discovery is where issuers say where their keys are, and Keys where this one has them.
const (
	Discovery = "/.well-known/openid-configuration"
	Keys      = "/keys"
)

// Issuer is a running issuer. Tests may answer in its place.
type Issuer struct {
	URL    string
	Client *http.Client // trusts its certificate

	Certificate *x509.Certificate // nil without TLS

	mu     sync.Mutex
	signer jose.SigningKey
	keys   []jose.JSONWebKey
	made   int
	asked  map[string]int
	answer http.HandlerFunc
}

// New starts an issuer behind TLS.
func New(t testing.TB) *Issuer { return start(t, httptest.NewTLSServer) }

// NewPlain starts an issuer without TLS, on a loopback address.
func NewPlain(t testing.TB) *Issuer { return start(t, httptest.NewServer) }

func start(t testing.TB, serve func(http.Handler) *httptest.Server) *Issuer {
	t.Helper()
	i := &Issuer{asked: map[string]int{}}
	s := serve(i)
	t.Cleanup(s.Close)
	i.URL, i.Client, i.Certificate = s.URL, s.Client(), s.Certificate()
	i.Rotate(t)
	return i
}

// ServeHTTP is the issuer's web site.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.asked[r.URL.Path]++
	answer, keys := i.answer, jose.JSONWebKeySet{Keys: i.keys}
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == Discovery:
		write(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + Keys})
	case r.URL.Path == Keys:
		write(w, keys)
	default:
		http.NotFound(w, r)
	}
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
}

// Asked counts the requests for a path.
func (i *Issuer) Asked(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked[path]
}

// Answer has f answer all requests, or with nil the issuer again.
func (i *Issuer) Answer(f http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answer = f
}

// Rotate signs with a new key from now on, and publishes only that.
func (i *Issuer) Rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	i.made++
	kid := "key-" + strconv.Itoa(i.made)
	i.mu.Unlock()
	i.Use(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: kid}},
		jose.JSONWebKey{Key: key.Public(), KeyID: kid, Algorithm: string(jose.ES256), Use: "sig"})
}

// Use signs with a key from now on, and publishes those.
func (i *Issuer) Use(signer jose.SigningKey, published ...jose.JSONWebKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.signer, i.keys = signer, published
}

// Signer returns the key that signs.
func (i *Issuer) Signer() jose.SigningKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signer
}

// Claims are those of a token for that audience and address that counts for an hour, with some set: to nil
// for none.
func (i *Issuer) Claims(audience, email string, set map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": audience, "sub": "subject-of-" + email, "email": email, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, set)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// Token signs the Claims.
func (i *Issuer) Token(t testing.TB, audience, email string, set map[string]any) string {
	t.Helper()
	return Sign(t, i.Signer(), "JWT", i.Claims(audience, email, set))
}

// Sign signs claims with any key.
func Sign(t testing.TB, key jose.SigningKey, typ string, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if typ != "" {
		options = options.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
