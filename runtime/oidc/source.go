package oidc

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"
)

const (
	maxResponse  = 256 << 10 // bytes
	maxKeys      = 64        // of a set: a token that names none is tried with each
	maxRedirects = 3
	minRSABits   = 2048
	maxRSABits   = 8192 // of which each check costs the more
)

// NewClient returns a client for issuers, which stays with the host it was sent to and reads only so much of
// what that says. Without roots it trusts those of the system.
func NewClient(roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		Transport: bounded{&http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, // it is asked every few minutes, if at all
			ForceAttemptHTTP2: true,
		}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			first := via[0].URL
			if r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
				return errors.New("the issuer redirects to another host")
			}
			if len(via) > maxRedirects {
				return errors.New("the issuer redirects too often")
			}
			return nil
		},
	}
}

// bounded makes the reading of a long answer fail.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxResponse)
	}
	return resp, err
}

// source is where the keys of an issuer come from.
type source struct {
	issuer string
	client *http.Client
}

// keys asks the issuer where its keys are, and for them.
func (s source) keys(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, s.client), s.issuer)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	var at struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&at); err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	if err := s.safe(at.Keys); err != nil {
		return nil, err
	}
	raw, err := s.get(ctx, at.Keys)
	if err != nil {
		return nil, err
	}
	return parseKeys(raw)
}

// safe refuses a place for keys where others could change them, or where an issuer has no business.
func (s source) safe(keys string) error {
	issuer, err := url.Parse(s.issuer)
	if err != nil {
		return fmt.Errorf("parse issuer: %w", err)
	}
	u, err := url.Parse(keys)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != issuer.Scheme || u.Host != issuer.Host) {
		return errors.New("jwks_uri is no https URL")
	}
	return nil
}

func (s source) get(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetch keys: %s", resp.Status)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("fetch keys: %w", err)
	}
	return raw, nil
}

// parseKeys returns the keys of a set that may sign tokens. Others, and those of kinds that are not known
// here, are left out as RFC 7517 has it.
func parseKeys(raw []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("parse keys: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, one := range set.Keys {
		var k jose.JSONWebKey
		if json.Unmarshal(one, &k) == nil && signs(&k) {
			keys = append(keys, k)
		}
	}
	switch n := len(keys); {
	case n == 0:
		return nil, errors.New("parse keys: there is none that could sign a token")
	case n > maxKeys:
		return nil, fmt.Errorf("parse keys: there are %d, and at most %d are allowed", n, maxKeys)
	}
	return keys, nil
}

// signs reports whether it is the public half of a key pair that is strong enough to sign with.
func signs(k *jose.JSONWebKey) bool {
	if !k.Valid() || k.Use != "" && k.Use != "sig" {
		return false
	}
	switch key := k.Key.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen() >= minRSABits && key.N.BitLen() <= maxRSABits
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}
