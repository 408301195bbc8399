package store

import (
	"log/slog"
	"time"
)

// History writes statements to the store behind the backs of those who run them: Add never waits.
type History struct{ trail[Statement] }

// NewHistory returns a History that keeps statements for so long.
func NewHistory(s Statements, keep time.Duration, log *slog.Logger) *History {
	return &History{trail[Statement]{
		what: "statement history", write: s.AppendStatements, expire: s.ExpireStatements, keep: keep, log: log,
		rows: make(chan Statement, trailBuffer),
	}}
}

// Add takes a statement, or drops it when the store has been away for too long.
func (h *History) Add(s Statement) {
	clean(&s.Tenant, &s.Pool, &s.User, &s.SQL, &s.Error)
	h.add(s)
}
