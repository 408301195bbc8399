package access

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/qod-io/qod/runtime/wire"
)

// bearerPrefix marks our bearers, so that one given as a password is told from a password.
const bearerPrefix = "qod1."

// ErrBearer is returned for a bearer that this cluster did not make, or with a key that is gone.
var ErrBearer = errors.New("the token is not known here: log in again")

// IsBearer reports whether the text has the form of the bearer of a session.
func IsBearer(text string) bool { return strings.HasPrefix(text, bearerPrefix) }

// SealBearer returns the bearer as its client carries it.
func SealBearer(keys *wire.Keyring, b wire.Bearer) (string, error) {
	sealed, err := keys.Seal(wire.PurposeBearer, b)
	if err != nil {
		return "", fmt.Errorf("seal bearer: %w", err)
	}
	return bearerPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// OpenBearer reads what SealBearer returned, or fails with ErrBearer. It may have expired, and its session may
// have ended.
func OpenBearer(keys *wire.Keyring, text string) (wire.Bearer, error) {
	encoded, ours := strings.CutPrefix(text, bearerPrefix)
	sealed, err := base64.RawURLEncoding.DecodeString(encoded)
	var b wire.Bearer
	if !ours || err != nil || keys.Open(wire.PurposeBearer, sealed, &b) != nil {
		return wire.Bearer{}, ErrBearer
	}
	return b, nil
}

// SessionOf returns what a bearer says of its session.
func SessionOf(b wire.Bearer) Session {
	return Session{
		ID: b.Session, Root: b.Root, User: b.User, Token: b.Token, Verifier: b.Verifier, Issuer: b.Issuer, Issued: b.Issued,
	}
}
