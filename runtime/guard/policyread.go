package guard

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/qod-io/qod/runtime/sqltext"
)

// policyReader finds out what the names in a policy mean and makes the slots for them. It knows less
// than DuckDB does: what it does not know makes the policy unusable. All nodes, functions and types have
// been looked at before.
type policyReader struct {
	*template
	words   words
	catalog string
	mask    string // the only column that may be named; empty in predicates
	shift   int    // of offsets in the tree
}

// layer is the tables of one query of a policy, and the query around it.
type layer struct {
	names []tableName
	outer *layer
}

// tableName says by what a table can be named, in folded form, and by which alias it is known.
type tableName struct {
	catalog, schema, table string
	own                    string // its own alias in the policy
	alias                  int
}

// read reads the tree of SELECT (expression).
func (r *policyReader) read(tree string, about pattern) bool {
	var root struct {
		Statements []struct {
			Node map[string]any `json:"node"`
		} `json:"statements"`
	}
	if err := json.Unmarshal([]byte(tree), &root); err != nil || len(root.Statements) != 1 {
		return false
	}
	list, ok := root.Statements[0].Node["select_list"].([]any)
	from, _ := root.Statements[0].Node["from_table"].(map[string]any)
	if !ok || len(list) != 1 || from["type"] != "EMPTY" {
		return false
	}
	table := tableName{catalog: sqltext.Fold(r.catalog), schema: about.schema, table: about.table}
	return r.expression(list[0], &layer{names: []tableName{table}})
}

// expression reads any value of the tree that stands in an expression.
func (r *policyReader) expression(value any, l *layer) bool {
	switch v := value.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !r.expression(one, l) })
	case map[string]any:
		return r.node(v, l)
	}
	return true
}

func (r *policyReader) node(v map[string]any, l *layer) bool {
	switch v["class"] {
	case "COLUMN_REF":
		return r.column(v, l)
	case "CONSTANT":
		return true
	case "SUBQUERY":
		sub, _ := v["subquery"].(map[string]any)
		query, _ := sub["node"].(map[string]any)
		return r.mask == "" && r.expression(v["child"], l) && r.query(query, l)
	case "STAR":
		return r.bareStar(v, l)
	case "LAMBDA", "PARAMETER", "POSITIONAL_REFERENCE", "DEFAULT":
		return false
	}
	for key, one := range v {
		if key == "cast_type" {
			continue // looked at before
		}
		if !r.expression(one, l) {
			return false
		}
	}
	return true
}

// bareStar reports whether a node is * of a subquery, without anything that names a table or column.
func (r *policyReader) bareStar(v map[string]any, l *layer) bool {
	for key := range v {
		if key != "class" && key != "type" && key != "query_location" {
			return false
		}
	}
	return l.outer != nil
}

// query reads a SELECT in an expression: of tables and joins of tables.
func (r *policyReader) query(v map[string]any, outer *layer) bool {
	l := &layer{outer: outer}
	if v["type"] != "SELECT_NODE" || v["cte_map"] != nil || v["sample"] != nil || !r.from(v["from_table"], l) {
		return false
	}
	for key, one := range v {
		switch key {
		case "type", "from_table", "aggregate_handling", "group_sets":
		default:
			if !r.expression(one, l) {
				return false
			}
		}
	}
	return r.conditions(v["from_table"], l)
}

// from collects the tables of a FROM clause.
func (r *policyReader) from(value any, l *layer) bool {
	v, _ := value.(map[string]any)
	switch v["type"] {
	case "EMPTY":
		return true
	case "JOIN":
		return r.from(v["left"], l) && r.from(v["right"], l)
	case "BASE_TABLE":
		return v["at_clause"] == nil && v["column_name_alias"] == nil && v["sample"] == nil && r.table(v, l)
	}
	return false
}

// conditions reads the conditions of joins, which see all tables of the clause.
func (r *policyReader) conditions(value any, l *layer) bool {
	v, _ := value.(map[string]any)
	if v["type"] != "JOIN" {
		return true
	}
	return r.expression(v["condition"], l) && r.conditions(v["left"], l) && r.conditions(v["right"], l)
}

func text(v map[string]any, key string) string {
	s, _ := v[key].(string)
	return s
}

func (r *policyReader) offset(v map[string]any) int {
	at, ok := v["query_location"].(float64)
	if !ok {
		return -1
	}
	return int(at) - r.shift
}

// table makes a slot of a table's name and alias. The name has to say the schema.
func (r *policyReader) table(v map[string]any, l *layer) bool {
	t := Table{Catalog: text(v, "catalog_name"), Schema: text(v, "schema_name"), Name: text(v, "table_name")}
	first, end, ok := r.words.name(r.offset(v), t.written())
	if !ok || t.Schema == "" || sqltext.Fold(t.Schema) == informationSchema || t.Catalog != "" && sqltext.Fold(t.Catalog) != sqltext.Fold(r.catalog) ||
		t.Catalog == "" && sqltext.Fold(t.Schema) == sqltext.Fold(r.catalog) {
		return false
	}
	own := text(v, "alias")
	to := r.words[end-1].End
	if own != "" {
		if end < len(r.words) && r.words[end].Is("as") {
			end++
		}
		if end == len(r.words) || r.words[end].Name() != own {
			return false
		}
		to = r.words[end].End
	}
	r.tables++
	full := quote(r.catalog) + "." + quote(t.Schema) + "." + quote(t.Name)
	r.slots = append(r.slots, slot{span: span{r.words[first].Start, to}, before: full + " AS ", alias: r.tables})
	l.names = append(l.names, tableName{sqltext.Fold(r.catalog), sqltext.Fold(t.Schema), sqltext.Fold(t.Name),
		sqltext.Fold(own), r.tables})
	return true
}

// column makes a slot of a column's qualifier, or puts one where there is none.
func (r *policyReader) column(v map[string]any, l *layer) bool {
	raw, _ := v["column_names"].([]any)
	names := make([]string, len(raw))
	for i, one := range raw {
		names[i], _ = one.(string)
	}
	first, _, ok := r.words.prefix(r.offset(v), names)
	if !ok || len(names) == 0 {
		return false
	}
	if r.mask != "" {
		if sqltext.Fold(names[0]) != r.mask {
			return false
		}
		return r.qualify(first, 0, 0)
	}
	for at := l; at != nil; at = at.outer {
		for _, t := range at.names {
			if n := t.prefix(names); n > 0 && n < len(names) {
				return r.qualify(first, n, t.alias)
			}
		}
	}
	for l != nil && len(l.names) == 0 {
		l = l.outer
	}
	return l != nil && len(l.names) == 1 && r.qualify(first, 0, l.names[0].alias)
}

// qualify puts the alias in place of the first parts of the name that begins with the token.
func (r *policyReader) qualify(token, parts, alias int) bool {
	s := slot{span: span{r.words[token].Start, r.words[token].Start}, after: ".", alias: alias}
	if parts > 0 {
		s.to, s.after = r.words[token+2*parts-2].End, ""
	}
	r.slots = append(r.slots, s)
	return true
}

// prefix returns how many of the first names are the table's.
func (t tableName) prefix(names []string) int {
	own := []string{t.catalog, t.schema, t.table}
	if t.own != "" {
		own = []string{t.own}
	}
	for n := len(own); n > 0; n-- {
		if n >= len(names) {
			continue
		}
		if slices.EqualFunc(own[len(own)-n:], names[:n], func(a, b string) bool { return a == sqltext.Fold(b) }) {
			return n
		}
	}
	return 0
}

// known reports whether the walk of the whole tree found the tables that this reader found.
func (r *policyReader) known(a *analysis) bool {
	for _, one := range a.references {
		if !slices.ContainsFunc(r.slots, func(s slot) bool { return s.from == one.at && s.before != "" }) {
			return false
		}
	}
	return true
}

// alias returns the alias of a table of a policy.
func alias(name string, i int) string { return name + "_" + strconv.Itoa(i) }
