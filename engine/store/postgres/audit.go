package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// execer is a transaction or a pool.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// AppendEvents implements store.Audit.
func (s *Store) AppendEvents(ctx context.Context, events []store.Event) error {
	if len(events) == 0 {
		return ctx.Err()
	}
	return s.write(ctx, "append audit", func(ctx context.Context) error { return insertEvents(ctx, s.pool, events) })
}

const insertAudit = `INSERT INTO qodstate_audit
    (at, id, username, tenant, realm, host, action, object, code, privilege, detail, sql)
SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
    $9::text[], $10::text[], $11::text[], $12::text[])
ON CONFLICT DO NOTHING`

func insertEvents(ctx context.Context, to execer, events []store.Event) error {
	at := make([]time.Time, len(events))
	var texts [11][]string
	for i, e := range events {
		e = e.Stamped()
		at[i] = e.At
		for column, text := range []string{
			e.ID, e.User, e.Tenant, e.Realm, e.From, e.Action, e.Object, e.Code, e.Privilege, e.Detail, e.SQL,
		} {
			texts[column] = append(texts[column], text)
		}
	}
	args := []any{at}
	for _, column := range texts {
		args = append(args, column)
	}
	_, err := to.Exec(ctx, insertAudit, args...)
	return err
}

// ExpireEvents implements store.Audit.
func (s *Store) ExpireEvents(ctx context.Context, before time.Time) error {
	return s.write(ctx, "expire audit", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `DELETE FROM qodstate_audit WHERE at < $1`, before)
		return err
	})
}

const listAudit = `SELECT at, id, username, tenant, realm, host, action, object, code, privilege, detail, sql
FROM qodstate_audit
WHERE ($1 = '' OR lower(username) = $1) AND ($2 = '' OR lower(tenant) = $2)
  AND ($3 = '' OR action = $3 OR starts_with(action, $3 || '.')) AND at >= $4
ORDER BY at DESC, id DESC LIMIT $5`

// ListEvents implements store.Audit.
func (s *Store) ListEvents(ctx context.Context, f store.EventFilter) ([]store.Event, error) {
	var limit *int
	if f.Limit > 0 {
		limit = &f.Limit
	}
	var events []store.Event
	err := s.read(ctx, "list audit", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, listAudit, schema.Fold(f.User), schema.Fold(f.Tenant), f.Action, f.Since, limit)
		if err != nil {
			return err
		}
		events, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	return events, err
}

func scanEvent(row pgx.CollectableRow) (store.Event, error) {
	var e store.Event
	err := row.Scan(&e.At, &e.ID, &e.User, &e.Tenant, &e.Realm, &e.From, &e.Action, &e.Object, &e.Code, &e.Privilege, &e.Detail, &e.SQL)
	e.At = store.Stamp(e.At)
	return e, err
}
