package oidc

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// maxToken bounds the bytes of a token, of which every sender has some parsed before it is known.
const maxToken = 16 << 10

// algorithms are those with a key pair. With HS256 and its like, whoever knows the public key could sign.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
		jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	}
}

// IsToken reports whether the text has the form of a signed JSON Web Token, good or not.
func IsToken(text string) bool {
	head, rest, ok := strings.Cut(text, ".")
	if !ok || strings.Count(rest, ".") != 1 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Algorithm string `json:"alg"`
	}
	return err == nil && json.Unmarshal(raw, &header) == nil && header.Algorithm != ""
}

// Token is a token that was read and not yet checked: all that it says may be a lie.
type Token struct {
	signed *jwt.JSONWebToken
	said   jwt.Claims
}

// Parse reads a token. Its error is an *Error.
func Parse(text string) (*Token, error) {
	if len(text) > maxToken {
		return nil, refuse("token_malformed", "the token has more than %d bytes", maxToken)
	}
	signed, err := jwt.ParseSigned(text, algorithms())
	if err != nil {
		return nil, refuse("token_malformed", "parse token: %w", err)
	}
	t := &Token{signed: signed}
	if err := signed.UnsafeClaimsWithoutVerification(&t.said); err != nil {
		return nil, refuse("token_malformed", "parse token: %w", err)
	}
	return t, nil
}

// Names reports whether the token says to be of that issuer, for one of the audiences.
func (t *Token) Names(issuer string, audience []string) bool {
	return t.said.Issuer == issuer && slices.ContainsFunc(audience, t.said.Audience.Contains)
}

// kind is what the token's header says that it is, without the part that may be left out.
func (t *Token) kind() string {
	typ, _ := t.signed.Headers[0].ExtraHeaders[jose.HeaderType].(string)
	return strings.TrimPrefix(strings.ToLower(typ), "application/")
}
