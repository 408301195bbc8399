package guard

import "github.com/qod-io/qod/runtime/sqltext"

// authorize judges a statement by the rights of a user.
func authorize(a *analysis, s Scope) *Refusal {
	if a.open {
		return nil
	}
	for _, t := range a.Tables {
		schema, table := sqltext.Fold(t.Schema), sqltext.Fold(t.Name)
		if schema == "" {
			schema = s.schemas()[0]
		}
		if table == "" {
			table = every
		}
		if !s.Rights.holds(t.Privilege, schema, table) {
			return refuse(NotAuthorized, "table %q does not exist or you are not authorized", t.Name)
		}
	}
	if s.Rights.Empty() {
		return refuse(NotAuthorized, "no permission on database %q", s.Catalog)
	}
	return nil
}

// schemas are the schemas of the search path, folded.
func (s Scope) schemas() []string {
	if len(s.Path) == 0 {
		return []string{defaultSchema}
	}
	out := make([]string, len(s.Path))
	for i, name := range s.Path {
		out[i] = sqltext.Fold(name)
	}
	return out
}
