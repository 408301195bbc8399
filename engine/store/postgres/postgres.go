// Package postgres keeps a store in Postgres: tables, migrations, one write path, leases and watching.
//
// Commits happen one after the other: each locks the row of qodstate_revision first and reads what it
// changes afterwards, so it needs no other locks, and revisions become visible in their order. What a
// change means is decided by package store; this one loads the rows it needs and writes what differs.
//
// Writes are repeated until their context's deadline while Postgres is away. A commit whose answer was
// lost is found again by the id of its apply record, and so never happens twice.
//
// Leases and LISTEN need sessions: a pooler that gives a connection to another client after each
// transaction must not be in between. Starting a server and making databases are left to others.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/qod-io/qod/engine/store"
)

// Config says where the store is. URL is needed, and Sealer if secrets are written.
type Config struct {
	URL    string // postgres://…; it may hold a password and is never logged
	Sealer *store.Sealer
	Log    *slog.Logger // nil: nothing is logged
}

// Store is a store in Postgres. It implements store.Store and the interfaces beside it.
type Store struct {
	config *pgx.ConnConfig
	pool   *pgxpool.Pool
	sealer *store.Sealer
	log    *slog.Logger

	mu     sync.Mutex
	leases map[*lease]bool    // held ones
	days   map[time.Time]bool // partitions of statements known to exist
	last   reading
}

// Open connects, brings the schema up to date and returns the store. One written by a newer qod is
// opened too, but every write to it is refused with ErrNewer.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := connect(ctx, cfg, nil)
	if err != nil {
		return nil, err
	}
	if err := s.migrate(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open state: %w", err)
	}
	return s, nil
}

// OpenReadOnly connects to a store that must exist, or fails with ErrNoState. It never migrates, and
// Postgres refuses every write.
func OpenReadOnly(ctx context.Context, cfg Config) (*Store, error) {
	s, err := connect(ctx, cfg, map[string]string{"default_transaction_read_only": "on"})
	if err != nil {
		return nil, err
	}
	if err := s.exists(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open state: %w", err)
	}
	return s, nil
}

// Ping says whether the server answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

// Close gives up the leases that are held and closes all connections.
func (s *Store) Close() {
	s.mu.Lock()
	held := make([]*lease, 0, len(s.leases))
	for l := range s.leases {
		held = append(held, l)
	}
	s.mu.Unlock()
	for _, l := range held {
		l.Release()
	}
	s.pool.Close()
}

// connectTimeout bounds one attempt to connect.
const connectTimeout = 5 * time.Second

func connect(ctx context.Context, cfg Config, params map[string]string) (*Store, error) {
	parsed, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		// The error quotes the URL, and cannot always tell what in a bad one is the password.
		return nil, errors.New("read database URL: it is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE, with what is " +
			"special in the password percent-encoded")
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conn := parsed.ConnConfig
	if conn.ConnectTimeout == 0 || conn.ConnectTimeout > connectTimeout {
		conn.ConnectTimeout = connectTimeout
	}
	setDefault(conn.RuntimeParams, "application_name", "qod")
	for name, value := range params {
		conn.RuntimeParams[name] = value
	}
	parsed.AfterConnect = func(ctx context.Context, c *pgx.Conn) error { return tune(ctx, c, writerSettings) }
	pool, err := pgxpool.NewWithConfig(ctx, parsed)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	return &Store{
		config: conn.Copy(), pool: pool, sealer: cfg.Sealer, log: log,
		leases: map[*lease]bool{}, days: map[time.Time]bool{},
	}, nil
}

func setDefault(params map[string]string, name, value string) {
	if _, set := params[name]; !set {
		params[name] = value
	}
}

// writerSettings make Postgres end the transaction of a client that froze or vanished in the middle of
// it: a commit holds the lock that every other one waits for.
const writerSettings = `
SELECT set_config(name, value, false)
FROM (VALUES
    ('idle_in_transaction_session_timeout', '15s'),
    ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'), ('tcp_keepalives_count', '3')
) AS wanted (name, value) JOIN pg_settings USING (name)`

// tune applies settings, which not every server and system has: they are useful, not needed. Each
// connection also asks Postgres to notice when its client is gone while it works.
func tune(ctx context.Context, c *pgx.Conn, settings string) error {
	for _, statement := range []string{settings, `SET client_connection_check_interval = '1s'`} {
		_, err := c.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol)
		if pg := (*pgconn.PgError)(nil); err != nil && !asPgError(err, &pg) {
			return err
		}
	}
	return nil
}
