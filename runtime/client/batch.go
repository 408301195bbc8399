package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/qod-io/qod/schema"
)

const (
	// Window is how long a change waits for others to join it. Terraform starts those that do not depend on each
	// other within a few milliseconds.
	Window = 10 * time.Millisecond
	// maxBatch bounds the changes of one request; a role of many policies has a few KiB, and a request 4 MiB.
	maxBatch = 200
	// sendLimit is how long what was sent is waited for, even when nobody waits any more.
	sendLimit = 2 * time.Minute
)

// Batch joins changes of a stack that are made within a window into one commit. When that is refused, each is made by
// itself, so only the faulty one fails. It may be used by several goroutines, and is made by [NewBatch].
type Batch struct {
	client *Client
	stack  string

	sending sync.Mutex // held by who sends: what arrives meanwhile is sent together, next

	mu      sync.Mutex
	waiting []*member
}

// member is a change, and what came of it once done is closed.
type member struct {
	change Change
	at     schema.Addr // where its object is afterwards
	done   chan struct{}
	object Object
	err    error
}

// NewBatch returns a batch of changes of the stack.
func NewBatch(c *Client, stack string) *Batch { return &Batch{client: c, stack: stack} }

// Put makes the change of an object that is at that address afterwards, and returns the object. A change that was sent
// is waited for, up to two minutes, even when the context ends: what became of it must be known.
func (b *Batch) Put(ctx context.Context, change Change, at schema.Addr) (Object, error) {
	change.Action = Put
	return b.add(ctx, &member{change: change, at: at, done: make(chan struct{})})
}

// Delete deletes an object, as Put puts one.
func (b *Batch) Delete(ctx context.Context, change Change) error {
	change.Action = Delete
	_, err := b.add(ctx, &member{change: change, done: make(chan struct{})})
	return err
}

// add has the first to come lead the batch: it waits for the window to pass and sends for all.
func (b *Batch) add(ctx context.Context, m *member) (Object, error) {
	if err := ctx.Err(); err != nil {
		return Object{}, err
	}
	b.mu.Lock()
	b.waiting = append(b.waiting, m)
	lead := len(b.waiting) == 1
	b.mu.Unlock()
	if lead {
		_ = b.client.config.Wait(ctx, Window) // an end of the leader's context only makes it sooner
		b.sending.Lock()
		b.send(context.WithoutCancel(ctx), b.take())
		b.sending.Unlock()
	}
	<-m.done
	return m.object, m.err
}

func (b *Batch) take() []*member {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.waiting
	b.waiting = nil
	return taken
}

func (b *Batch) send(ctx context.Context, members []*member) {
	for len(members) > 0 {
		n := min(len(members), maxBatch)
		b.commit(ctx, members[:n])
		members = members[n:]
	}
}

// commit makes the changes at once, or else one by one. It settles all members.
func (b *Batch) commit(ctx context.Context, members []*member) {
	err := b.apply(ctx, members)
	switch {
	case err == nil:
	case len(members) > 1 && ofOne(err):
		for _, m := range members {
			b.commit(ctx, []*member{m})
		}
		return
	default:
		for _, m := range members {
			m.err = err
		}
	}
	for _, m := range members {
		close(m.done)
	}
}

func (b *Batch) apply(ctx context.Context, members []*member) error {
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	r := Request{Stack: b.stack}
	for _, m := range members {
		r.Changes = append(r.Changes, m.change)
	}
	applied, err := b.client.Apply(ctx, r)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.change.Action != Put {
			continue
		}
		var ok bool
		if m.object, ok = applied.Object(m.at); !ok {
			m.object, m.err = b.client.Get(ctx, m.at)
		}
	}
	return nil
}

// ofOne reports whether a refusal may be that of one member alone: another's fault, or their size together. Who is not
// let in, or finds nobody there, need not ask once more for each.
func ofOne(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusUnauthorized, http.StatusTooManyRequests:
		return false
	}
	return e.Status < http.StatusInternalServerError
}
