package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/access"
	"github.com/qod-io/qod/runtime/edge"
)

// grantsRetry is how long a failed reading of the grants rests.
const grantsRetry = 250 * time.Millisecond

// followGrants makes the directory anew whenever the store has changed, and confirms it with each beat of
// the store. It does not rest before it has: a revoked grant must not live on because one read failed.
func (s *server) followGrants(ctx context.Context) error {
	return s.postgres.Heartbeat(ctx, func(r store.Revision) {
		at := time.Now()
		for s.directory.Current().Revision() < r {
			directory, err := s.grants(ctx)
			if err == nil {
				s.directory.Swap(directory)
				continue
			}
			s.log.Warn("grants are not up to date", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(grantsRetry):
			}
		}
		s.directory.Confirm(at)
	})
}

// grants reads who may do what, as the store has it now.
func (s *server) grants(ctx context.Context) (*access.Directory, error) {
	snap, err := s.store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return access.New(snap, s.sealer)
}

// staleGrants is for how long grants count that the store has not confirmed, 0 for ever.
func (s *server) staleGrants() time.Duration {
	if s.runtime.acting() && !s.StaleActing {
		return 0
	}
	return time.Duration(s.StaleSec) * time.Second
}

// note turns what the edge saw into a row of the audit.
func (s *server) note(e edge.Event) { s.audit.Add(store.Event(e)) }

// countDropped makes metrics of what the store was too slow to take.
func (s *server) countDropped() {
	for name, of := range map[string]struct {
		help    string
		dropped func() int64
	}{
		"audit_events_dropped_total":      {"Events that the audit lost to a full buffer.", s.audit.Dropped},
		"statement_history_dropped_total": {"Statements that the history lost to a full buffer.", s.history.Dropped},
	} {
		s.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: of.help},
			func() float64 { return float64(of.dropped()) }))
	}
}

const (
	expireEvery = time.Hour
	// expiredTokens is how long lists show a token that has expired.
	expiredTokens = 30 * 24 * time.Hour
)

// expireIdentity forgets tokens and revocations that are of no use any more, where this process may act.
func (s *server) expireIdentity(ctx context.Context) error {
	select {
	case <-s.runtime.right:
	case <-ctx.Done():
		return ctx.Err()
	}
	tick := time.NewTicker(expireEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		for what, expire := range map[string]func() error{
			"tokens":      func() error { return s.postgres.ExpireTokens(ctx, now.Add(-expiredTokens)) },
			"revocations": func() error { return s.postgres.ExpireRevocations(ctx, now) },
		} {
			if err := expire(); err != nil && ctx.Err() == nil {
				s.log.Warn("not expired", "what", what, "error", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
