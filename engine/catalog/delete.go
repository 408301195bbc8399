package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/crash"
	"github.com/qod-io/qod/engine/store"
)

// Delete takes the tenant_db's outside away, with all its data: sessions, database, role, files. What is
// gone already is no error. What is not ours is ErrForeign, before anything is touched.
func (c *Catalog) Delete(ctx context.Context, o store.Object) error {
	return c.with(ctx, o, func(s *session) error {
		_, database, err := s.ours(ctx)
		if err != nil {
			return err
		}
		_, role, err := s.readRole(ctx)
		if err != nil {
			return err
		}
		draft := false
		if role {
			if draft, err = s.drafted(ctx); err != nil {
				return err
			}
			if err := s.endSessions(ctx); err != nil {
				return err
			}
		}
		if err := s.drop(ctx, database, draft, role); err != nil {
			return err
		}
		if err := c.host.RemoveData(ctx, o.ID); err != nil {
			return fmt.Errorf("remove data of %s: %w", s.name, err)
		}
		crash.Point("catalog.data-removed")
		s.info("database, role and data removed")
		return nil
	})
}

// endSessions shuts the role out, so that none comes back, and ends what it has.
func (s *session) endSessions(ctx context.Context) error {
	if err := s.do(ctx, "ALTER ROLE "+ident(s.name)+" NOLOGIN"); err != nil {
		return fmt.Errorf("shut out role %s: %w", s.name, err)
	}
	_, err := s.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend(pid, 5000) FROM pg_catalog.pg_stat_activity WHERE usename = $1", s.name)
	if err != nil {
		return fmt.Errorf("end sessions of role %s: %w", s.name, err)
	}
	crash.Point("catalog.sessions-ended")
	return nil
}

func (s *session) drop(ctx context.Context, database, draft, role bool) error {
	for name, exists := range map[string]bool{s.name: database, s.draft(): draft} {
		if !exists {
			continue
		}
		if err := s.do(ctx, "DROP DATABASE IF EXISTS "+ident(name)+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop database %s: %w", name, err)
		}
	}
	crash.Point("catalog.database-dropped")
	if role {
		if err := s.dropRole(ctx); err != nil {
			return fmt.Errorf("drop role %s: %w", s.name, err)
		}
	}
	crash.Point("catalog.role-dropped")
	return nil
}

// dropRole makes the role give up what it has got elsewhere, for Postgres keeps a role that has anything.
func (s *session) dropRole(ctx context.Context) error {
	databases, err := s.elsewhere(ctx)
	if err != nil {
		return err
	}
	for _, name := range databases {
		if err := s.in(ctx, login{database: name}, func(conn *pgx.Conn) error { return s.release(ctx, conn) }); err != nil {
			return fmt.Errorf("release what it has in database %s: %w", name, err)
		}
	}
	err = s.do(ctx, "DROP ROLE "+ident(s.name))
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Detail != "" { // it names the objects
		return fmt.Errorf("%w: %s", err, strings.ReplaceAll(pgErr.Detail, "\n", "; "))
	}
	return err
}

// elsewhere names the databases in which somebody gave the role rights or things to own. What all databases
// share is released in any of them.
func (s *session) elsewhere(ctx context.Context) ([]string, error) {
	rows, err := s.Query(ctx, `
SELECT DISTINCT coalesce(d.datname::text, pg_catalog.current_database()::text)
FROM pg_catalog.pg_shdepend x
JOIN pg_catalog.pg_roles r ON r.oid = x.refobjid
LEFT JOIN pg_catalog.pg_database d ON d.oid = x.dbid
WHERE x.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND r.rolname = $1
ORDER BY 1`, s.name)
	if err != nil {
		return nil, fmt.Errorf("look for what it has elsewhere: %w", err)
	}
	databases, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for what it has elsewhere: %w", err)
	}
	return databases, nil
}

// release revokes the role's rights in a database that is not the lake's. What it owns there stays, and is
// the administrator's from now on: only the lake is ours to destroy.
func (s *session) release(ctx context.Context, conn *pgx.Conn) error {
	for _, statement := range []string{
		"REASSIGN OWNED BY " + ident(s.name) + " TO CURRENT_USER", "DROP OWNED BY " + ident(s.name),
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
