package store

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
)

const (
	historyBuffer = 16384 // statements kept while the store is slow or away
	historyBatch  = 4096
	historyEvery  = 500 * time.Millisecond
	historyExpire = time.Hour
	historyLast   = 5 * time.Second // for what is left when Run is told to end
)

// History writes statements to the store behind the backs of those who run them: Add never waits.
type History struct {
	store   Statements
	keep    time.Duration
	log     *slog.Logger
	rows    chan Statement
	dropped atomic.Int64
}

// NewHistory returns a History that keeps statements for so long.
func NewHistory(s Statements, keep time.Duration, log *slog.Logger) *History {
	return &History{store: s, keep: keep, log: log, rows: make(chan Statement, historyBuffer)}
}

// Add takes a statement, or drops it when the store has been away for too long.
func (h *History) Add(s Statement) {
	for _, text := range []*string{&s.Tenant, &s.Pool, &s.User, &s.SQL, &s.Error} {
		// One row that the store cannot take would hold up all that come after it.
		*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "?"), "\x00", "?")
	}
	select {
	case h.rows <- s:
	default:
		h.dropped.Add(1)
	}
}

// Dropped counts the statements that were lost to a full buffer.
func (h *History) Dropped() int64 { return h.dropped.Load() }

// Run writes batches every half second and drops old days every hour, until ctx ends; then it writes
// what is left.
func (h *History) Run(ctx context.Context) error {
	tick := time.NewTicker(historyEvery)
	defer tick.Stop()
	var pending []Statement
	var expired time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyLast)
			defer cancel()
			for (len(pending) > 0 || len(h.rows) > 0) && last.Err() == nil {
				pending = h.flush(last, pending)
			}
			return ctx.Err()
		case <-tick.C:
		}
		pending = h.flush(ctx, pending)
		if time.Since(expired) > historyExpire {
			expired = time.Now()
			if err := h.store.ExpireStatements(ctx, expired.Add(-h.keep)); err != nil && ctx.Err() == nil {
				h.log.Warn("statement history is not shortened", "error", err)
			}
		}
	}
}

// flush writes one batch and returns what could not be written.
func (h *History) flush(ctx context.Context, pending []Statement) []Statement {
	for len(pending) < historyBatch {
		select {
		case s := <-h.rows:
			pending = append(pending, s)
			continue
		default:
		}
		break
	}
	if len(pending) == 0 {
		return nil
	}
	if err := h.store.AppendStatements(ctx, pending); err != nil {
		h.log.Debug("statement history waits", "error", err, "statements", len(pending))
		return pending
	}
	return nil
}
