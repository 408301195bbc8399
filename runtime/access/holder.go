package access

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Holder holds the current Directory and what outlives it: the memory of right and of wrong passwords, the
// keys of issuers, and when the directory was last known to be what the store has.
type Holder struct {
	current   atomic.Pointer[Directory]
	confirmed atomic.Pointer[time.Time]
	gate      *gate

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with the directory
}

// gate is what logins pass.
type gate struct {
	checks  *checks
	lockout *lockout
	issuers *issuers
}

func newGate() *gate { return &gate{newChecks(), newLockout(), newIssuers()} }

// NewHolder returns a holder of d.
func NewHolder(d *Directory) *Holder {
	h := &Holder{gate: newGate(), changed: make(chan struct{})}
	h.current.Store(d)
	h.Confirm(time.Now())
	return h
}

// Swap makes d current. Calls that began keep the one they read.
func (h *Holder) Swap(d *Directory) {
	h.gate.issuers.keep(d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.Store(d)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Current returns the current directory.
func (h *Holder) Current() *Directory { return h.current.Load() }

// Watch returns the current directory and a channel that is closed when it has been swapped.
func (h *Holder) Watch() (*Directory, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.Load(), h.changed
}

// Confirm notes that at that time the store had what the directory was made of.
func (h *Holder) Confirm(at time.Time) { h.confirmed.Store(&at) }

// Age is how long ago that was, by whichever of the clocks says more: one of them stands still while the
// machine sleeps.
func (h *Holder) Age(now time.Time) time.Duration {
	at := *h.confirmed.Load()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// Authenticate checks a login against the current directory, as Directory.Authenticate does.
func (h *Holder) Authenticate(ctx context.Context, l Login) (Principal, error) {
	return h.Current().authenticate(ctx, l, h.gate)
}
