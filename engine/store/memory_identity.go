package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

type eventKey struct {
	id string
	at time.Time
}

// memoryIdentity is what a Memory keeps of tokens, sessions and the audit.
type memoryIdentity struct {
	tokens  map[string]Token
	revoked map[revocationKey]Revocation
	events  map[eventKey]Event
}

type revocationKey struct{ session, user string }

func newMemoryIdentity() memoryIdentity {
	return memoryIdentity{map[string]Token{}, map[revocationKey]Revocation{}, map[eventKey]Event{}}
}

func (m *memoryIdentity) listTokens() []Token {
	all := slices.Collect(maps.Values(m.tokens))
	slices.SortFunc(all, func(a, b Token) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (m *memoryIdentity) listRevocations() []Revocation {
	all := slices.Collect(maps.Values(m.revoked))
	slices.SortFunc(all, func(a, b Revocation) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.User, b.User))
	})
	return all
}

func (m *memoryIdentity) keep(events ...Event) {
	for _, e := range events {
		e = e.Stamped()
		key := eventKey{e.ID, e.At}
		if _, there := m.events[key]; !there {
			m.events[key] = e
		}
	}
}

// AddToken implements Tokens.
func (m *Memory) AddToken(ctx context.Context, t Token, e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, ok := m.objects[t.Owner]; !ok {
		return fmt.Errorf("add token: its owner: %w", ErrNotFound)
	}
	if _, taken := m.tokens[t.ID]; taken {
		return fmt.Errorf("add token: there is a token %s", t.ID)
	}
	t.Created, t.Expires = Stamp(t.Created), Stamp(t.Expires)
	m.tokens[t.ID] = t
	m.keep(e)
	m.raise()
	return nil
}

// RevokeToken implements Tokens.
func (m *Memory) RevokeToken(ctx context.Context, id string, at time.Time, e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	t, ok := m.tokens[id]
	switch {
	case !ok:
		return fmt.Errorf("revoke token: %w", ErrNotFound)
	case !t.Revoked.IsZero():
		return nil
	}
	t.Revoked = Stamp(at)
	m.tokens[id] = t
	m.keep(e)
	m.raise()
	return nil
}

// ExpireTokens implements Tokens.
func (m *Memory) ExpireTokens(ctx context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := len(m.tokens)
	maps.DeleteFunc(m.tokens, func(_ string, t Token) bool { return t.Expires.Before(before) })
	if gone != len(m.tokens) {
		m.raise()
	}
	return ctx.Err()
}

// Revoke implements Revocations.
func (m *Memory) Revoke(ctx context.Context, r Revocation, e Event) error {
	if err := r.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	key := revocationKey{r.Session, r.User}
	r.At, r.Expires = Stamp(r.At), Stamp(r.Expires)
	if have, ok := m.revoked[key]; ok {
		r.At, r.Expires = later(r.At, have.At), later(r.Expires, have.Expires)
	}
	m.revoked[key] = r
	m.keep(e)
	m.raise()
	return nil
}

// Check says what is wrong with a revocation.
func (r Revocation) Check() error {
	if (r.Session == "") == (r.User == "") {
		return fmt.Errorf("revoke: a session or a user, and not both")
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ExpireRevocations implements Revocations.
func (m *Memory) ExpireRevocations(ctx context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := len(m.revoked)
	maps.DeleteFunc(m.revoked, func(_ revocationKey, r Revocation) bool { return r.Expires.Before(before) })
	if gone != len(m.revoked) {
		m.raise()
	}
	return ctx.Err()
}

// AppendEvents implements Audit.
func (m *Memory) AppendEvents(ctx context.Context, events []Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m.keep(events...)
	return nil
}

// ExpireEvents implements Audit.
func (m *Memory) ExpireEvents(ctx context.Context, before time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.events, func(k eventKey, _ Event) bool { return k.at.Before(before) })
	return ctx.Err()
}

// ListEvents implements Audit.
func (m *Memory) ListEvents(ctx context.Context, f EventFilter) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Event
	for _, e := range m.events {
		if f.Matches(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) })
	if f.Limit > 0 && len(all) > f.Limit {
		all = all[:f.Limit]
	}
	return all, ctx.Err()
}
