package access

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// pairStrikes failed logins of a user from one address, or userStrikes from anywhere, begin a wait.
	pairStrikes = 5
	userStrikes = 50

	firstWait = time.Second
	mostWait  = 5 * time.Minute

	// strikesLife is how long a failure counts after the last one or the end of its wait.
	strikesLife = 30 * time.Minute
	// trustLife is how long an address that the user logged in from is spared the wait that others caused.
	trustLife = 24 * time.Hour

	lockoutLimit = 8192 // entries per table
)

// lockout slows down who guesses passwords: after some failures each further one doubles a wait in which
// no login counts. It only knows users that exist: a login of any other fails anyway, after the same work.
type lockout struct {
	mu    sync.Mutex
	pairs map[pair]*strikes
	users map[string]*strikes
}

// pair is a user and where a login comes from.
type pair struct{ user, from string }

type strikes struct {
	count   int
	until   time.Time // of the wait
	last    time.Time // failure or success
	trusted time.Time // until then
}

func newLockout() *lockout {
	return &lockout{pairs: map[pair]*strikes{}, users: map[string]*strikes{}}
}

// network is where an address belongs to: who has an IPv6 address has 2^64 of them.
func network(from string) string {
	a, err := netip.ParseAddr(from)
	if err != nil {
		return from
	}
	a = a.Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	p, _ := a.Prefix(64) // of an IPv6 address there is one
	return p.String()
}

// holds reports whether a login of the user from there does not count now.
func (l *lockout) holds(user, from string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, all := l.pairs[pair{user, network(from)}], l.users[user]
	if own != nil && now.Before(own.until) {
		return true
	}
	return all != nil && now.Before(all.until) && (own == nil || !now.Before(own.trusted))
}

// fail counts a failed login. It returns the wait that it began, if it did.
func (l *lockout) fail(user, from string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := pair{user, network(from)}
	own := strike(l.pairs, at, now).wait(pairStrikes, now)
	return max(own, strike(l.users, user, now).wait(userStrikes, now))
}

// succeed forgets the failures of the user from there.
func (l *lockout) succeed(user, from string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := pair{user, network(from)}
	own := entry(l.pairs, at, now)
	if all := l.users[user]; all != nil {
		all.count = max(0, all.count-own.count)
	}
	*own = strikes{last: now, trusted: now.Add(trustLife)}
}

// strike counts one more.
func strike[K comparable](table map[K]*strikes, key K, now time.Time) *strikes {
	s := entry(table, key, now)
	s.count++
	s.last = now
	return s
}

// wait begins one if there were enough strikes, and returns it.
func (s *strikes) wait(enough int, now time.Time) time.Duration {
	if s.count < enough {
		return 0
	}
	wait := mostWait
	if doublings := s.count - enough; doublings < 9 {
		wait = min(firstWait<<doublings, mostWait)
	}
	s.until = now.Add(wait)
	return wait
}

// entry returns what is known of the key, without what is too old to count.
func entry[K comparable](table map[K]*strikes, key K, now time.Time) *strikes {
	s, ok := table[key]
	if !ok {
		if len(table) >= lockoutLimit {
			evict(table, now)
		}
		s = &strikes{}
		table[key] = s
	}
	if s.stale(now) {
		s.count = 0
	}
	return s
}

func (s *strikes) stale(now time.Time) bool {
	return now.Sub(s.last) > strikesLife && now.Sub(s.until) > strikesLife
}

// evict makes room: of what no longer counts, or else of a tenth that was longest ago touched.
func evict[K comparable](table map[K]*strikes, now time.Time) {
	oldest, first := now, true
	for key, s := range table {
		if s.stale(now) && !now.Before(s.trusted) {
			delete(table, key)
		} else if first || s.last.Before(oldest) {
			oldest, first = s.last, false
		}
	}
	if len(table) < lockoutLimit {
		return
	}
	line := oldest.Add(now.Sub(oldest) / 10)
	for key, s := range table {
		if !s.last.After(line) {
			delete(table, key)
		}
	}
}
