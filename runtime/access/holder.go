package access

import (
	"context"
	"sync/atomic"
)

// Holder holds the current Directory and what outlives it: the memory of right passwords.
type Holder struct {
	current atomic.Pointer[Directory]
	checks  *checks
}

// NewHolder returns a holder of d.
func NewHolder(d *Directory) *Holder {
	h := &Holder{checks: newChecks()}
	h.current.Store(d)
	return h
}

// Swap makes d current. Calls that began keep the one they read.
func (h *Holder) Swap(d *Directory) { h.current.Store(d) }

// Current returns the current directory.
func (h *Holder) Current() *Directory { return h.current.Load() }

// Authenticate checks a login against the current directory, as Directory.Authenticate does.
func (h *Holder) Authenticate(ctx context.Context, l Login) (Principal, error) {
	return h.Current().authenticate(ctx, l, h.checks)
}
