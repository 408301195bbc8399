package oidc

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

const (
	// refreshAfter is how old keys get before the issuer is asked whether they still count.
	refreshAfter = 10 * time.Minute
	// keepFor is how long they count while it does not answer.
	keepFor = 24 * time.Hour

	fetchTimeout = 5 * time.Second
	// fetchEvery is how often the issuer may be asked, fetchBurst how often in a row: tokens that name
	// unknown keys cost nothing to make.
	fetchEvery = 10 * time.Second
	fetchBurst = 4
)

// keySet are the keys of an issuer.
type keySet struct {
	fetch func(context.Context) ([]jose.JSONWebKey, error)
	now   func() time.Time
	held  atomic.Pointer[held]
	turn  chan struct{} // full while somebody fetches, who also owns limit
	limit limit
}

// held are keys, and since when. They are never changed.
type held struct {
	keys []jose.JSONWebKey
	at   time.Time
}

func newKeySet(fetch func(context.Context) ([]jose.JSONWebKey, error), now func() time.Time) *keySet {
	s := &keySet{fetch: fetch, now: now, turn: make(chan struct{}, 1)}
	s.held.Store(&held{})
	return s
}

// open checks the token's signature and reads its claims.
func (s *keySet) open(ctx context.Context, t *Token, into ...any) error {
	h, err := s.current(ctx)
	if len(h.keys) > 0 {
		if h.open(t, into) {
			return nil
		}
		if h.has(t.signed.Headers[0].KeyID) {
			return refuse("token_signature", "the token is not signed with the issuer's key")
		}
		h, err = s.refresh(ctx, h.at, true)
		if h.open(t, into) {
			return nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, errTooOften):
		return refuse("issuer_away", "fetch keys: %w", err)
	}
	return refuse("token_key", "the issuer has no key that signed the token")
}

// current returns the keys to try first. Where there are some, nobody but the one who fetches waits.
func (s *keySet) current(ctx context.Context) (*held, error) {
	h := s.held.Load()
	age := s.now().Sub(h.at)
	if age <= refreshAfter {
		return h, nil
	}
	h, err := s.refresh(ctx, h.at, age > keepFor)
	if s.now().Sub(h.at) > keepFor {
		return &held{}, err
	}
	return h, err
}

// errTooOften says that the issuer was asked just before.
var errTooOften = errors.New("the issuer was asked too often")

// refresh fetches keys newer than those of that time, unless somebody else did. It returns those that there
// are then.
func (s *keySet) refresh(ctx context.Context, seen time.Time, wait bool) (*held, error) {
	select {
	case s.turn <- struct{}{}:
	default:
		if !wait {
			return s.held.Load(), nil
		}
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return s.held.Load(), context.Cause(ctx)
		}
	}
	defer func() { <-s.turn }()
	if h := s.held.Load(); h.at.After(seen) {
		return h, nil
	}
	now := s.now()
	if !s.limit.take(now) {
		return s.held.Load(), errTooOften
	}
	// Others wait for these keys too, so a caller that goes away does not end it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	keys, err := s.fetch(ctx)
	if err != nil {
		return s.held.Load(), err
	}
	h := &held{keys, now}
	s.held.Store(h)
	return h, nil
}

func (h *held) has(kid string) bool {
	return slices.ContainsFunc(h.keys, func(k jose.JSONWebKey) bool { return k.KeyID == kid && kid != "" })
}

// open tries the keys that may have signed the token.
func (h *held) open(t *Token, into []any) bool {
	head := t.signed.Headers[0]
	for _, k := range h.keys {
		if head.KeyID != "" && k.KeyID != head.KeyID || k.Algorithm != "" && k.Algorithm != head.Algorithm {
			continue
		}
		if t.signed.Claims(k, into...) == nil {
			return true
		}
	}
	return false
}

// limit allows something every fetchEvery, or fetchBurst times in a row after a rest.
type limit struct{ next time.Time }

func (l *limit) take(now time.Time) bool {
	if l.next.Before(now) {
		l.next = now
	}
	if l.next.Sub(now) > (fetchBurst-1)*fetchEvery {
		return false
	}
	l.next = l.next.Add(fetchEvery)
	return true
}
