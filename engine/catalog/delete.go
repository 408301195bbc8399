package catalog

import (
	"context"
	"fmt"

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
		if err := s.do(ctx, "DROP ROLE "+ident(s.name)); err != nil {
			return fmt.Errorf("drop role %s: %w", s.name, err)
		}
	}
	crash.Point("catalog.role-dropped")
	return nil
}
