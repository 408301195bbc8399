package guard

import (
	"fmt"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// builtin is what the pinned version of DuckDB has of its own.
type builtin struct {
	// functions says of each scalar function, aggregate and macro whether it may be called.
	functions map[string]bool
	// tables says of each table function and table macro whether it may be called.
	tables map[string]bool
	// types are the names of types.
	types map[string]bool
	// views are the views of the system but those of information_schema, which are in schemata.
	views    map[string]bool
	schemata map[string]bool
	// reserved are the words that are no names unless quoted.
	reserved map[string]bool
	// files are file extensions.
	files map[string]bool
}

// deniedFunctions are refused although they are built in: they leak what is not the statement's, keep
// or wait for something, or evaluate SQL or types given as text.
const deniedFunctions = `current_setting getvariable getenv write_log nextval currval setval
	json_serialize_sql json_deserialize_sql json_serialize_plan json_execute_serialized_sql
	sleep_ms pg_sleep txid_current current_connection_id current_transaction_id current_query_id
	current_query in_search_path get_block_size setseed parse_duckdb_log_message stats vector_type
	finalize combine make_type query query_table
	format_type pg_get_constraintdef pg_get_viewdef`

// volatileFunctions are allowed although their result differs from call to call. Others that are
// volatile are refused, so that a later version's are until somebody has looked at them.
const volatileFunctions = `random uuid uuidv4 uuidv7 gen_random_uuid error`

// allowedTables are the table functions that may be called: they read nothing but their arguments.
const allowedTables = `range generate_series unnest`

// constructors are type names that take arguments and are not in DuckDB's table of types.
const constructors = `enum struct map union list array decimal row`

// fileExtensions are the last parts of names that DuckDB takes for files: a.csv as much as "a.csv".
const fileExtensions = `csv tsv parquet json jsonl ndjson geojson xlsx avro arrow feather db duckdb ddb sqlite
	sqlite3 txt gz zst zip bz2 shp gpkg fgb geoparquet vortex lance`

// set returns the words of a list as a set.
func set(list string) map[string]bool {
	m := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		m[word] = true
	}
	return m
}

// loadBuiltin reads the tables of the pinned version out of an instance that has nothing else.
func loadBuiltin(p *parser) (*builtin, error) {
	b := &builtin{
		functions: map[string]bool{"unnest": true}, tables: map[string]bool{},
		types: set(constructors), views: map[string]bool{}, schemata: map[string]bool{}, reserved: map[string]bool{},
		files: set(fileExtensions),
	}
	if err := b.loadFunctions(p); err != nil {
		return nil, err
	}
	rows, err := p.rows("SELECT DISTINCT lower(type_name) FROM duckdb_types() WHERE internal")
	if err != nil {
		return nil, fmt.Errorf("load types: %w", err)
	}
	for _, r := range rows {
		b.types[r[0]] = true
	}
	rows, err = p.rows("SELECT schema_name, view_name FROM duckdb_views() WHERE internal")
	if err != nil {
		return nil, fmt.Errorf("load views: %w", err)
	}
	for _, r := range rows {
		if name := sqltext.Fold(r[1]); r[0] == informationSchema {
			b.schemata[name] = true
		} else {
			b.views[name] = true
		}
	}
	rows, err = p.rows(`SELECT keyword_name FROM duckdb_keywords() GROUP BY keyword_name
		HAVING bool_and(keyword_category IN ('reserved', 'type_function'))`)
	if err != nil {
		return nil, fmt.Errorf("load keywords: %w", err)
	}
	for _, r := range rows {
		b.reserved[r[0]] = true
	}
	if len(b.functions) < 500 || len(b.types) < 30 || len(b.schemata) < 5 || len(b.reserved) < 70 {
		return nil, fmt.Errorf("load functions: DuckDB lists only %d functions, %d types, %d views and %d reserved words",
			len(b.functions), len(b.types), len(b.schemata), len(b.reserved))
	}
	return b, nil
}

func (b *builtin) loadFunctions(p *parser) error {
	rows, err := p.rows(`SELECT DISTINCT function_name, function_type, coalesce(stability, ''),
		coalesce(macro_definition, '') FROM duckdb_functions() WHERE internal`)
	if err != nil {
		return fmt.Errorf("load functions: %w", err)
	}
	denied, volatile, tables := set(deniedFunctions), set(volatileFunctions), set(allowedTables)
	refused := map[string]bool{}
	for _, r := range rows {
		name, kind := sqltext.Fold(r[0]), r[1]
		switch kind {
		case "table", "table_macro":
			b.tables[name] = tables[name]
		case "scalar", "aggregate", "macro":
			if denied[name] || strings.HasPrefix(name, "__internal") || r[2] == "VOLATILE" && !volatile[name] ||
				strings.Contains(r[3], "duckdb_") || strings.Contains(r[3], "pragma_") {
				refused[name] = true
			}
			b.functions[name] = true
		}
	}
	for name := range refused {
		b.functions[name] = false // if one of several of that name is refused, all are
	}
	return nil
}

// call returns a Refusal unless the function may be called.
func (b *builtin) call(name string) *Refusal {
	allowed, known := b.functions[sqltext.Fold(name)]
	switch {
	case allowed:
		return nil
	case known:
		return refuse(BadFunction, "function %q is not allowed", name)
	case b.tables[sqltext.Fold(name)]:
		return nil
	}
	return refuse(BadFunction, "there is no function %q; only DuckDB's own may be called", name)
}

// callTable is call for functions in FROM.
func (b *builtin) callTable(name string) *Refusal {
	if b.tables[sqltext.Fold(name)] {
		return nil
	}
	return refuse(BadFunction, "table function %q is not allowed; these are: %s",
		name, strings.ReplaceAll(allowedTables, " ", ", "))
}
