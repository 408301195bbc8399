package guard

import (
	"slices"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// authorize judges a statement by the permissions of a user. In this form a grant is of everything on
// a database; what is granted in a finer way does not count, as it could not be enforced.
func authorize(a *analysis, s Scope) *Refusal {
	if a.open || Reaches(s.Permissions, s.Catalog) {
		return nil
	}
	return refuse(NoPermission, "no permission on database %q", s.Catalog)
}

// Reaches reports whether the permissions are of everything on the catalog, which any statement that
// touches it takes.
func Reaches(p wire.Permissions, catalog string) bool {
	return p.Admin || slices.ContainsFunc(p.Grants, func(one wire.Permission) bool { return grants(one, catalog) })
}

// grants reports whether p grants everything on the catalog.
func grants(p wire.Permission, catalog string) bool {
	return (p.Catalog == "*" || sqltext.Fold(p.Catalog) == sqltext.Fold(catalog)) &&
		p.Schema == "*" && p.Table == "*" && slices.Contains(p.Privileges, "all")
}
