package access

import (
	"cmp"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// role is what a role allows and how it restricts. Catalogs are folded as names of databases are, all other
// names as DuckDB compares them.
type role struct {
	grants  []wire.Permission
	rows    []wire.RowPolicy
	columns []wire.ColumnPolicy
	hidden  []string // blocks that must not be shown
}

func readRole(o *store.Object) *role {
	r := &role{hidden: o.Sensitive}
	each(o, "permission", func(k *schema.Kind, v cty.Value) {
		r.grants = append(r.grants, wire.Permission{
			Catalog: text(k, v, "catalog"), Schema: identifier(k, v, "schema"), Table: identifier(k, v, "table"),
			Privileges: set(v.GetAttr("privileges")),
		})
	})
	each(o, "row_policy", func(k *schema.Kind, v cty.Value) {
		r.rows = append(r.rows, wire.RowPolicy{
			Catalog: text(k, v, "catalog"), Schema: identifier(k, v, "schema"), Table: identifier(k, v, "table"),
			Predicate: verbatim(k, v, "predicate"),
		})
	})
	each(o, "column_policy", func(k *schema.Kind, v cty.Value) {
		r.columns = append(r.columns, wire.ColumnPolicy{
			Catalog: text(k, v, "catalog"), Schema: identifier(k, v, "schema"), Table: identifier(k, v, "table"),
			Column: identifier(k, v, "column"), Expression: verbatim(k, v, "expression"),
		})
	})
	return r
}

// each visits the blocks of that name, with their arguments as a kind.
func each(o *store.Object, name string, visit func(*schema.Kind, cty.Value)) {
	block, ok := o.Kind.Block(name)
	v := o.Spec.GetAttr(name)
	if !ok || v.IsNull() {
		return
	}
	of := &schema.Kind{Attrs: block.Attrs}
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		visit(of, item)
	}
}

// virtual returns the role of that name that every tenant has.
func virtual(name string) (*role, bool) {
	for _, v := range schema.VirtualRoles() {
		if v.Name == name {
			privileges := slices.Sorted(slices.Values(v.Privileges))
			return &role{grants: []wire.Permission{
				{Catalog: schema.Any, Schema: schema.Any, Table: schema.Any, Privileges: privileges},
			}}, true
		}
	}
	return nil, false
}

func (d *Directory) role(tenant, name string) (*role, bool) {
	if r, ok := virtual(name); ok {
		return r, true
	}
	r, ok := d.roles[path{tenant, name}]
	return r, ok
}

// permissionsOf unites what the user's roles allow on a database, and their policies. Equal rights give equal
// sets, whatever the roles they come from.
func (d *Directory) permissionsOf(u *user, database string) wire.Permissions {
	if u.system || u.admin {
		return wire.Permissions{Admin: true}
	}
	var p wire.Permissions
	for _, name := range d.rolesOf(u) {
		if r, ok := d.role(u.tenant, name); ok {
			r.narrow(database, &p)
		}
	}
	p.Grants = united(p.Grants)
	p.Rows = distinct(p.Rows, compareRows)
	p.Columns = distinct(p.Columns, compareColumns)
	if usesPrincipal(p) {
		p.Principal = &wire.Principal{User: u.name, Tenant: u.tenant, Roles: d.rolesOf(u), Groups: u.groups}
	}
	return p
}

// narrow adds what counts on a database, under its name.
func (r *role) narrow(database string, p *wire.Permissions) {
	counts := func(catalog *string) bool {
		if *catalog != schema.Any && *catalog != database {
			return false
		}
		*catalog = database
		return true
	}
	for _, g := range r.grants {
		if counts(&g.Catalog) {
			p.Grants = append(p.Grants, g)
		}
	}
	for _, row := range r.rows {
		if counts(&row.Catalog) {
			p.Rows = append(p.Rows, row)
		}
	}
	for _, column := range r.columns {
		if counts(&column.Catalog) {
			p.Columns = append(p.Columns, column)
		}
	}
}

// united makes one grant of those on the same tables.
func united(grants []wire.Permission) []wire.Permission {
	type place struct{ catalog, schema, table string }
	allowed := map[place]map[string]bool{}
	for _, g := range grants {
		at := place{g.Catalog, g.Schema, g.Table}
		if allowed[at] == nil {
			allowed[at] = map[string]bool{}
		}
		for _, privilege := range g.Privileges {
			allowed[at][privilege] = true
		}
	}
	var out []wire.Permission
	for at, privileges := range allowed {
		list := slices.Sorted(maps.Keys(privileges))
		if privileges[schema.AllPrivileges] {
			list = []string{schema.AllPrivileges}
		}
		out = append(out, wire.Permission{Catalog: at.catalog, Schema: at.schema, Table: at.table, Privileges: list})
	}
	slices.SortFunc(out, func(a, b wire.Permission) int {
		return cmp.Or(cmp.Compare(a.Catalog, b.Catalog), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table))
	})
	return out
}

func distinct[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

func compareRows(a, b wire.RowPolicy) int {
	return cmp.Or(cmp.Compare(a.Catalog, b.Catalog), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table),
		cmp.Compare(a.Predicate, b.Predicate))
}

func compareColumns(a, b wire.ColumnPolicy) int {
	return cmp.Or(cmp.Compare(a.Catalog, b.Catalog), cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table),
		cmp.Compare(a.Column, b.Column), cmp.Compare(a.Expression, b.Expression))
}

// usesPrincipal reports whether a policy says whom it is evaluated for. One that cannot be read may.
func usesPrincipal(p wire.Permissions) bool {
	return slices.ContainsFunc(p.Rows, func(r wire.RowPolicy) bool { return namesPrincipal(r.Predicate) }) ||
		slices.ContainsFunc(p.Columns, func(c wire.ColumnPolicy) bool { return namesPrincipal(c.Expression) })
}

func namesPrincipal(sql string) bool {
	tokens, err := sqltext.Tokens(sql)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(tokens, func(t sqltext.Token) bool {
		return slices.ContainsFunc(wire.PrincipalWords(), t.Is)
	})
}
