package store

import (
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/qod-io/qod/schema"
)

// AuditLog writes events to the store behind the backs of those who cause them: Add never waits.
type AuditLog struct{ trail[Event] }

// NewAuditLog returns an AuditLog that keeps events for so long.
func NewAuditLog(a Audit, keep time.Duration, log *slog.Logger) *AuditLog {
	return &AuditLog{trail[Event]{
		what: "audit", write: a.AppendEvents, expire: a.ExpireEvents, keep: keep, log: log, rows: make(chan Event, trailBuffer),
	}}
}

// Add takes an event, or drops it when the store has been away for too long.
func (l *AuditLog) Add(e Event) {
	l.add(e.Stamped())
}

// Stamped returns the event with an id and a time where it has none, and with texts that every store takes.
func (e Event) Stamped() Event {
	clean(&e.User, &e.Tenant, &e.Realm, &e.From, &e.Action, &e.Object, &e.Code, &e.Privilege, &e.Detail, &e.SQL)
	if e.ID == "" {
		e.ID = uuid.NewString()
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = Stamp(e.At)
	return e
}

// Matches reports whether the filter chooses the event, whatever its limit.
func (f EventFilter) Matches(e Event) bool {
	return (f.User == "" || schema.Fold(f.User) == schema.Fold(e.User)) &&
		(f.Tenant == "" || schema.Fold(f.Tenant) == schema.Fold(e.Tenant)) &&
		(f.Action == "" || e.Action == f.Action || strings.HasPrefix(e.Action, f.Action+".")) &&
		!e.At.Before(f.Since)
}
