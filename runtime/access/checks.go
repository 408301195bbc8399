package access

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"runtime"
	"sync"
	"time"
)

const (
	checkLife  = time.Minute
	checkLimit = 4096
)

// checks verifies passwords. It remembers for a minute which ones were right, so that a client that
// sends its password with every call does not pay for each, and lets only as many verifications run at
// a time as there are processors, since each takes megabytes.
type checks struct {
	secret []byte
	slots  chan struct{}
	check  func(phc, password string) (bool, error) // Verify, which tests count

	mu   sync.Mutex
	good map[[sha256.Size]byte]time.Time
}

func newChecks() *checks {
	secret := make([]byte, 32)
	rand.Read(secret)
	return &checks{
		secret: secret,
		slots:  make(chan struct{}, runtime.GOMAXPROCS(0)),
		check:  Verify,
		good:   map[[sha256.Size]byte]time.Time{},
	}
}

// verify does the whole work if it is told to, as for a password that is not remembered.
func (c *checks) verify(ctx context.Context, phc, password string, whole bool) (bool, error) {
	key := c.key(phc, password)
	if !whole && c.known(key, time.Now()) {
		return true, nil
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	ok, err := c.check(phc, password)
	<-c.slots
	if ok {
		c.learn(key, time.Now())
	}
	return ok, err
}

func (c *checks) key(phc, password string) (key [sha256.Size]byte) {
	mac := hmac.New(sha256.New, c.secret)
	mac.Write([]byte(phc))
	mac.Write([]byte{0})
	mac.Write([]byte(password))
	mac.Sum(key[:0])
	return key
}

func (c *checks) known(key [sha256.Size]byte, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.good[key]
	return ok && now.Before(until)
}

func (c *checks) learn(key [sha256.Size]byte, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.good) >= checkLimit {
		for k, until := range c.good {
			if !now.Before(until) || len(c.good) >= checkLimit {
				delete(c.good, k)
			}
		}
	}
	c.good[key] = now.Add(checkLife)
}
