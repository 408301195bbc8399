package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/crash"
)

// connectionLimit leaves room for others when one lake's nodes open all the connections they can.
const connectionLimit = 100

// role is a role as it is.
type role struct {
	plain   bool // as we make it: may log in, and nothing else
	comment string
}

func (s *session) readRole(ctx context.Context) (role, bool, error) {
	var r role
	err := s.QueryRow(ctx, `
SELECT rolcanlogin AND NOT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls) AND rolconnlimit = $2,
	coalesce(pg_catalog.shobj_description(oid, 'pg_authid'), '')
FROM pg_catalog.pg_roles WHERE rolname = $1`, s.name, connectionLimit).Scan(&r.plain, &r.comment)
	if errors.Is(err, pgx.ErrNoRows) {
		return role{}, false, nil
	}
	if err != nil {
		return role{}, false, fmt.Errorf("read role %s: %w", s.name, err)
	}
	if !carries(r.comment, s.object.ID) {
		return role{}, false, fmt.Errorf("use role %s: %w", s.name, ErrForeign)
	}
	return r, true, nil
}

// ensureRole makes the role, with the comment that proves it ours, or brings it up to date.
func (s *session) ensureRole(ctx context.Context, password []byte) error {
	have, exists, err := s.readRole(ctx)
	if err != nil {
		return err
	}
	switch {
	case !exists:
		if err := s.makeRole(ctx, password); err != nil {
			return fmt.Errorf("make role %s: %w", s.name, err)
		}
		s.info("role made")
	case !have.plain:
		if err := s.do(ctx, "ALTER ROLE "+ident(s.name)+s.rights()); err != nil {
			return fmt.Errorf("restrict role %s: %w", s.name, err)
		}
	}
	crash.Point("catalog.role-created")
	if exists && have.comment != s.mark {
		if err := s.do(ctx, "COMMENT ON ROLE "+ident(s.name)+" IS "+literal(s.mark)); err != nil {
			return fmt.Errorf("comment on role %s: %w", s.name, err)
		}
	}
	return nil
}

// rights are those of a lake's role. Only a superuser may name the last three; without one they are off
// unless a superuser set them.
func (s *session) rights() string {
	rights := fmt.Sprintf(" LOGIN NOCREATEDB NOCREATEROLE CONNECTION LIMIT %d", connectionLimit)
	if s.super {
		rights += " NOSUPERUSER NOREPLICATION NOBYPASSRLS"
	}
	return rights
}

func (s *session) makeRole(ctx context.Context, password []byte) error {
	kept, err := verifier(password)
	if err != nil {
		return err
	}
	statements := []string{
		"CREATE ROLE " + ident(s.name) + s.rights() + " PASSWORD " + literal(kept),
		"COMMENT ON ROLE " + ident(s.name) + " IS " + literal(s.mark),
	}
	if !s.super { // to make a database for the role takes being a member of it
		statements = append(statements, "GRANT "+ident(s.name)+" TO CURRENT_USER")
	}
	return s.together(ctx, statements...)
}

// setPassword makes the role's password the one that is kept as the object's secret.
func (s *session) setPassword(ctx context.Context, password []byte) error {
	kept, err := verifier(password)
	if err != nil {
		return err
	}
	if err := s.do(ctx, "ALTER ROLE "+ident(s.name)+" PASSWORD "+literal(kept)); err != nil {
		return fmt.Errorf("set password of role %s: %w", s.name, err)
	}
	s.info("password of role set")
	return nil
}
