package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
)

// leeway is how far the issuer's clock may be ahead of ours.
const leeway = time.Minute

// Error says why a token does not count.
type Error struct {
	Code string // for the audit
	err  error
}

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns what it is about.
func (e *Error) Unwrap() error { return e.err }

func refuse(code, format string, args ...any) *Error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// Config says whose tokens a Verifier takes. Issuer and Audience are required.
type Config struct {
	Issuer   string
	Audience []string         // the token is for one of them
	Client   *http.Client     // nil: NewClient(nil)
	Now      func() time.Time // nil: time.Now
}

// Verifier checks the tokens of one issuer. It is safe for concurrent use.
type Verifier struct {
	issuer   string
	audience []string
	now      func() time.Time
	keys     *keySet
}

// New returns a verifier. It asks the issuer for nothing before the first token.
func New(c Config) *Verifier {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client == nil {
		c.Client = NewClient(nil)
	}
	return &Verifier{
		issuer: c.Issuer, audience: slices.Clone(c.Audience), now: c.Now,
		keys: newKeySet(source{c.Issuer, c.Client}.keys, c.Now),
	}
}

// Verify checks that the issuer signed the token, for us, and that it counts at this time. Its error is an
// *Error, or that of ctx.
func (v *Verifier) Verify(ctx context.Context, t *Token) (Claims, error) {
	switch t.kind() {
	case "", "jwt", "at+jwt":
	default:
		return Claims{}, refuse("token_type", "the token is a %q", t.kind())
	}
	var std jwt.Claims
	var all map[string]any
	if err := v.keys.open(ctx, t, &std, &all); err != nil {
		return Claims{}, err
	}
	now := v.now()
	err := std.ValidateWithLeeway(jwt.Expected{Issuer: v.issuer, AnyAudience: v.audience, Time: now}, leeway)
	switch {
	case errors.Is(err, jwt.ErrInvalidIssuer):
		return Claims{}, refuse("token_issuer", "the token is of the issuer %q", std.Issuer)
	case errors.Is(err, jwt.ErrInvalidAudience):
		return Claims{}, refuse("token_audience", "the token is for %q", []string(std.Audience))
	case errors.Is(err, jwt.ErrNotValidYet), errors.Is(err, jwt.ErrIssuedInTheFuture):
		return Claims{}, refuse("token_not_yet", "the token does not count yet: %w", err)
	case std.Expiry == nil, !now.Before(std.Expiry.Time()): // without leeway: the session ends then, too
		return Claims{}, refuse("token_expired", "the token expired")
	case err != nil:
		return Claims{}, refuse("token_claims", "check token: %w", err)
	}
	if _, ok := all["events"]; ok { // such tokens tell of logouts and the like, and log nobody in
		return Claims{}, refuse("token_type", "the token tells of events")
	}
	return Claims{Issued: std.IssuedAt.Time(), Expires: std.Expiry.Time(), all: all}, nil
}
