package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// SetStatus implements store.Store.
func (s *Store) SetStatus(ctx context.Context, id string, status store.Status, l store.Lease) error {
	if _, err := uuid.Parse(id); err != nil {
		return store.ErrNotFound
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return s.write(ctx, "set status", func(ctx context.Context) error {
		if same, err := s.sameStatus(ctx, id, status, l); same || err != nil {
			return err
		}
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			if err := held(ctx, tx, l); err != nil {
				return false, err
			}
			tag, err := tx.Exec(ctx, `UPDATE qodstate_object SET status = $2::text::jsonb
				WHERE id = $1::text::uuid AND status <> $2::text::jsonb`, id, string(raw))
			return tag.RowsAffected() > 0, err
		})
	})
}

// sameStatus answers without a lock or a write for the usual case, in which nothing has changed.
func (s *Store) sameStatus(ctx context.Context, id string, status store.Status, l store.Lease) (bool, error) {
	var name string
	if l != nil {
		name = l.Name()
	}
	var raw []byte
	var term int64
	err := s.pool.QueryRow(ctx, `SELECT status, coalesce((SELECT term FROM qodstate_lease WHERE name = $2), 0)
		FROM qodstate_object WHERE id = $1::text::uuid`, id, name).Scan(&raw, &term)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, store.ErrNotFound
	}
	if err != nil {
		return false, err
	}
	if err := store.Held(l, term); err != nil {
		return false, err
	}
	var have store.Status
	if err := json.Unmarshal(raw, &have); err != nil {
		return false, err
	}
	return have == status, nil
}
