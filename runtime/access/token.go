package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/oidc"
	"github.com/qod-io/qod/schema"
)

const (
	// tokenPrefix tells a personal access token from a password, and is what scanners for leaked secrets look for.
	tokenPrefix = "qodp_"

	// TokenLife is how long a token lives unless told otherwise, MaxTokenLife how long it may.
	TokenLife    = 30 * 24 * time.Hour
	MaxTokenLife = 365 * 24 * time.Hour

	tokenIDSize    = 12
	maxTokenName   = 100
	maxTokenLength = 256
)

// NewToken makes a personal access token of the user. It returns what is stored and the token itself, which is
// known to nobody afterwards.
func NewToken(owner, name string, now time.Time, life time.Duration) (store.Token, string, error) {
	switch {
	case life <= 0 || life > MaxTokenLife:
		return store.Token{}, "", fmt.Errorf("make token: it may live for up to %d days", MaxTokenLife/(24*time.Hour))
	case len(name) > maxTokenName || !printable(name):
		return store.Token{}, "", fmt.Errorf("make token: its name must be printable and have at most %d bytes", maxTokenName)
	}
	id, secret := strings.ToLower(rand.Text()[:tokenIDSize]), rand.Text()
	return store.Token{
		ID: id, Owner: owner, Name: name, Hash: digest(secret), Created: now, Expires: now.Add(life),
	}, tokenPrefix + id + "_" + secret, nil
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

// digest needs no salt and no cost: the secret is random, and longer than can be guessed.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte("qod token " + secret))
	return sum[:]
}

// IsToken reports whether the text has the form of a personal access token.
func IsToken(text string) bool { return strings.HasPrefix(text, tokenPrefix) }

// LogsIn reports whether a bearer token logs in as a password does: a personal access token, or an issuer's.
func LogsIn(bearer string) bool { return IsToken(bearer) || oidc.IsToken(bearer) }

// errToken is what is said of a token that is none, whatever is wrong with it.
var errToken = errors.New("the token is not known here")

// ReadOnly reports whether the token of that id was made read-only.
func (d *Directory) ReadOnly(tokenID string) bool { return d.tokens[tokenID].ReadOnly }

// Knows reports whether the directory has the token of that id.
func (d *Directory) Knows(tokenID string) bool {
	_, ok := d.tokens[tokenID]
	return ok
}

// redeem finds the owner of the token that was given as a password. The user's name only chooses tenant
// and pool. Why a token that is right does not count may be told to who has it.
func (d *Directory) redeem(l Login, now time.Time) (Principal, error) {
	id, secret, _ := strings.Cut(strings.TrimPrefix(l.Password, tokenPrefix), "_")
	t, known := d.tokens[id]
	hash := t.Hash
	if !known {
		hash = make([]byte, sha256.Size)
	}
	right := len(l.Password) <= maxTokenLength && subtle.ConstantTimeCompare(digest(secret), hash) == 1
	u := d.users[t.Owner]
	refused := &Refused{Realm: RealmToken, Token: id, err: errToken}
	switch {
	case !known || !right:
		refused.Token, refused.Code = "", "unknown_token"
	case !t.Revoked.IsZero():
		refused.Code, refused.err = "token_revoked", errors.New("the token was revoked")
	case !now.Before(t.Expires):
		refused.Code, refused.err = "token_expired", errors.New("the token expired")
	case u == nil:
		refused.Code = "no_owner"
	case u.disabled:
		refused.Code = "disabled"
	case d.shut(u):
		refused.Code = "tenant_disabled"
	}
	if right && u != nil {
		refused.User, refused.Tenant = u.name, u.tenant
	}
	if refused.Code != "" {
		return Principal{}, refused
	}
	p := d.principal(u, l)
	p.Token, p.Expires, p.Realm = t.ID, t.Expires, RealmToken
	return p, nil
}

// principal is the user as a caller.
func (d *Directory) principal(u *user, l Login) Principal {
	p := Principal{UserID: u.id, UserName: u.name, Tenant: u.tenant, Pool: schema.Fold(l.Pool), System: u.system}
	if u.system {
		p.Tenant = schema.Fold(l.Tenant)
	}
	return p
}
