package guard

import (
	"context"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// Rights is a permission set made ready for one catalog. It does not change and may be shared.
type Rights struct {
	id      string // equal for equal sets on the same catalog
	catalog string // folded
	admin   bool
	grants  []grant
	rows    []rowPolicy
	columns []columnPolicy
}

// grant allows privileges on the tables it names.
type grant struct {
	pattern
	privileges []string
}

// all is every privilege.
const all = schema.AllPrivileges

// pattern names tables: a schema and a table in folded form, or every for all.
type pattern struct{ schema, table string }

const every = schema.Any

func newPattern(schema, table string) pattern {
	return pattern{schema: sqltext.Fold(schema), table: sqltext.Fold(table)}
}

func (p pattern) covers(schema, table string) bool {
	return p.inSchema(schema) && (p.table == every || p.table == table)
}

func (p pattern) inSchema(schema string) bool { return p.schema == every || p.schema == schema }

func (g grant) allows(privilege string) bool {
	return slices.Contains(g.privileges, all) || slices.Contains(g.privileges, privilege)
}

// Rights makes a permission set ready for one catalog. Policies that cannot be understood do not fail
// it: they make the tables that they name inaccessible.
func (g *Guard) Rights(ctx context.Context, p wire.Permissions, catalog string) (*Rights, error) {
	r := &Rights{catalog: sqltext.Fold(catalog), admin: p.Admin}
	r.id = r.catalog + " " + p.Hash()
	if r.admin {
		return r, nil
	}
	here := func(name, schema, table string) bool {
		return (name == every || sqltext.Fold(name) == r.catalog) && schema != "" && table != ""
	}
	for _, one := range p.Grants {
		if here(one.Catalog, one.Schema, one.Table) {
			r.grants = append(r.grants, grant{newPattern(one.Schema, one.Table), one.Privileges})
		}
	}
	for _, one := range p.Rows {
		if !here(one.Catalog, one.Schema, one.Table) {
			continue
		}
		policy, err := g.rowPolicy(ctx, one, catalog, p.Principal)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, policy)
	}
	for _, one := range p.Columns {
		if !here(one.Catalog, one.Schema, one.Table) {
			continue
		}
		policy, err := g.columnPolicy(ctx, one, catalog)
		if err != nil {
			return nil, err
		}
		r.columns = append(r.columns, policy)
	}
	return r, nil
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
	return r.admin || slices.ContainsFunc(r.grants, func(g grant) bool { return g.inSchema(schema) })
}

// NamesSchema reports whether a grant is about the schema itself and not only about a table in any.
func (r *Rights) NamesSchema(schema string) bool {
	schema = sqltext.Fold(schema)
	return r.admin || slices.ContainsFunc(r.grants, func(g grant) bool {
		return g.schema == schema || g.schema == every && g.table == every
	})
}

// SeesColumn reports whether the user sees the table and the column is not denied.
func (r *Rights) SeesColumn(schema, table, column string) bool {
	if !r.Sees(schema, table) {
		return false
	}
	p := r.protection(sqltext.Fold(schema), sqltext.Fold(table))
	return p == nil || !slices.Contains(p.denied, sqltext.Fold(column))
}

// Masked returns a query of the value that the user reads in a column's place, over an expression of the
// column's type. It is empty where no mask, or none that can be applied, is on the column.
func (r *Rights) Masked(schema, table, column, value string) string {
	p := r.protection(sqltext.Fold(schema), sqltext.Fold(table))
	if p == nil || p.bad {
		return ""
	}
	column = sqltext.Fold(column)
	i := slices.IndexFunc(p.masks, func(m columnPolicy) bool { return m.column == column })
	if i < 0 {
		return ""
	}
	const name = "m"
	return "SELECT (" + p.masks[i].mask.fill(name) + ") AS " + quote(column) +
		" FROM (SELECT " + value + " AS " + quote(column) + ") AS " + quote(alias(name, 0))
}

// full reports whether the user may do everything and nothing is hidden.
func (r *Rights) full() bool {
	return len(r.rows) == 0 && len(r.columns) == 0 && r.holds(all, every, every)
}

// holds reports whether the privilege is granted on the table, or with table "*" on all of the schema.
func (r *Rights) holds(privilege, in, table string) bool {
	if r.admin || slices.ContainsFunc(r.grants, func(g grant) bool {
		return g.covers(in, table) && g.allows(privilege)
	}) {
		return true
	}
	if privilege != all {
		return false
	}
	return r.lacks(schema.Privileges(), place{schema: in, table: table}) == ""
}

// protection is all that policies say about one table.
type protection struct {
	predicates []*template // OR-ed; none: every row is seen
	denied     []string    // columns, folded
	masks      []columnPolicy
	bad        bool // one of them cannot be applied
}

// protection returns what policies say about a table, whose names are folded; nil if they say nothing.
func (r *Rights) protection(schema, table string) *protection {
	var p *protection
	get := func() *protection {
		if p == nil {
			p = &protection{}
		}
		return p
	}
	for _, one := range r.rows {
		if one.covers(schema, table) {
			p := get()
			p.predicates = append(p.predicates, one.predicate)
			p.bad = p.bad || one.predicate == nil
		}
	}
	for _, one := range r.columns {
		if one.covers(schema, table) {
			get().column(one)
		}
	}
	return p
}

// column adds a policy. A denial counts before a mask, and two masks that differ are a denial.
func (p *protection) column(one columnPolicy) {
	p.bad = p.bad || one.bad
	if slices.Contains(p.denied, one.column) {
		return
	}
	i := slices.IndexFunc(p.masks, func(m columnPolicy) bool { return m.column == one.column })
	switch {
	case one.mask != nil && i < 0:
		p.masks = append(p.masks, one)
	case one.mask != nil && p.masks[i].mask.text == one.mask.text:
	default:
		if i >= 0 {
			p.masks = slices.Delete(p.masks, i, i+1)
		}
		p.denied = append(p.denied, one.column)
	}
}

// hidesRows reports whether rows of some table of the schema are hidden.
func (r *Rights) hidesRows(schema string) bool {
	return slices.ContainsFunc(r.rows, func(p rowPolicy) bool { return p.inSchema(schema) })
}

func (p *protection) hidesRows() bool { return p != nil && len(p.predicates) > 0 }

func (p *protection) hidesColumns() bool { return p != nil && len(p.denied)+len(p.masks) > 0 }

// identity tells apart the scopes in which the references of a statement may be resolved in other ways.
func (s Scope) identity(a *analysis) string {
	var b strings.Builder
	b.WriteString(s.Rights.id)
	b.WriteString("\x00" + strings.Join(s.schemas(), "\x00") + "\x00\x00")
	for _, r := range a.references {
		if s.Temporary[sqltext.Fold(r.table.Name)] {
			b.WriteByte('t')
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}
