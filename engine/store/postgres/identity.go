package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/store"
)

// never is the time that stands for one that is not set.
func never(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return store.Stamp(*t)
}

// queueIdentity reads tokens and what is revoked into the snapshot.
func queueIdentity(batch *pgx.Batch, snapshot *store.Snapshot) {
	batch.Queue(`SELECT id, owner::text, name, hash, created, expires, revoked, read_only FROM qodstate_token ORDER BY id`).Query(
		func(rows pgx.Rows) (err error) {
			snapshot.Tokens, err = pgx.CollectRows(rows, scanToken)
			return err
		})
	batch.Queue(`SELECT jti, user_id, at, expires FROM qodstate_revoked_jti ORDER BY jti, user_id`).Query(
		func(rows pgx.Rows) (err error) {
			snapshot.Revoked, err = pgx.CollectRows(rows, scanRevocation)
			return err
		})
}

func scanToken(row pgx.CollectableRow) (store.Token, error) {
	var t store.Token
	var revoked *time.Time
	err := row.Scan(&t.ID, &t.Owner, &t.Name, &t.Hash, &t.Created, &t.Expires, &revoked, &t.ReadOnly)
	t.Created, t.Expires, t.Revoked = store.Stamp(t.Created), store.Stamp(t.Expires), never(revoked)
	return t, err
}

func scanRevocation(row pgx.CollectableRow) (store.Revocation, error) {
	var r store.Revocation
	err := row.Scan(&r.Session, &r.User, &r.At, &r.Expires)
	r.At, r.Expires = store.Stamp(r.At), store.Stamp(r.Expires)
	return r, err
}

const notifyRevocation = `NOTIFY qod_revocation`

// identify runs a change of tokens or sessions with its event. A try whose answer was lost is found again by
// the id of the event, so f needs to know nothing of it.
func (s *Store) identify(ctx context.Context, what string, e store.Event, f func(tx pgx.Tx) (wrote bool, err error)) error {
	e = e.Stamped()
	return s.write(ctx, what, func(ctx context.Context) error {
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			var done bool
			err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM qodstate_audit WHERE at = $1 AND id = $2)`, e.At, e.ID).Scan(&done)
			if err != nil || done {
				return false, err
			}
			wrote, err := f(tx)
			if err != nil || !wrote {
				return false, err
			}
			if err := insertEvents(ctx, tx, []store.Event{e}); err != nil {
				return false, err
			}
			_, err = tx.Exec(ctx, notifyRevocation)
			return true, err
		})
	})
}

// AddToken implements store.Tokens.
func (s *Store) AddToken(ctx context.Context, t store.Token, e store.Event) error {
	if _, err := uuid.Parse(t.Owner); err != nil {
		return fmt.Errorf("add token: its owner: %w", store.ErrNotFound)
	}
	return s.identify(ctx, "add token", e, func(tx pgx.Tx) (bool, error) {
		tag, err := tx.Exec(ctx, `INSERT INTO qodstate_token (id, owner, name, hash, created, expires, read_only)
			SELECT $1, o.id, $3, $4, $5, $6, $7 FROM qodstate_object o WHERE o.id = $2::text::uuid`,
			t.ID, t.Owner, t.Name, t.Hash, store.Stamp(t.Created), store.Stamp(t.Expires), t.ReadOnly)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("its owner: %w", store.ErrNotFound)
		}
		var pg *pgconn.PgError
		if asPgError(err, &pg) && pg.Code == "23505" {
			err = fmt.Errorf("there is a token %s", t.ID)
		}
		return true, err
	})
}

// RevokeToken implements store.Tokens.
func (s *Store) RevokeToken(ctx context.Context, id string, at time.Time, e store.Event) error {
	return s.identify(ctx, "revoke token", e, func(tx pgx.Tx) (bool, error) {
		var revoked *time.Time
		err := tx.QueryRow(ctx, `SELECT revoked FROM qodstate_token WHERE id = $1`, id).Scan(&revoked)
		if errors.Is(err, pgx.ErrNoRows) {
			return false, store.ErrNotFound
		}
		if err != nil || revoked != nil {
			return false, err
		}
		_, err = tx.Exec(ctx, `UPDATE qodstate_token SET revoked = $2 WHERE id = $1`, id, store.Stamp(at))
		return true, err
	})
}

// ExpireTokens implements store.Tokens.
func (s *Store) ExpireTokens(ctx context.Context, before time.Time) error {
	return s.expire(ctx, "expire tokens", "qodstate_token", before)
}

// Revoke implements store.Revocations.
func (s *Store) Revoke(ctx context.Context, r store.Revocation, e store.Event) error {
	if err := r.Check(); err != nil {
		return err
	}
	return s.identify(ctx, "revoke", e, func(tx pgx.Tx) (bool, error) {
		_, err := tx.Exec(ctx, `INSERT INTO qodstate_revoked_jti AS r (jti, user_id, at, expires) VALUES ($1, $2, $3, $4)
			ON CONFLICT (jti, user_id) DO UPDATE SET at = greatest(r.at, excluded.at), expires = greatest(r.expires, excluded.expires)`,
			r.Session, r.User, store.Stamp(r.At), store.Stamp(r.Expires))
		return true, err
	})
}

// ExpireRevocations implements store.Revocations.
func (s *Store) ExpireRevocations(ctx context.Context, before time.Time) error {
	return s.expire(ctx, "expire revocations", "qodstate_revoked_jti", before)
}

// expire deletes the rows of a table that expired before the time. It takes the write lock only if there
// are any.
func (s *Store) expire(ctx context.Context, what, table string, before time.Time) error {
	return s.write(ctx, what, func(ctx context.Context) error {
		var some bool
		err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE expires < $1)`, before).Scan(&some)
		if err != nil || !some {
			return err
		}
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			tag, err := tx.Exec(ctx, `DELETE FROM `+table+` WHERE expires < $1`, before)
			return tag.RowsAffected() > 0, err
		})
	})
}
