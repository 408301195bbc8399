package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/store"
)

const (
	statementTable = "qodstate_statement"
	partitionName  = statementTable + "_20060102"
)

func statementColumns() []string {
	return []string{
		"started", "id", "tenant", "pool", "username", "node", "sql", "class", "status", "error",
		"microseconds", "row_count", "byte_count",
	}
}

// AppendStatements implements store.Statements.
func (s *Store) AppendStatements(ctx context.Context, rows []store.Statement) error {
	if len(rows) == 0 {
		return ctx.Err()
	}
	return s.write(ctx, "append statements", func(ctx context.Context) error {
		if err := s.makeDays(ctx, rows); err != nil {
			return err
		}
		err := copyStatements(ctx, s.pool, statementTable, rows)
		var pg *pgconn.PgError
		switch {
		case !asPgError(err, &pg):
			return err
		case pg.Code == "23514": // the day has expired since it was made
			s.forgetDays()
			if err := s.makeDays(ctx, rows); err != nil {
				return err
			}
			return s.mergeStatements(ctx, rows)
		case pg.Code == "23505": // an earlier try went through without an answer
			return s.mergeStatements(ctx, rows)
		}
		return err
	})
}

// copier is a connection, a transaction or a pool.
type copier interface {
	CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error)
}

func copyStatements(ctx context.Context, to copier, table string, rows []store.Statement) error {
	_, err := to.CopyFrom(ctx, pgx.Identifier{table}, statementColumns(),
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			r := rows[i]
			return []any{
				store.Stamp(r.Started), r.ID, r.Tenant, r.Pool, r.User, r.Node, r.SQL, r.Class, r.Status, r.Error,
				r.Duration.Microseconds(), r.Rows, r.Bytes,
			}, nil
		}))
	return err
}

// mergeStatements adds the rows that are not there yet.
func (s *Store) mergeStatements(ctx context.Context, rows []store.Statement) error {
	const scratch = "qodstate_statement_scratch"
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `CREATE TEMP TABLE `+scratch+` (LIKE `+statementTable+`) ON COMMIT DROP`)
		if err != nil {
			return err
		}
		if err := copyStatements(ctx, tx, scratch, rows); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO `+statementTable+` SELECT * FROM `+scratch+` ON CONFLICT DO NOTHING`)
		return err
	})
}

// makeDays makes the partitions that the rows belong to.
func (s *Store) makeDays(ctx context.Context, rows []store.Statement) error {
	missing := map[time.Time]bool{}
	s.mu.Lock()
	for _, r := range rows {
		if day := store.Day(r.Started); !s.days[day] {
			missing[day] = true
		}
	}
	s.mu.Unlock()
	for day := range missing {
		if err := s.makeDay(ctx, day); err != nil {
			return fmt.Errorf("make partition: %w", err)
		}
		s.mu.Lock()
		s.days[day] = true
		s.mu.Unlock()
	}
	return nil
}

func (s *Store) forgetDays() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.days)
}

// makeDay attaches a table that was made apart, which does not wait for readers of the others.
func (s *Store) makeDay(ctx context.Context, day time.Time) error {
	name := day.Format(partitionName)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockTx(ctx, tx, lockStatements); err != nil {
			return err
		}
		var exists bool
		err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&exists)
		if err != nil || exists {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`
			CREATE TABLE %[1]s (LIKE %[2]s INCLUDING ALL);
			ALTER TABLE %[2]s ATTACH PARTITION %[1]s FOR VALUES FROM ('%[3]s') TO ('%[4]s')`,
			name, statementTable, bound(day), bound(day.AddDate(0, 0, 1))), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

func bound(day time.Time) string { return day.Format("2006-01-02 00:00:00+00") }

// ExpireStatements implements store.Statements.
func (s *Store) ExpireStatements(ctx context.Context, before time.Time) error {
	return s.write(ctx, "expire statements", func(ctx context.Context) error {
		defer s.forgetDays()
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := lockTx(ctx, tx, lockStatements); err != nil {
				return err
			}
			rows, err := tx.Query(ctx, `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::text::regclass`, statementTable)
			if err != nil {
				return err
			}
			names, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			for _, name := range names {
				day, err := time.Parse(partitionName, name)
				if err != nil || day.AddDate(0, 0, 1).After(before) {
					continue
				}
				if _, err := tx.Exec(ctx, "DROP TABLE "+pgx.Identifier{name}.Sanitize()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// ListStatements implements store.Statements.
func (s *Store) ListStatements(ctx context.Context, limit int) ([]store.Statement, error) {
	var statements []store.Statement
	err := s.read(ctx, "list statements", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `SELECT id, tenant, pool, username, node, sql, class, status, error, started,
			microseconds, row_count, byte_count FROM qodstate_statement ORDER BY started DESC, id DESC LIMIT $1`, max(0, limit))
		if err != nil {
			return err
		}
		statements, err = pgx.CollectRows(rows, scanStatement)
		return err
	})
	return statements, err
}

func scanStatement(row pgx.CollectableRow) (store.Statement, error) {
	var r store.Statement
	var microseconds int64
	err := row.Scan(&r.ID, &r.Tenant, &r.Pool, &r.User, &r.Node, &r.SQL, &r.Class, &r.Status, &r.Error, &r.Started,
		&microseconds, &r.Rows, &r.Bytes)
	r.Started, r.Duration = store.Stamp(r.Started), time.Duration(microseconds)*time.Microsecond
	return r, err
}
