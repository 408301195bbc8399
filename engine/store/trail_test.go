package store

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a store whose audit can be away.
type slow struct {
	*Memory
	away atomic.Bool
}

func (s *slow) AppendEvents(ctx context.Context, events []Event) error {
	if s.away.Load() {
		return errors.New("it is away")
	}
	return s.Memory.AppendEvents(ctx, events)
}

func TestAuditLogNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Memory: NewMemory(nil)}
		s.away.Store(true)
		l := NewAuditLog(s, 24*time.Hour, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.Run(ctx) }()
		start := time.Now()
		for range trailBuffer + 10 {
			l.Add(Event{Action: "auth.login"})
		}
		if took := time.Since(start); took != 0 || l.Dropped() != 10 {
			t.Errorf("it took %s, and %d are dropped", took, l.Dropped())
		}
		kept := func() int {
			all, err := s.ListEvents(t.Context(), EventFilter{})
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		time.Sleep(time.Minute)
		if n := kept(); n != 0 {
			t.Errorf("%d events in a store that is away", n)
		}
		s.away.Store(false)
		time.Sleep(10 * trailEvery)
		if n := kept(); n != trailBuffer {
			t.Errorf("%d events are kept, want %d", n, trailBuffer)
		}
		time.Sleep(25 * time.Hour)
		if n := kept(); n != 0 {
			t.Errorf("%d events are kept for longer than a day", n)
		}
		l.Add(Event{Action: "auth.login"})
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		if n := kept(); n != 1 {
			t.Errorf("%d events, want what was added before the end", n)
		}
	})
}
