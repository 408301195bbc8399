package api

import (
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// failureRate and failureBurst bound the logins of one name from one address that fail: in a second, and at once.
	failureRate  = 2
	failureBurst = 50

	bucketsLimit = 8192
)

// buckets are token buckets by key. Those that are full again are forgotten.
type buckets struct {
	rate  rate.Limit
	burst int

	mu sync.Mutex
	of map[string]*rate.Limiter
}

func newBuckets(perSecond float64, burst int) *buckets {
	return &buckets{rate: rate.Limit(perSecond), burst: burst, of: map[string]*rate.Limiter{}}
}

// take takes one, or says how long to wait for it.
func (b *buckets) take(key string) time.Duration {
	now := time.Now()
	r := b.bucket(key, now).ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait > 0 {
		r.CancelAt(now)
	}
	return wait
}

// empty says how long to wait until there is one.
func (b *buckets) empty(key string) time.Duration {
	now := time.Now()
	tokens := b.bucket(key, now).TokensAt(now)
	if tokens >= 1 {
		return 0
	}
	return time.Duration((1 - tokens) / float64(b.rate) * float64(time.Second))
}

func (b *buckets) bucket(key string, now time.Time) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, ok := b.of[key]
	if ok {
		return l
	}
	if len(b.of) >= bucketsLimit {
		maps.DeleteFunc(b.of, func(_ string, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(b.burst) })
	}
	if len(b.of) >= bucketsLimit {
		clear(b.of) // so many at once: the bound of memory goes first
	}
	l = rate.NewLimiter(b.rate, b.burst)
	b.of[key] = l
	return l
}
