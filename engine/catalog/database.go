package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/crash"
)

// database is a database as it is.
type database struct {
	owner   string
	comment string
	open    bool // connections are let in
	public  bool // PUBLIC has some right on it
}

func (s *session) readDatabase(ctx context.Context, name string) (database, bool, error) {
	var d database
	err := s.QueryRow(ctx, `
SELECT pg_catalog.pg_get_userbyid(datdba), coalesce(pg_catalog.shobj_description(oid, 'pg_database'), ''), datallowconn,
	EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(datacl, pg_catalog.acldefault('d', datdba))) a WHERE a.grantee = 0)
FROM pg_catalog.pg_database WHERE datname = $1`, name).Scan(&d.owner, &d.comment, &d.open, &d.public)
	if errors.Is(err, pgx.ErrNoRows) {
		return database{}, false, nil
	}
	if err != nil {
		return database{}, false, fmt.Errorf("read database %s: %w", name, err)
	}
	return d, true, nil
}

// ours returns the object's database, or ErrForeign when another has its name.
func (s *session) ours(ctx context.Context) (database, bool, error) {
	have, exists, err := s.readDatabase(ctx, s.name)
	if err == nil && exists && !carries(have.comment, s.object.ID) {
		err = fmt.Errorf("use database %s: %w", s.name, ErrForeign)
	}
	return have, exists, err
}

// draft is the name of a database that has no comment yet.
func (s *session) draft() string { return s.name + "_new" }

// drafted says whether there is a draft. Only the role makes it ours: the role carries the id.
func (s *session) drafted(ctx context.Context) (bool, error) {
	have, exists, err := s.readDatabase(ctx, s.draft())
	if err == nil && exists && have.owner != s.name {
		err = fmt.Errorf("use database %s: %w", s.draft(), ErrForeign)
	}
	return exists, err
}

// ensureDatabase makes the database for the role, or brings it up to date.
func (s *session) ensureDatabase(ctx context.Context) error {
	have, exists, err := s.ours(ctx)
	if err != nil {
		return err
	}
	if exists {
		return s.alignDatabase(ctx, have)
	}
	drafted, err := s.drafted(ctx)
	if err != nil {
		return err
	}
	if !drafted {
		// The locale makes names sort and compare the same on every server.
		if err := s.do(ctx, "CREATE DATABASE "+ident(s.draft())+" OWNER "+ident(s.name)+
			" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' ALLOW_CONNECTIONS false"); err != nil {
			return fmt.Errorf("make database %s: %w", s.draft(), err)
		}
	}
	crash.Point("catalog.database-created")
	err = s.together(ctx,
		"COMMENT ON DATABASE "+ident(s.draft())+" IS "+literal(s.mark),
		"REVOKE ALL ON DATABASE "+ident(s.draft())+" FROM PUBLIC",
		"ALTER DATABASE "+ident(s.draft())+" RENAME TO "+ident(s.name),
		"ALTER DATABASE "+ident(s.name)+" ALLOW_CONNECTIONS true")
	if err != nil {
		return fmt.Errorf("name database %s: %w", s.name, err)
	}
	crash.Point("catalog.database-named")
	s.info("database made")
	return nil
}

func (s *session) alignDatabase(ctx context.Context, have database) error {
	var statements []string
	if have.owner != s.name {
		statements = append(statements, "ALTER DATABASE "+ident(s.name)+" OWNER TO "+ident(s.name))
	}
	if have.comment != s.mark {
		statements = append(statements, "COMMENT ON DATABASE "+ident(s.name)+" IS "+literal(s.mark))
	}
	if have.public {
		statements = append(statements, "REVOKE ALL ON DATABASE "+ident(s.name)+" FROM PUBLIC")
	}
	if !have.open {
		statements = append(statements, "ALTER DATABASE "+ident(s.name)+" ALLOW_CONNECTIONS true")
	}
	if err := s.together(ctx, statements...); err != nil {
		return fmt.Errorf("bring database %s up to date: %w", s.name, err)
	}
	return nil
}

// together runs statements in one transaction.
func (s *session) together(ctx context.Context, statements ...string) error {
	return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// ensureSchema gives the schema public of the database to the role and closes it to all others. It runs
// as the administrator, who must run no code of a tenant: these statements and catalogs run none.
func (s *session) ensureSchema(ctx context.Context) error {
	err := s.in(ctx, login{database: s.name}, func(conn *pgx.Conn) error {
		var owner string
		var public bool
		err := conn.QueryRow(ctx, `
SELECT pg_catalog.pg_get_userbyid(nspowner),
	EXISTS (SELECT FROM pg_catalog.aclexplode(coalesce(nspacl, pg_catalog.acldefault('n', nspowner))) a WHERE a.grantee = 0)
FROM pg_catalog.pg_namespace WHERE nspname = 'public'`).Scan(&owner, &public)
		var statements []string
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			statements = append(statements, "CREATE SCHEMA public AUTHORIZATION "+ident(s.name))
		case err != nil:
			return err
		case owner != s.name:
			statements = append(statements, "ALTER SCHEMA public OWNER TO "+ident(s.name))
		}
		if public {
			statements = append(statements, "REVOKE ALL ON SCHEMA public FROM PUBLIC")
		}
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("close schema public of %s: %w", s.name, err)
	}
	crash.Point("catalog.schema-closed")
	return nil
}
