package reconcile

import "time"

const (
	firstDelay = time.Second
	mostDelay  = 30 * time.Second
	// goodLife is how long a node must have served for its end not to count as a failure to start.
	goodLife = time.Minute
)

// backoff spaces the starts of a pool whose nodes do not live. The first failure costs nothing, since
// a node that dies once is to be replaced at once.
type backoff struct {
	failures int
	// until is when the next node may be started, and reason why the last one failed.
	until  time.Time
	reason string
	spec   string // what the pool wanted when it failed: a changed pool starts afresh
}

// fail notes a failure. jitter is from 0 to 1 and lengthens the delay by up to a fifth.
func (b *backoff) fail(now time.Time, reason string, jitter float64) {
	b.failures++
	b.reason = reason
	b.until = now.Add(delay(b.failures-1, jitter))
}

// good forgets the failures: a node has lived well.
func (b *backoff) good() { b.failures, b.until, b.reason = 0, time.Time{}, "" }

// delay doubles from the second failure on: 0, 1 s, 2 s, 4 s … 30 s.
func delay(earlier int, jitter float64) time.Duration {
	if earlier == 0 {
		return 0
	}
	d := mostDelay
	if earlier <= 5 {
		d = firstDelay << (earlier - 1)
	}
	return d + time.Duration(jitter*float64(d)/5)
}
