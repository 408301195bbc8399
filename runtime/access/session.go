package access

import (
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/qod-io/qod/engine/store"
)

// Session is what a bearer says of its session.
type Session struct {
	ID       string
	Root     string    // the session whose bearer began this one, "" for none
	User     string    // id
	Token    string    // id of the personal access token that began it, "" for none
	Verifier string    // names that of the password that began it, "" for none
	Issuer   string    // names the settings of the issuer whose token began it, "" for none
	Issued   time.Time // the first bearer of these; for a session that is known by hearsay, no earlier than that
}

// EndedError says why a session is over before its time.
type EndedError struct{ Code, Text string }

func (e *EndedError) Error() string { return e.Text + ": log in again" }

// sessions are what is known of tokens and of sessions that were ended from outside.
type sessions struct {
	tokens  map[string]store.Token // by id
	revoked map[string]bool        // sessions, by id
	cutoffs map[string]time.Time   // users, by id: what they began until then is over
}

func newSessions(snap *store.Snapshot) sessions {
	s := sessions{
		tokens: make(map[string]store.Token, len(snap.Tokens)), revoked: map[string]bool{}, cutoffs: map[string]time.Time{},
	}
	for _, t := range snap.Tokens {
		s.tokens[t.ID] = t
	}
	for _, r := range snap.Revoked {
		if r.Session != "" {
			s.revoked[r.Session] = true
		} else {
			s.cutoffs[r.User] = r.At
		}
	}
	return s
}

// Ended says why the session is over although its bearer has not expired: an *EndedError, or nil.
func (d *Directory) Ended(s Session) error {
	switch {
	case d.revoked[s.ID], s.Root != "" && d.revoked[s.Root], d.cut(s.User, s.Issued):
		return &EndedError{"session_revoked", "the session was revoked"}
	case s.Token != "":
		if t, known := d.tokens[s.Token]; !known || !t.Revoked.IsZero() || t.Owner != s.User {
			return &EndedError{"token_revoked", "the token that began the session was revoked"}
		}
	case s.Verifier != "" && s.Verifier != d.verifierName(s.User):
		return &EndedError{"password_changed", "the password was changed"}
	case s.Issuer != "" && s.Issuer != d.issuerName(s.User):
		return &EndedError{"issuer_changed", "the tenant trusts another issuer, or trusts it otherwise"}
	}
	return nil
}

// cut reports whether what the user began at that time was ended from outside.
func (d *Directory) cut(userID string, began time.Time) bool {
	cutoff, ok := d.cutoffs[userID]
	return ok && !began.After(cutoff)
}

// Barred says why the user may not even finish what runs: ErrNoUser, a *DisabledError, or nil.
func (d *Directory) Barred(userID string) error {
	u, ok := d.users[userID]
	switch {
	case !ok:
		return ErrNoUser
	case u.disabled:
		return &DisabledError{"user " + u.name, "disabled"}
	}
	return nil
}

// verifierName names the user's verifier as it is stored: it is another one after a change of the password.
func (d *Directory) verifierName(userID string) string {
	sealed, ok := d.secrets[store.SecretKey{Object: userID, Attr: verifierAttr}]
	if !ok {
		return ""
	}
	sum := sha256.Sum256(sealed)
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}
