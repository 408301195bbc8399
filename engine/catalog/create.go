package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/qod-io/qod/engine/crash"
	"github.com/qod-io/qod/engine/store"
)

const invalidPassword = "28P01"

// Create makes whatever is missing of the tenant_db's outside: role, database, lake, default schema. It
// also brings comments up to date after a renaming. secret returns the secret that Secrets made. Calls for
// one object wait for each other.
func (c *Catalog) Create(ctx context.Context, o store.Object, secret func(attr string) ([]byte, error)) error {
	password, err := secret(PasswordAttr)
	if err != nil {
		return fmt.Errorf("read catalog password of %s: %w", o.Addr(), err)
	}
	lake, err := c.LakeOf(o, password)
	if err != nil {
		return err
	}
	return c.with(ctx, o, func(s *session) error {
		if err := s.keepsData(ctx, o); err != nil {
			return err
		}
		if err := s.ensureRole(ctx, password); err != nil {
			return err
		}
		if err := s.ensureDatabase(ctx); err != nil {
			return err
		}
		if err := s.ensureSchema(ctx); err != nil {
			return err
		}
		return s.ensureLake(ctx, lake)
	})
}

// keepsData refuses to make a database in place of one that was there: an empty catalog over the files
// of a full one would hide them, and stand in the way of a restore.
func (s *session) keepsData(ctx context.Context, o store.Object) error {
	if o.Status.Phase != store.Ready {
		return nil
	}
	_, exists, err := s.ours(ctx)
	if err != nil || exists {
		return err
	}
	return fmt.Errorf("database %s: %w", s.name, ErrLost)
}

// ensureLake has the Host make the lake unless all of it is there.
func (s *session) ensureLake(ctx context.Context, lake Lake) error {
	missing, err := s.missingOfLake(ctx, lake)
	if err != nil || missing == "" {
		return err
	}
	if err := s.catalog.host.InitLake(ctx, lake); err != nil {
		return fmt.Errorf("init lake %s: %w", s.name, err)
	}
	crash.Point("catalog.lake-made")
	if missing, err = s.missingOfLake(ctx, lake); err != nil {
		return err
	}
	if missing != "" {
		return fmt.Errorf("init lake %s: %s is still missing", s.name, missing)
	}
	s.info("lake made")
	return nil
}

// missingOfLake names the first part of the lake that is not there. It looks with the lake's own role, for
// what it looks at is the tenant's to change; so it also proves that the role can log in.
func (s *session) missingOfLake(ctx context.Context, lake Lake) (string, error) {
	missing := ""
	look := func(conn *pgx.Conn) error {
		var err error
		missing, err = missingTables(ctx, conn, lake.DefaultSchema)
		return err
	}
	as := login{database: lake.Database, user: lake.User, password: lake.Password}
	err := s.in(ctx, as, look)
	if refused(err) {
		if err := s.setPassword(ctx, []byte(lake.Password)); err != nil {
			return "", err
		}
		err = s.in(ctx, as, look)
	}
	if err != nil {
		return "", fmt.Errorf("look into lake %s: %w", s.name, err)
	}
	exists, err := s.catalog.host.DataExists(ctx, lake.DatabaseID)
	if err != nil {
		return "", fmt.Errorf("look for data of %s: %w", s.name, err)
	}
	if !exists {
		return "its data directory", nil
	}
	return missing, nil
}

func refused(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == invalidPassword
}

func missingTables(ctx context.Context, conn *pgx.Conn, defaultSchema string) (string, error) {
	var tables bool
	err := conn.QueryRow(ctx, `
SELECT pg_catalog.to_regclass('public.ducklake_metadata') IS NOT NULL
	AND pg_catalog.to_regclass('public.ducklake_schema') IS NOT NULL`).Scan(&tables)
	if err != nil {
		return "", err
	}
	if !tables {
		return "its metadata", nil
	}
	var named bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM public.ducklake_schema WHERE schema_name = $1 AND end_snapshot IS NULL)",
		defaultSchema).Scan(&named)
	if err != nil {
		return "", err
	}
	if !named {
		return "schema " + defaultSchema, nil
	}
	return "", nil
}
