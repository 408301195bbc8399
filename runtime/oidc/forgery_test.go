package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/qod-io/qod/runtime/oidc/oidctest"
)

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

// embedded signs claims with a key that the token brings along.
func embedded(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, &jose.SignerOptions{EmbedJWK: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
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
		"key in the header":           embedded(t, mine, claims),
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
