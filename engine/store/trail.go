package store

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

const (
	trailBuffer = 16384 // rows kept while the store is slow or away
	trailBatch  = 4096
	trailEvery  = 500 * time.Millisecond
	trailExpire = time.Hour
	trailLast   = 5 * time.Second // for what is left when Run is told to end
)

// trail writes rows to the store behind the backs of those who make them: adding never waits.
type trail[T any] struct {
	what    string // for the log
	write   func(context.Context, []T) error
	expire  func(ctx context.Context, before time.Time) error
	keep    time.Duration
	log     *slog.Logger
	rows    chan T
	dropped atomic.Int64
}

func (t *trail[T]) add(row T) {
	select {
	case t.rows <- row:
	default:
		t.dropped.Add(1)
	}
}

// Dropped counts the rows that were lost to a full buffer.
func (t *trail[T]) Dropped() int64 { return t.dropped.Load() }

// Run writes batches every half second and drops old rows every hour, until ctx ends; then it writes what
// is left.
func (t *trail[T]) Run(ctx context.Context) error {
	tick := time.NewTicker(trailEvery)
	defer tick.Stop()
	var pending []T
	var expired time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), trailLast)
			defer cancel()
			for (len(pending) > 0 || len(t.rows) > 0) && last.Err() == nil {
				pending = t.flush(last, pending)
			}
			return ctx.Err()
		case <-tick.C:
		}
		pending = t.flush(ctx, pending)
		if time.Since(expired) > trailExpire {
			expired = time.Now()
			if err := t.expire(ctx, expired.Add(-t.keep)); err != nil && ctx.Err() == nil {
				t.log.Warn(t.what+" is not shortened", "error", err)
			}
		}
	}
}

// flush writes one batch and returns what could not be written.
func (t *trail[T]) flush(ctx context.Context, pending []T) []T {
	for len(pending) < trailBatch {
		select {
		case row := <-t.rows:
			pending = append(pending, row)
			continue
		default:
		}
		break
	}
	if len(pending) == 0 {
		return nil
	}
	if err := t.write(ctx, pending); err != nil {
		t.log.Debug(t.what+" waits", "error", err, "rows", len(pending))
		return pending
	}
	return nil
}

// clean takes out what a store does not take as text: one such row would hold up all that come after it.
func clean(texts ...*string) {
	for _, text := range texts {
		*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "?"), "\x00", "?")
	}
}
