package store

import (
	"context"
	"time"
)

// Token is a personal access token as it is kept: a digest of its secret, and what it stands for.
type Token struct {
	ID      string // public: lists show it, and it is part of the token
	Owner   string // id of the user, whose rights of the moment it has
	Name    string
	Hash    []byte // of the secret
	Created time.Time
	Expires time.Time
	Revoked time.Time // zero: it is not
	// ReadOnly tokens change nothing, whatever their owner may.
	ReadOnly bool
}

// Revocation ends sessions before their bearers expire: the one of that id, or all that the user began
// at or before the time.
type Revocation struct {
	Session, User string // ids; one of the two is empty
	At            time.Time
	Expires       time.Time // when the last bearer it can be about has expired by itself
}

// Tokens keeps personal access tokens. Snapshots have them, and those of an object that is removed go with
// it. Each change raises the store's revision and leaves its event in the audit, or nothing happens.
type Tokens interface {
	// AddToken stores a token. Its owner must be there.
	AddToken(ctx context.Context, t Token, e Event) error
	// RevokeToken revokes a token, or fails with ErrNotFound. One that is revoked already stays as it is,
	// and nothing is written.
	RevokeToken(ctx context.Context, id string, at time.Time, e Event) error
	// ExpireTokens forgets the tokens that expired before the time.
	ExpireTokens(ctx context.Context, before time.Time) error
}

// Revocations keeps what was revoked of sessions. Snapshots have it. Each change raises the store's
// revision and leaves its event in the audit, or nothing happens.
type Revocations interface {
	// Revoke stores a revocation. A second one of the same session or user moves the first forward.
	Revoke(ctx context.Context, r Revocation, e Event) error
	// ExpireRevocations forgets what expired before the time.
	ExpireRevocations(ctx context.Context, before time.Time) error
}

// Event is one row of the audit: who did or tried what, from where, and what came of it.
type Event struct {
	ID     string
	At     time.Time
	User   string // name: of the user, or of whoever runs qod on the host
	Tenant string // name: the user's, or of the user that it was done to; "" for a system administrator
	// Realm is what vouches for the name: password, token, session (a bearer), host (who runs qod there), or
	// "" where nothing does.
	Realm  string
	From   string // address of the client, or name of the host
	Action string // auth.login, sql.denied, token.create …
	Object string // what it was done to: a table, a session, a token, a pool
	Code   string // why, for programs
	// Privilege is what was missing, where that is the reason.
	Privilege string
	Detail    string // why, for people
	SQL       string // literals replaced, cut
}

// EventFilter chooses events. Fields that are zero choose all.
type EventFilter struct {
	User, Tenant string // equal, folded
	Action       string // equal, or a prefix of whole words: auth, auth.login
	Since        time.Time
	Limit        int
}

// Audit keeps events.
type Audit interface {
	// AppendEvents stores all events or none. Those that are there already, by id and time, are left: a batch
	// whose outcome is unknown can be appended again.
	AppendEvents(ctx context.Context, events []Event) error
	// ExpireEvents forgets the events before the time.
	ExpireEvents(ctx context.Context, before time.Time) error
	ListEvents(ctx context.Context, f EventFilter) ([]Event, error) // newest first
}
