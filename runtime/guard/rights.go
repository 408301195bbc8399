package guard

import (
	"context"
	"slices"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// Rights is a permission set made ready for one catalog. It does not change and may be shared.
type Rights struct {
	id      string // equal for equal sets on the same catalog
	catalog string // folded
	admin   bool
	grants  []grant
}

// grant allows privileges on the tables it names.
type grant struct {
	pattern
	privileges []string
}

// pattern names tables: a schema and a table in folded form, or "*" for all.
type pattern struct{ schema, table string }

// every is the part of a pattern that names all.
const every = "*"

func (p pattern) covers(schema, table string) bool {
	return (p.schema == every || p.schema == schema) && (p.table == every || p.table == table)
}

func (g grant) allows(privilege string) bool {
	return slices.Contains(g.privileges, "all") || slices.Contains(g.privileges, privilege)
}

// Rights makes a permission set ready for one catalog. Policies that cannot be understood do not fail
// it: they make the tables they name inaccessible.
func (g *Guard) Rights(_ context.Context, p wire.Permissions, catalog string) (*Rights, error) {
	r := &Rights{id: p.Hash(), catalog: sqltext.Fold(catalog), admin: p.Admin}
	for _, one := range p.Grants {
		if one.Catalog != every && sqltext.Fold(one.Catalog) != r.catalog || one.Schema == "" || one.Table == "" {
			continue
		}
		r.grants = append(r.grants, grant{patternOf(one.Schema, one.Table), one.Privileges})
	}
	return r, nil
}

func patternOf(schema, table string) pattern {
	return pattern{schema: sqltext.Fold(schema), table: sqltext.Fold(table)}
}

// Admin reports whether nothing is hidden from the user.
func (r *Rights) Admin() bool { return r.admin }

// Empty reports whether nothing at all may be touched.
func (r *Rights) Empty() bool { return !r.admin && len(r.grants) == 0 }

// Sees reports whether there is any privilege on the table.
func (r *Rights) Sees(schema, table string) bool {
	schema, table = sqltext.Fold(schema), sqltext.Fold(table)
	return r.admin || slices.ContainsFunc(r.grants, func(g grant) bool { return g.covers(schema, table) })
}

// SeesSchema reports whether there is any privilege on something in the schema.
func (r *Rights) SeesSchema(schema string) bool {
	schema = sqltext.Fold(schema)
	return r.admin || slices.ContainsFunc(r.grants, func(g grant) bool {
		return g.schema == every || g.schema == schema
	})
}

// SeesColumn reports whether the user sees the table and the column is not denied.
func (r *Rights) SeesColumn(schema, table, _ string) bool { return r.Sees(schema, table) }

// holds reports whether the privilege is granted on the table, or with table "*" on all of the schema.
func (r *Rights) holds(privilege, schema, table string) bool {
	return r.admin || slices.ContainsFunc(r.grants, func(g grant) bool {
		return g.covers(schema, table) && g.allows(privilege)
	})
}
