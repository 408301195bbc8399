package guard

import (
	"slices"
	"strconv"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

const (
	// maxLambdas bounds lambdas in lambdas: DuckDB's time to bind them doubles with each.
	maxLambdas = 12
	// maxLevels bounds expressions in expressions, chains of operators too. DuckDB stops at 1,000, but
	// planning of some takes minutes from 800 on.
	maxLevels = 500
	// maxNodes bounds SELECTs of a statement: planning some 50,000 of them takes minutes.
	maxNodes = 5000
)

// walker goes over the syntax tree of one text and collects what it touches. Every object, field and
// name in it is looked at; the first thing that is not allowed ends the walk.
type walker struct {
	reader
	words   vocabulary
	names   resolver
	refusal *Refusal
	tables  []reference
	// qualified are the columns that are named with at least three parts.
	qualified []column
	queries   int // SELECTs around
	levels    int
	lambdas   int
	nodes     int
	params    bool // it has parameters
}

// object is what of an object matters after its fields were read.
type object struct {
	under string // the field it stands in
	class string // of an expression
	kind  string // its type
	mark  int    // tables before it

	table, schema, catalog, function, name, show, cte, alias string

	at      int      // its place in the text; -1 if it has none
	past    bool     // it has an AT clause
	columns []string // the parts of a column's name

	ctes  []string    // common table expressions of a query
	outer []reference // tables in them that are not among them
	right int         // of a recursive one: tables before its recursive part
}

func (w *walker) refuse(r *Refusal) {
	if w.refusal == nil && r != nil {
		w.refusal = r
	}
	w.bad = w.bad || r != nil
}

func (w *walker) unknown(what string) {
	w.refuse(refuse(Unknown, "the statement uses syntax that is not known here (%s)", what))
}

// value walks any value; key is the field it stands in.
func (w *walker) value(key string) {
	switch w.peek() {
	case '{':
		w.object(key)
	case '[':
		w.elements(func() { w.value(key) })
	case '"':
		w.identifier(w.str())
	case 0:
		w.bad = true
	default:
		w.atom()
	}
}

func (w *walker) identifier(name string) string {
	if hidden(name) {
		w.refuse(hiddenName(name))
	}
	return name
}

func (w *walker) object(under string) {
	o := object{under: under, mark: len(w.tables), at: -1}
	first := true
	w.fields(func(key string) {
		if first {
			first = false
			if w.open(&o, key) {
				return
			}
		}
		w.field(&o, key)
	})
	w.end(&o)
}

// open reads the first field if it says what the object is, and reports whether it did.
func (w *walker) open(o *object, key string) bool {
	switch {
	case key == "class":
		if o.class = w.str(); !w.words.classes[o.class] {
			w.unknown(o.class)
		}
		if w.levels++; w.levels > maxLevels {
			w.refuse(refuse(TooLarge, "the statement has more than 500 expressions in expressions; "+
				"write long chains as AND, OR, IN or concat(…)"))
		}
		if o.class == "LAMBDA" {
			if w.lambdas++; w.lambdas > maxLambdas {
				w.refuse(refuse(TooLarge, "lambda functions are nested too deeply"))
			}
		}
		return true
	case key == "type" && w.peek() == '"':
		if o.kind = w.str(); !w.words.nodes[o.kind] {
			w.unknown(o.kind)
		}
		if strings.HasSuffix(o.kind, "_NODE") {
			if w.nodes++; w.nodes > maxNodes {
				w.refuse(refuse(TooLarge, "the statement has too many queries in it"))
			}
		}
		if o.kind == "SELECT_NODE" {
			w.queries++
		}
		return true
	case key == "type":
		o.kind = "VALUE" // the value of a literal: a type, which is not a reference, and data
		w.skip()
		return true
	}
	return false
}

func (w *walker) field(o *object, key string) {
	switch {
	case o.kind == "VALUE", o.class == "CONSTANT" && key == "value":
		w.skip()
		return
	case !w.words.keys[key]:
		w.unknown(key)
		return
	case key == "class":
		w.unknown("class")
		return
	}
	switch key {
	case "type":
		if o.kind = w.str(); o.class == "" || !w.words.expressions[o.kind] {
			w.unknown(o.kind)
		}
	case "cte_map":
		w.ctes(o)
	case "table_name":
		o.table = w.identifier(w.str())
	case "schema_name", "schema":
		o.schema = w.identifier(w.str())
	case "catalog_name", "catalog":
		o.catalog = w.identifier(w.str())
	case "function_name":
		o.function = w.identifier(w.str())
	case "name":
		o.name = w.identifier(w.str())
	case "show_type":
		o.show = w.str()
	case "cte_name":
		o.cte = w.identifier(w.str())
	case "query_location":
		at, err := strconv.Atoi(w.atom())
		if o.at = at; err != nil {
			o.at = -1
		}
	default:
		if w.plain(o, key) {
			return
		}
		o.past = o.past || key == "at_clause"
		if key == "right" {
			o.right = len(w.tables)
		}
		w.value(key)
	}
}

// plain reads fields that are of other kinds in other objects, and reports whether this was one.
func (w *walker) plain(o *object, key string) bool {
	switch {
	case key == "alias" && w.peek() == '"':
		o.alias = w.identifier(w.str())
	case key == "column_names" && o.class == "COLUMN_REF":
		w.elements(func() { o.columns = append(o.columns, w.identifier(w.str())) })
	default:
		return false
	}
	return true
}

// ctes reads the common table expressions of a query. Each sees those before it; a recursive one sees
// itself, which it settles itself.
func (w *walker) ctes(o *object) {
	w.fields(func(key string) {
		if key != "map" {
			w.unknown(key)
			return
		}
		w.elements(func() {
			mark, name := len(w.tables), ""
			w.fields(func(key string) {
				switch key {
				case "key":
					name = w.identifier(w.str())
				case "value":
					w.value(key)
				default:
					w.unknown(key)
				}
			})
			o.outer = append(o.outer, without(w.tables[mark:], o.ctes)...)
			w.tables = w.tables[:mark]
			o.ctes = append(o.ctes, sqltext.Fold(name))
		})
	})
}

// without returns the references that are not to one of the names.
func without(tables []reference, names []string) []reference {
	var out []reference
	for _, t := range tables {
		bare := t.table.Catalog == "" && t.table.Schema == ""
		if t.fixed || !bare || !slices.Contains(names, sqltext.Fold(t.table.Name)) {
			out = append(out, t)
		}
	}
	return out
}

// end judges the object by all its fields.
func (w *walker) end(o *object) {
	if o.class != "" {
		w.levels--
	}
	w.label(o)
	switch o.class {
	case "COLUMN_REF":
		if len(o.columns) > 2 {
			w.qualified = append(w.qualified, column{names: o.columns, at: o.at})
		}
	case "FUNCTION":
		if o.under == "function" {
			w.refuse(w.names.builtin.callTable(o.function))
			return
		}
		w.refuse(w.names.builtin.call(o.function))
	case "WINDOW":
		w.refuse(w.names.builtin.call(o.function))
	case "PARAMETER":
		w.params = true
	case "LAMBDA":
		w.lambdas--
	case "":
		w.endNode(o)
	}
	if o.class != "" && o.kind == "" {
		w.unknown(o.class)
	}
}

// label notes which tables are in the name that DuckDB gives to an expression without an alias.
func (w *walker) label(o *object) {
	depth := 0
	switch {
	case o.class == "FUNCTION" && sqltext.Fold(o.function) == "alias":
		depth = unknownDepth
	case o.alias != "" || o.class == "" || o.class == "STAR":
	case o.under == "select_list":
		depth = w.queries
	case o.under == "aggregates", o.under == "star_expr":
		depth = w.queries + 1 // of PIVOT and UNPIVOT, which make values of names
	}
	for i := o.mark; depth > 0 && i < len(w.tables); i++ {
		w.tables[i].named(depth)
	}
}

func (w *walker) endNode(o *object) {
	if o.kind == "SELECT_NODE" {
		w.queries--
	}
	switch o.kind {
	case "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE":
		if o.kind == "RECURSIVE_CTE_NODE" {
			inner := without(w.tables[max(o.right, o.mark):], []string{sqltext.Fold(o.cte)})
			w.tables = append(w.tables[:max(o.right, o.mark)], inner...)
		}
		inner := without(w.tables[o.mark:], o.ctes)
		w.tables = append(append(w.tables[:o.mark], inner...), o.outer...)
	case "BASE_TABLE":
		t := Table{Catalog: o.catalog, Schema: o.schema, Name: o.table, Privilege: "select"}
		w.tables = append(w.tables, reference{table: t, at: o.at, alias: o.alias, past: o.past, fixed: o.past})
	case "SHOW_REF":
		w.show(o)
	case "UNBOUND_TYPE_INFO":
		w.refuse(w.names.dataType(o.catalog, o.schema, o.name))
	}
}

// show judges DESCRIBE, SUMMARIZE and SHOW. What they name is looked up without the common table
// expressions around them.
func (w *walker) show(o *object) {
	for i := o.mark; i < len(w.tables); i++ {
		w.tables[i].fixed = true
		w.tables[i].shown = true
	}
	switch {
	case (o.show == "DESCRIBE" || o.show == "SUMMARY") && o.table == "":
	case o.show == "SHOW_UNQUALIFIED" && o.table == `"tables"`:
		w.tables = append(w.tables, reference{fixed: true, at: -1, table: Table{
			Schema: informationSchema, Name: "tables", Privilege: "select"}})
	case o.show == "SHOW_FROM":
		parts := []string{o.schema}
		if o.catalog != "" {
			parts = []string{o.catalog, o.schema}
		}
		t, refusal := w.names.schema(parts, "select")
		w.refuse(refusal)
		w.tables = append(w.tables, reference{fixed: true, at: -1, table: Table{
			Catalog: t.Catalog, Schema: t.Schema, Name: "", Privilege: "select"}})
	default:
		w.refuse(refuse(NotAllowed, "SHOW %s is not allowed; SHOW TABLES, SHOW TABLES FROM schema, DESCRIBE table and "+
			"information_schema are", strings.Trim(o.table, `"_`)))
	}
}
