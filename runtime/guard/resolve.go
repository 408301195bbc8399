package guard

import (
	"slices"

	"github.com/qod-io/qod/runtime/sqltext"
)

// place is a table or view that a name may mean, its names folded.
type place struct {
	schema, table string
	temporary     bool
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

// resolve returns what a table's name means in the session: one place, or those where DuckDB looks for
// it, in order. After the schemas of the search path it looks into main for a name of one part.
// Temporary objects come before all else for names that could mean them: x and main.x.
func (s Scope) resolve(t Table) []place {
	catalog, schema, table := sqltext.Fold(t.Catalog), sqltext.Fold(t.Schema), sqltext.Fold(t.Name)
	switch {
	case catalog == temporary, s.shadowed(t):
		return []place{{schema: defaultSchema, table: table, temporary: true}}
	case schema != "":
		return []place{{schema: schema, table: table}}
	}
	path := s.schemas()
	if catalog == "" && !slices.Contains(path, defaultSchema) {
		path = append(path, defaultSchema)
	}
	out := make([]place, len(path))
	for i, one := range path {
		out[i] = place{schema: one, table: table}
	}
	return out
}

// shadowed reports whether a name that does not say so means a temporary object of the session.
func (s Scope) shadowed(t Table) bool {
	return t.Catalog == "" && (t.Schema == "" || sqltext.Fold(t.Schema) == defaultSchema) &&
		s.Temporary[sqltext.Fold(t.Name)]
}

// created returns where CREATE makes a table: in the first schema of the search path if it names none.
func (s Scope) created(t Table, temp bool) place {
	p := place{schema: sqltext.Fold(t.Schema), table: sqltext.Fold(t.Name)}
	if temp || sqltext.Fold(t.Catalog) == temporary {
		return place{schema: defaultSchema, table: p.table, temporary: true}
	}
	if p.schema == "" {
		p.schema = s.schemas()[0]
	}
	return p
}
