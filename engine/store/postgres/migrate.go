package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is a step from one version of the schema to the next.
type migration struct {
	version int
	sql     string
}

// migrations returns the steps in order. Files are named NNNN_what.sql, from 0001 without gaps.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	var all []migration
	for i, name := range names {
		digits, _, _ := strings.Cut(path.Base(name), "_")
		if version, err := strconv.Atoi(digits); err != nil || version != i+1 {
			return nil, fmt.Errorf("list migrations: %s is not number %d", name, i+1)
		}
		sql, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		all = append(all, migration{i + 1, string(sql)})
	}
	return all, nil
}

const (
	// lockSpace is the first key of qod's advisory locks: "qod".
	lockSpace = 0x716f64

	lockMigration  = 1
	lockStatements = 2

	schemaTable = `CREATE TABLE IF NOT EXISTS qodstate_schema (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())`
	newest      = `SELECT coalesce(max(version), 0) FROM qodstate_schema`
)

// migrate runs the steps that are missing, and then makes the views, in one transaction. A schema that
// is newer than this program is left alone.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	var have int
	err = s.read(ctx, "migrate", func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if err := lockTx(ctx, tx, lockMigration); err != nil {
				return err
			}
			have, err = createSchemaTable(ctx, tx)
			if err != nil || have > len(steps) {
				return err
			}
			for _, step := range steps[have:] {
				if err := step.run(ctx, tx); err != nil {
					return err
				}
			}
			return s.makeViews(ctx, tx)
		})
	})
	switch {
	case err != nil:
	case have > len(steps):
		s.log.WarnContext(ctx, "state was written by a newer qod: it is only read", "have", have, "know", len(steps))
	case have < len(steps):
		s.log.InfoContext(ctx, "migrated state", "from", have, "to", len(steps))
	}
	return err
}

func (m migration) run(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, m.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("step %d: %w", m.version, err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO qodstate_schema (version) VALUES ($1)`, m.version)
	return err
}

// createSchemaTable returns the version of the schema, zero in an empty database.
func createSchemaTable(ctx context.Context, tx pgx.Tx) (int, error) {
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass('qodstate_schema') IS NOT NULL`).Scan(&exists); err != nil {
		return 0, err
	}
	if !exists {
		_, err := tx.Exec(ctx, schemaTable)
		return 0, err
	}
	var version int
	err := tx.QueryRow(ctx, newest).Scan(&version)
	return version, err
}

func lockTx(ctx context.Context, tx pgx.Tx, what int) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::int, $2::int)`, lockSpace, what)
	return err
}

// exists checks for a schema of this program's version or a newer one.
func (s *Store) exists(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	var version int
	err = s.read(ctx, "look for state", func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, newest).Scan(&version)
	})
	var pg *pgconn.PgError
	switch {
	case asPgError(err, &pg) && pg.Code == "42P01": // no such table
		return store.ErrNoState
	case asPgError(err, &pg) && pg.Code == "3D000": // no such database: it may have been lost, and nothing makes it
		return fmt.Errorf("%s: restore it, or make an empty one for new state", pg.Message)
	case err != nil:
		return err
	case version < len(steps):
		return fmt.Errorf("state has version %d of its schema and this qod reads %d: run qod apply or qod serve once", version, len(steps))
	}
	return nil
}

// current refuses to write to a schema that is newer than this program. It is asked within each write:
// a newer qod may have migrated since this one opened the store.
func current(version int) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	if version > len(steps) {
		return store.ErrNewer
	}
	return nil
}

const viewDigests = `
SELECT c.relname, coalesce(obj_description(c.oid, 'pg_class'), '')
FROM pg_class c
WHERE c.relkind = 'v' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'qodstate_object'::regclass)
  AND c.relname LIKE 'qodstate\_%'`

// makeViews creates the views that are missing or have another definition, which a digest in their
// comment tells.
func (s *Store) makeViews(ctx context.Context, tx pgx.Tx) error {
	have := map[string]string{}
	rows, err := tx.Query(ctx, viewDigests)
	if err != nil {
		return fmt.Errorf("list views: %w", err)
	}
	var name, digest string
	if _, err := pgx.ForEachRow(rows, []any{&name, &digest}, func() error {
		have[name] = digest
		return nil
	}); err != nil {
		return fmt.Errorf("list views: %w", err)
	}
	for _, kind := range schema.Kinds() {
		for _, view := range kind.Views() {
			sum := sha256.Sum256([]byte(view.SQL))
			digest := "qod " + hex.EncodeToString(sum[:8])
			if have[view.Name] == digest {
				continue
			}
			if err := s.makeView(ctx, tx, view, digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeView goes on without the new view when somebody's own views depend on the old one.
func (s *Store) makeView(ctx context.Context, tx pgx.Tx, view schema.View, digest string) error {
	name := pgx.Identifier{view.Name}.Sanitize()
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		for _, statement := range []string{
			"DROP VIEW IF EXISTS " + name,
			"CREATE VIEW " + name + " AS " + view.SQL,
			"COMMENT ON VIEW " + name + " IS '" + digest + "'",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("make view %s: %w", view.Name, err)
			}
		}
		return nil
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "2BP01" {
		s.log.WarnContext(ctx, "view keeps its old definition: others depend on it", "view", view.Name, "error", err)
		return nil
	}
	return err
}
