package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// seen is what Postgres has under the name of one object.
type seen struct {
	Name                         string
	Database, Role               bool
	DatabaseComment, RoleComment string
	Open, Login                  bool // the database takes connections, the role may log in
}

// Observe says in words what each tenant_db lacks outside, by object id; an object that lacks nothing is not
// in the answer. It changes nothing, and reads only what needs no tenant's secret.
func (c *Catalog) Observe(ctx context.Context, objects []store.Object) (map[string][]string, error) {
	names := make([]string, len(objects))
	for i, o := range objects {
		var err error
		if names[i], err = NameOf(o.ID); err != nil {
			return nil, err
		}
	}
	all, err := c.look(ctx, names)
	if err != nil {
		return nil, err
	}
	missing := map[string][]string{}
	for i, o := range objects {
		words, err := all[names[i]].lacks(o)
		if err != nil {
			return nil, err
		}
		exists, err := c.host.DataExists(ctx, o.ID)
		if err != nil {
			return nil, fmt.Errorf("look for data of %s: %w", o.Addr(), err)
		}
		if !exists {
			words = append(words, "its data directory "+c.host.DataPath(o.ID)+" is missing")
		}
		if len(words) > 0 {
			missing[o.ID] = words
		}
	}
	return missing, nil
}

// look reads all names with one query.
func (c *Catalog) look(ctx context.Context, names []string) (map[string]seen, error) {
	conn, err := c.connect(ctx, login{})
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, `
SELECT n.name, d.oid IS NOT NULL, r.oid IS NOT NULL,
	coalesce(pg_catalog.shobj_description(d.oid, 'pg_database'), ''), coalesce(pg_catalog.shobj_description(r.oid, 'pg_authid'), ''),
	coalesce(d.datallowconn, false), coalesce(r.rolcanlogin, false)
FROM pg_catalog.unnest($1::text[]) AS n(name)
LEFT JOIN pg_catalog.pg_database d ON d.datname = n.name
LEFT JOIN pg_catalog.pg_roles r ON r.rolname = n.name`, names)
	if err != nil {
		return nil, fmt.Errorf("look for databases: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[seen])
	if err != nil {
		return nil, fmt.Errorf("look for databases: %w", err)
	}
	all := make(map[string]seen, len(found))
	for _, s := range found {
		all[s.Name] = s
	}
	return all, nil
}

func (s seen) lacks(o store.Object) ([]string, error) {
	mark, err := markOf(o)
	if err != nil {
		return nil, err
	}
	var words []string
	for _, part := range []struct {
		what            string
		exists, usable  bool
		comment, closed string
	}{
		{"database", s.Database, s.Open, s.DatabaseComment, "takes no connections"},
		{"role", s.Role, s.Login, s.RoleComment, "may not log in"},
	} {
		switch {
		case !part.exists:
			words = append(words, fmt.Sprintf("Postgres %s %s is missing", part.what, s.Name))
		case !carries(part.comment, o.ID):
			words = append(words, fmt.Sprintf("Postgres %s %s exists, but is not ours: its comment lacks the id %s", part.what, s.Name, o.ID))
		case !part.usable:
			words = append(words, fmt.Sprintf("Postgres %s %s %s", part.what, s.Name, part.closed))
		case part.comment != mark:
			words = append(words, fmt.Sprintf("the comment on Postgres %s %s does not name it %s yet", part.what, s.Name, o.Addr().Path))
		}
	}
	return words, nil
}
