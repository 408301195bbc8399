package postgres

import (
	"context"
	"fmt"
)

// Rights says in words what the login of this store may not do and qod needs: nothing when all is well.
// It writes nothing.
func (s *Store) Rights(ctx context.Context) ([]string, error) {
	var recovering, creates bool
	var closed, user string
	err := s.pool.QueryRow(ctx, `
SELECT current_user, pg_is_in_recovery(),
	(SELECT rolsuper OR rolcreatedb AND rolcreaterole FROM pg_roles WHERE rolname = current_user),
	(SELECT coalesce(string_agg(c.relname, ', ' ORDER BY c.relname), '')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = current_schema() AND c.relname LIKE 'qodstate\_%' AND c.relkind IN ('r', 'p') AND NOT (
		has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
		AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE')))`,
	).Scan(&user, &recovering, &creates, &closed)
	if err != nil {
		return nil, fmt.Errorf("look up rights: %w", err)
	}
	var missing []string
	if recovering {
		missing = append(missing, "the server is a standby and takes no writes")
	}
	if !creates {
		missing = append(missing, fmt.Sprintf("user %s may not create databases and roles", user))
	}
	if closed != "" {
		missing = append(missing, fmt.Sprintf("user %s may not write to %s", user, closed))
	}
	return missing, nil
}
