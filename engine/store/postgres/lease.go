package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// pingInterval is how often a lease looks at its connection.
const pingInterval = time.Second

// leaseSettings make Postgres end the session of a holder that froze or whose host vanished, after
// which another process can hold the lease. The holder asks more often than that: it knows first.
const leaseSettings = `
SELECT set_config(name, value, false)
FROM (VALUES
    ('idle_session_timeout', '10s'), ('idle_in_transaction_session_timeout', '10s'),
    ('tcp_keepalives_idle', '2'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '3')
) AS wanted (name, value) JOIN pg_settings USING (name)`

// lease is a session advisory lock on a connection that does nothing else, and the term of the row
// that went with it.
//
//	Acquire ── lock taken ── term raised ── held ──┬─ Release ───────────── lost
//	   └─ lock held elsewhere: HeldError           └─ connection broken ─── lost
type lease struct {
	store   *Store
	name    string
	term    int64
	done    chan struct{} // closed once lost
	release context.CancelFunc
	group   sync.WaitGroup
}

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, name, holder string) (store.Lease, error) {
	config := s.config.Copy()
	config.RuntimeParams["application_name"] = "qod lease"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("acquire lease %q: %w", name, err)
	}
	term, err := take(ctx, conn, name, holder)
	if err != nil {
		_ = closeConn(ctx, conn)
		if held := (*store.HeldError)(nil); errors.As(err, &held) {
			return nil, held // it says all of it
		}
		return nil, fmt.Errorf("acquire lease %q: %w", name, err)
	}
	l := &lease{store: s, name: name, term: term, done: make(chan struct{})}
	watch, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.release = cancel
	s.mu.Lock()
	s.leases[l] = true
	s.mu.Unlock()
	l.group.Go(func() { l.watch(watch, conn) })
	return l, nil
}

const raiseTerm = `INSERT INTO qodstate_lease AS l (name, term, holder, since) VALUES ($1, 1, $2, now())
ON CONFLICT (name) DO UPDATE SET term = l.term + 1, holder = excluded.holder, since = excluded.since
RETURNING term`

// take locks first and raises the term afterwards: an unfinished write under the old term ends before.
func take(ctx context.Context, conn *pgx.Conn, name, holder string) (int64, error) {
	if err := tune(ctx, conn, leaseSettings); err != nil {
		return 0, err
	}
	var version int
	if err := conn.QueryRow(ctx, newest).Scan(&version); err != nil {
		return 0, err
	}
	if err := current(version); err != nil {
		return 0, err
	}
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1::int, hashtext('lease ' || $2))`, lockSpace, name).Scan(&locked); err != nil {
		return 0, err
	}
	if !locked {
		return 0, heldBy(ctx, conn, name)
	}
	var term int64
	err := conn.QueryRow(ctx, raiseTerm, name, holder).Scan(&term)
	return term, err
}

func heldBy(ctx context.Context, conn *pgx.Conn, name string) error {
	held := &store.HeldError{Name: name, Holder: "a process that is just starting", Since: time.Now()}
	err := conn.QueryRow(ctx, `SELECT holder, since FROM qodstate_lease WHERE name = $1`, name).Scan(&held.Holder, &held.Since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return held
}

// watch asks the connection for a sign of life until there is none or the lease is released.
func (l *lease) watch(ctx context.Context, conn *pgx.Conn) {
	err := ping(ctx, conn)
	if err == nil {
		// Closing alone would free the lock a little later.
		_ = answer(context.WithoutCancel(ctx), func(ctx context.Context) error {
			_, err := conn.Exec(ctx, `SELECT pg_advisory_unlock_all()`)
			return err
		})
	} else {
		l.store.log.WarnContext(ctx, "lease is lost", "lease", l.name, "term", l.term, "error", err)
	}
	close(l.done)
	l.release()
	l.store.mu.Lock()
	delete(l.store.leases, l)
	l.store.mu.Unlock()
	_ = closeConn(ctx, conn)
}

// ping returns nil when ctx ends, and an error when the connection does not answer.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := answer(context.WithoutCancel(ctx), conn.Ping); err != nil {
			return err
		}
	}
}

// Name implements store.Lease.
func (l *lease) Name() string { return l.name }

// Term implements store.Lease.
func (l *lease) Term() int64 { return l.term }

// Done implements store.Lease.
func (l *lease) Done() <-chan struct{} { return l.done }

// Release implements store.Lease. On return the lock is free.
func (l *lease) Release() {
	l.release()
	l.group.Wait()
}
