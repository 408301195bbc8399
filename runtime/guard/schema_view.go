package guard

import (
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// catalogView says which columns of a view of information_schema tell what a row is about, and which
// hold definitions.
type catalogView struct {
	catalog, schema, table, column string
	hidden                         []string
}

// ofSchemas reports whether the rows are about schemas and not about what is in them.
func (v catalogView) ofSchemas() bool { return v.schema != "" && v.table == "" }

// catalogViews returns the views of information_schema that can be filtered, by name.
func catalogViews() map[string]catalogView {
	table := catalogView{catalog: "table_catalog", schema: "table_schema", table: "table_name"}
	column := table
	column.column = "column_name"
	with := func(v catalogView, hidden ...string) catalogView {
		v.hidden = hidden
		return v
	}
	return map[string]catalogView{
		"tables":                  table,
		"columns":                 with(column, "column_default", "generation_expression"),
		"views":                   with(table, "view_definition"),
		"schemata":                {catalog: "catalog_name", schema: "schema_name", hidden: []string{"sql_path"}},
		"table_constraints":       table,
		"constraint_table_usage":  table,
		"key_column_usage":        column,
		"constraint_column_usage": with(column, "constraint_text"),
		"character_sets":          {},
	}
}

// filter puts what the user sees of the catalog in the place of a view of information_schema or of SHOW.
func (w *rewriter) filter(r reference) *Refusal {
	if refusal := w.naming(r); refusal != nil {
		return refusal
	}
	if r.table.Name == "" || r.at < 0 {
		return w.showTables()
	}
	view, ok := catalogViews()[sqltext.Fold(r.table.Name)]
	if !ok {
		return refuse(NotAllowed, "%q of information_schema is not accessible: it cannot be reduced to what you may see", r.table.Name)
	}
	first, end, ok := w.find(r)
	if !ok {
		return tangled()
	}
	if w.done(w.words[first].Start) {
		return nil
	}
	sql := "SELECT *"
	if len(view.hidden) > 0 {
		parts := make([]string, len(view.hidden))
		for i, one := range view.hidden {
			parts[i] = "nullif(" + one + ", " + one + ") AS " + one // NULL of the column's type
		}
		sql += " REPLACE (" + strings.Join(parts, ", ") + ")"
	}
	sql += " FROM system.information_schema." + sqltext.Fold(r.table.Name)
	tables := 1
	if view.catalog != "" {
		sql += " WHERE " + w.scope.Rights.visible(view) + barrier
	}
	if view.ofSchemas() {
		tables++
	}
	w.replace(r, first, end, sql, tables)
	return nil
}

// showTables puts a query in the place of every SHOW TABLES. DuckDB's tree does not say where they are.
func (w *rewriter) showTables() *Refusal {
	for i := 0; i+1 < len(w.words); i++ {
		if !w.words[i].Is("show") || !w.words[i+1].Is("tables") || i > 0 && (w.words[i-1].IsPunct(".") || w.words[i-1].Is("as")) {
			continue
		}
		s := span{w.words[i].Start, w.words[i+1].End}
		if w.done(s.from) {
			continue
		}
		within := w.inPath()
		if i+3 < len(w.words) && w.words[i+2].Is("from") {
			parts := []string{w.words[i+3].Name()}
			end := i + 4
			if end+1 < len(w.words) && w.words[end].IsPunct(".") {
				parts = append(parts, w.words[end+1].Name())
				end += 2
			}
			within, s.to = w.inSchema(parts), w.words[end-1].End
		}
		view := catalogViews()["tables"]
		w.put(edit{span: s, tables: 1, text: `SELECT "name" FROM (SELECT table_name AS "name" FROM system.information_schema.tables WHERE ` +
			within + " AND " + w.scope.Rights.visible(view) + barrier + `) ORDER BY "name"`})
	}
	return nil
}

// inPath is the condition that a table is in the search path.
func (w *rewriter) inPath() string {
	quoted := make([]string, 0, len(w.scope.Path)+1)
	for _, one := range w.scope.schemas() {
		quoted = append(quoted, literal(one))
	}
	return "(table_catalog = 'temp' OR " + folded("table_schema") + " IN (" + strings.Join(quoted, ", ") + "))"
}

// inSchema is the condition that a table is in [catalog.]schema or in the default schema of a catalog.
func (w *rewriter) inSchema(parts []string) string {
	last := sqltext.Fold(parts[len(parts)-1])
	switch {
	case sqltext.Fold(parts[0]) == temporary:
		return "table_catalog = 'temp'"
	case len(parts) == 1 && last == sqltext.Fold(w.scope.Catalog):
		last = w.scope.schemas()[0]
	}
	return "(table_catalog != 'temp' AND " + folded("table_schema") + " = " + literal(last) + ")"
}

// folded is an expression that folds a name as DuckDB does.
func folded(column string) string {
	return "translate(" + column + ", 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')"
}

// visible is the condition that the user sees what a row is about. Temporary objects are the session's. A
// schema is seen by a privilege on all that is in it, or on a table that is there.
func (r *Rights) visible(v catalogView) string {
	out := r.granted(v)
	if v.ofSchemas() {
		tables := catalogViews()["tables"]
		out = "(" + out + " OR " + r.here(v) + " AND " + v.schema + " IN (SELECT " + tables.schema +
			" FROM system.information_schema.tables WHERE " + r.granted(tables) + "))"
	}
	if v.column != "" {
		for _, one := range r.columns {
			if one.mask == nil || one.bad {
				out += " AND NOT (" + one.condition(v) + " AND " + folded(v.column) + " = " + literal(one.column) + ")"
			}
		}
	}
	return "(" + v.catalog + " = 'temp' OR " + out + ")"
}

// here is the condition that a row is about the catalog of the rights.
func (r *Rights) here(v catalogView) string { return folded(v.catalog) + " = " + literal(r.catalog) }

// granted is the condition that a grant covers what a row is about; a schema, if it covers all in it.
func (r *Rights) granted(v catalogView) string {
	seen := make([]string, 0, len(r.grants))
	for _, g := range r.grants {
		if v.ofSchemas() && g.table != every {
			continue
		}
		if one := g.condition(v); !slices.Contains(seen, one) {
			seen = append(seen, one)
		}
	}
	if len(seen) == 0 {
		seen = append(seen, "false")
	}
	return r.here(v) + " AND (" + strings.Join(seen, " OR ") + ")"
}

// condition is the pattern as a condition on a row.
func (p pattern) condition(v catalogView) string {
	var parts []string
	if p.schema != every {
		parts = append(parts, folded(v.schema)+" = "+literal(p.schema))
	}
	if p.table != every {
		parts = append(parts, folded(v.table)+" = "+literal(p.table))
	}
	if len(parts) == 0 {
		return "true"
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}
