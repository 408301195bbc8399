package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

func encodePrevious(before map[string]*store.Object) ([]byte, error) {
	previous := make(map[string]*store.ObjectJSON, len(before))
	for id, o := range before {
		if o == nil {
			previous[id] = nil
			continue
		}
		e, err := store.EncodeObject(*o)
		if err != nil {
			return nil, err
		}
		previous[id] = &e
	}
	return json.Marshal(previous)
}

const (
	lastTouch = `SELECT stack, by, revision FROM qodstate_apply
WHERE previous ? $1 ORDER BY revision DESC LIMIT 1`

	// The first commit after the one that was seen replaced what was seen.
	firstSince = `SELECT previous -> $1 FROM qodstate_apply
WHERE revision > $2 AND previous ? $1 ORDER BY revision LIMIT 1`
)

// conflict says what became of the object that a write was made for.
func conflict(ctx context.Context, tx pgx.Tx, rows *store.Rows, w store.Write) error {
	var last store.Touch
	err := tx.QueryRow(ctx, lastTouch, w.ID).Scan(&last.Stack, &last.By, &last.Revision)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var raw []byte
	err = tx.QueryRow(ctx, firstSince, w.ID, w.Saw).Scan(&raw)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	seen, err := decodePrevious(w.ID, raw)
	if err != nil {
		return err
	}
	var now *store.Object
	if o, exists := rows.Object(w.ID); exists {
		now = &o
	}
	return store.Conflict(w, now, seen, last)
}

func decodePrevious(id string, raw []byte) (*store.Object, error) {
	var e *store.ObjectJSON
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("read history of object %s: %w", id, err)
		}
	}
	if e == nil {
		return nil, nil
	}
	o, err := e.Object(id)
	if err != nil {
		return nil, fmt.Errorf("read history of object %s: %w", id, err)
	}
	return &o, nil
}

const listApplies = `SELECT revision, at, by, host, stack, coalesce(plan_id, ''), note, previous, previous_outputs
FROM qodstate_apply WHERE revision > $1 ORDER BY revision DESC LIMIT nullif($2, 0)`

// ListApplies implements store.Applies.
func (s *Store) ListApplies(ctx context.Context, after store.Revision, limit int) ([]store.Apply, error) {
	var applies []store.Apply
	err := s.read(ctx, "list commits", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, listApplies, after, max(0, limit))
		if err != nil {
			return err
		}
		applies, err = pgx.CollectRows(rows, scanApply)
		return err
	})
	return applies, err
}

func scanApply(row pgx.CollectableRow) (store.Apply, error) {
	var a store.Apply
	var previous map[string]json.RawMessage
	var outputs []byte
	err := row.Scan(&a.Revision, &a.At, &a.By, &a.From, &a.Stack, &a.PlanID, &a.Note, &previous, &outputs)
	if err != nil {
		return a, err
	}
	a.At, a.Before = store.Stamp(a.At), make(map[string]*store.Object, len(previous))
	for id, raw := range previous {
		if a.Before[id], err = decodePrevious(id, raw); err != nil {
			return a, err
		}
	}
	a.Outputs, err = decodePreviousOutputs(outputs)
	return a, err
}
