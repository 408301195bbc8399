package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/store"
)

// answerLimit is how long an answer may take before the connection counts as lost.
const answerLimit = 3 * time.Second

// Watch implements store.Store, on a connection of its own.
func (s *Store) Watch(ctx context.Context, on func(store.Revision)) error {
	return s.Heartbeat(ctx, store.OnChange(on))
}

// Heartbeat implements store.Store, on a connection of its own. The revision is read in every interval; a
// notification only makes it sooner.
func (s *Store) Heartbeat(ctx context.Context, on func(store.Revision)) error {
	w := &watcher{store: s, on: on}
	wait := pause{}
	away := false
	for {
		err := w.follow(ctx, func() {
			if away {
				s.log.InfoContext(ctx, "watching state again")
			}
			away = false
			wait.reset()
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !away {
			s.log.WarnContext(ctx, "state cannot be watched", "error", err)
		}
		away = true
		if wait.next(ctx) != nil {
			return ctx.Err()
		}
	}
}

type watcher struct {
	store *Store
	on    func(store.Revision)
}

// follow watches until the connection is lost. It calls good after each answer.
func (w *watcher) follow(ctx context.Context, good func()) error {
	conn, err := pgx.ConnectConfig(ctx, w.store.config.Copy())
	if err != nil {
		return err
	}
	defer func() { _ = closeConn(ctx, conn) }()
	if err := answer(ctx, func(ctx context.Context) error {
		_, err := conn.Exec(ctx, `LISTEN qod_topology; LISTEN qod_rbac; LISTEN qod_revocation`, pgx.QueryExecModeSimpleProtocol)
		return err
	}); err != nil {
		return err
	}
	for {
		var now store.Revision
		if err := answer(ctx, func(ctx context.Context) error {
			return conn.QueryRow(ctx, `SELECT revision FROM qodstate_revision`).Scan(&now)
		}); err != nil {
			return err
		}
		good()
		w.on(now)
		if err := waitForNotification(ctx, conn); err != nil {
			return err
		}
	}
}

// waitForNotification returns nil after the interval too.
func waitForNotification(ctx context.Context, conn *pgx.Conn) error {
	within, cancel := context.WithTimeout(ctx, store.HeartbeatInterval)
	defer cancel()
	_, err := conn.WaitForNotification(within)
	if err != nil && ctx.Err() == nil && pgconn.Timeout(err) && !conn.IsClosed() {
		return nil
	}
	return err
}

func answer(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return f(ctx)
}

func closeConn(ctx context.Context, conn *pgx.Conn) error {
	return answer(context.WithoutCancel(ctx), conn.Close)
}
