package guard

import (
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

const (
	informationSchema = "information_schema"
	temporary         = "temp"
	defaultSchema     = "main"
	// hiddenPrefix begins the names of the databases in which DuckLake keeps its metadata.
	hiddenPrefix = "__ducklake"
)

// hidden reports whether a name is that of DuckLake's metadata, in any spelling.
func hidden(name string) bool {
	return len(name) >= len(hiddenPrefix) && sqltext.Fold(name[:len(hiddenPrefix)]) == hiddenPrefix
}

func hiddenName(name string) *Refusal {
	return refuse(BadName, "%q is not accessible: names that begin with "+hiddenPrefix+" are the catalog's own", name)
}

// fileLike reports whether DuckDB could take the name for a file's.
func fileLike(name string) bool {
	return strings.ContainsAny(name, `/\*?[]:~.`) || name == ""
}

// resolver judges names for one lake.
type resolver struct {
	catalog string // folded
	builtin *builtin
}

// table judges a table that a statement reads or, with another privilege than select, changes.
func (r resolver) table(t Table) (Table, *Refusal) {
	catalog, schema, name := sqltext.Fold(t.Catalog), sqltext.Fold(t.Schema), sqltext.Fold(t.Name)
	for _, part := range []string{t.Catalog, t.Schema, t.Name} {
		if hidden(part) {
			return t, hiddenName(part)
		}
		if part != "" && fileLike(part) {
			return t, refuse(BadName, "%q is not a table's name: files cannot be read; "+
				"names may not hold any of / \\ * ? [ ] : ~ .", part)
		}
	}
	if name == "" {
		return t, refuse(BadName, "a table without a name")
	}
	if catalog == "" && (schema == r.catalog || schema == temporary) {
		t.Catalog, t.Schema = t.Schema, ""
		catalog, schema = schema, ""
	}
	if schema == informationSchema {
		return t, r.information(t, catalog, name)
	}
	if refusal := r.place(catalog, schema); refusal != nil {
		return t, refusal
	}
	if r.builtin.views[name] || strings.HasPrefix(name, "duckdb_") || strings.HasPrefix(name, "pragma_") {
		return t, refuse(BadName, "system view %q is not accessible; information_schema is", t.Name)
	}
	if catalog == "" && schema != "" && r.builtin.files[name] {
		return t, refuse(BadName, "%q reads like a file's name; write database.schema.%s for a table of that name",
			schema+"."+name, name)
	}
	return t, nil
}

// information judges a view of information_schema.
func (r resolver) information(t Table, catalog, name string) *Refusal {
	switch {
	case catalog != "" && catalog != "system" && catalog != r.catalog:
		return refuse(BadName, "database %q is not accessible", t.Catalog)
	case t.Privilege != "select":
		return refuse(BadName, "information_schema cannot be changed")
	case !r.builtin.schemata[name]:
		return refuse(BadName, "there is no %q in information_schema", t.Name)
	}
	return nil
}

// place judges the catalog and schema of a table, both folded.
func (r resolver) place(catalog, schema string) *Refusal {
	if catalog != "" && catalog != r.catalog && catalog != temporary {
		return refuse(BadName, "database %q is not accessible; %q and temp are", catalog, r.catalog)
	}
	switch schema {
	case "system", "memory", "pg_catalog":
		return refuse(BadName, "%q is not accessible; information_schema is", schema)
	}
	return nil
}

// schema judges [catalog.]schema, or for select a catalog alone.
func (r resolver) schema(parts []string, privilege string) (Table, *Refusal) {
	t := Table{Schema: parts[len(parts)-1], Privilege: privilege}
	if len(parts) == 2 {
		t.Catalog = parts[0]
	}
	for _, part := range parts {
		if hidden(part) {
			return t, hiddenName(part)
		}
		if fileLike(part) {
			return t, refuse(BadName, "%q is not a schema's name", part)
		}
	}
	switch name := sqltext.Fold(t.Schema); {
	case name == informationSchema:
		return t, refuse(BadName, "information_schema cannot be changed or made the default")
	case t.Catalog != "" || name != r.catalog && name != temporary:
	case privilege == "create":
		return t, refuse(BadName, "a schema %q would have the name of a database", t.Schema)
	case privilege == "select":
		t.Catalog, t.Schema = t.Schema, ""
	}
	return t, r.place(sqltext.Fold(t.Catalog), sqltext.Fold(t.Schema))
}

// dataType judges the name of a type.
func (r resolver) dataType(catalog, schema, name string) *Refusal {
	c, s := sqltext.Fold(catalog), sqltext.Fold(schema)
	if c != "" && c != "system" || s != "" && s != "main" && s != "pg_catalog" {
		return refuse(BadName, "type %q of another schema is not accessible", name)
	}
	if !r.builtin.types[sqltext.Fold(name)] {
		return refuse(BadName, "there is no type %q; only DuckDB's own may be used", name)
	}
	return nil
}
