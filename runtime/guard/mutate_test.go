package guard

import (
	"slices"
	"strings"
	"testing"

	"github.com/qod-io/qod/runtime/sqltext"
)

// mutator changes statements in the ways that have deceived those who read SQL as text.
type mutator struct {
	statements []string // others, to take parts from
}

// maxMutations bounds what is done to one statement.
const maxMutations = 6

// apply does to a statement what the recipe says: a byte for the change and a byte for its detail.
func (m mutator) apply(sql string, recipe []byte) string {
	changes := []func(string, int) string{m.spell, m.space, m.quote, m.wrap, m.wrap, m.name, m.name, m.splice, m.insert, m.cut, m.bracket}
	for i := 0; i+1 < len(recipe) && i < 2*maxMutations; i += 2 {
		sql = changes[int(recipe[i])%len(changes)](sql, int(recipe[i+1]))
	}
	return sql
}

func (m mutator) spell(sql string, n int) string {
	at := 0
	return respell(sql, func(word string) string {
		at++
		if (n>>(at%7))&1 == 1 {
			return strings.ToUpper(word)
		}
		return strings.ToLower(word)
	})
}

func (m mutator) space(sql string, n int) string {
	gaps := []string{"/**/", "/* ' */", "/* /* \" */ ; */", "-- '\"\n", "\u00a0", "\u200b\ufeff\u3000", "\f", "\r\n", "\t", "\u2028", "--\r", "/*\u0000*/"}
	return between(sql, gaps[n%len(gaps)])
}

// quote puts one word into quotes.
func (m mutator) quote(sql string, n int) string {
	at := 0
	return respell(sql, func(word string) string {
		if at++; at == 1+n%32 {
			return `"` + word + `"`
		}
		return word
	})
}

// wrappings are statements around another one.
var wrappings = []string{
	"SELECT * FROM ({}) q", "FROM ({})", "WITH q AS ({}) FROM q", "WITH q AS MATERIALIZED ({}) SELECT * FROM q", "WITH q AS NOT MATERIALIZED ({}) FROM q, q r",
	"WITH orders AS ({}) FROM orders", "WITH salaries AS (SELECT 1) {}", "WITH salaries AS ({}) FROM main.salaries", "WITH RECURSIVE r AS ({} UNION FROM r) FROM r",
	"WITH RECURSIVE r AS ({} UNION ALL SELECT r.* FROM r, events WHERE false) FROM r", "SELECT ({})", "SELECT ({}) AS x FROM orders", "SELECT EXISTS ({})",
	"SELECT ARRAY({})", "SELECT [({})]", "SELECT {'a': ({})}", "SELECT CASE WHEN true THEN ({}) END", "SELECT coalesce(NULL, ({}))", "SELECT ({})::VARCHAR",
	"SELECT list_transform([1], lambda x: ({}))", "SELECT list_filter([1, 2], lambda x: EXISTS ({}))", "{} UNION ALL {}", "{} UNION ALL BY NAME {}",
	"SELECT 1 UNION ALL {}", "({}) EXCEPT SELECT NULL", "({}) INTERSECT ({})", "SELECT 1 ORDER BY ({})", "SELECT 1 LIMIT ({})", "SELECT 1 OFFSET ({})",
	"FROM events LIMIT ({})", "VALUES (({}))", "FROM (VALUES (({}))) v", "FROM events JOIN regions ON EXISTS ({})", "FROM events e LEFT JOIN ({}) q ON true",
	"FROM events QUALIFY row_number() OVER () <= ({})", "FROM events WHERE id IN ({})", "FROM events WHERE id = ANY ({})", "FROM events WHERE EXISTS ({})",
	"SELECT id FROM events GROUP BY id, ({})", "SELECT id FROM events GROUP BY id HAVING id < ({})", "SELECT max(id) FILTER (WHERE EXISTS ({})) FROM events",
	"SELECT sum(id) OVER (PARTITION BY ({}) ORDER BY ({})) FROM events", "SELECT * REPLACE (({}) AS what) FROM events", "SELECT * EXCLUDE (id) FROM ({}) q",
	"SELECT COLUMNS(*) FROM ({}) q", "SELECT COLUMNS('.*') FROM ({})", "SELECT q FROM ({}) q", "SELECT q.* FROM ({}) q", "SELECT unnest(q) FROM ({}) q",
	"SELECT to_json(q) FROM ({}) q", "SELECT q::VARCHAR FROM ({}) q", "SELECT error(q::VARCHAR) FROM ({}) q", "SELECT list(q) FROM ({}) q",
	"SELECT string_agg(q::VARCHAR) FROM ({}) q", "SELECT max(q) OVER () FROM ({}) q", "SELECT arg_max(q, q) FROM ({}) q", "SELECT hash(q) FROM ({}) q",
	"SELECT struct_pack(q := q) FROM ({}) q", "SELECT CAST(q::VARCHAR AS INTEGER) FROM ({}) q", "FROM ({}) a, ({}) b", "FROM ({}) a NATURAL JOIN orders",
	"FROM ({}) a JOIN orders USING (id)", "FROM events, LATERAL ({}) q", "FROM ({}) q POSITIONAL JOIN orders", "FROM ({}) q ASOF JOIN events e ON q.id >= e.id",
	"FROM ({}) q SEMI JOIN events USING (id)", "FROM range(({}))", "FROM ({}) q TABLESAMPLE 100%", "FROM ({}) PIVOT (count(*) FOR id IN (1, 2))",
	"PIVOT ({}) ON id IN (1, 2, 11) USING count(*)", "UNPIVOT ({}) ON COLUMNS(*)", "UNPIVOT ({}) ON id", "DESCRIBE {}", "SUMMARIZE {}", "EXPLAIN {}",
	"EXPLAIN ANALYZE {}", "EXPLAIN (FORMAT json) {}", "FROM (DESCRIBE {})", "FROM (SUMMARIZE {})", "FROM (SUMMARIZE ({}))", "TABLE ({})", "FROM x: ({})",
	"CREATE TABLE desk.n AS {}", "CREATE OR REPLACE TABLE desk.copy AS {}", "CREATE TEMP TABLE n AS {}", "CREATE VIEW desk.n AS {}", "CREATE TEMP VIEW n AS {}",
	"INSERT INTO events {}", "INSERT INTO events SELECT 9, q::VARCHAR FROM ({}) q", "INSERT INTO events (what) SELECT ({})",
	"INSERT INTO events BY NAME {} RETURNING *", "INSERT INTO events VALUES (1, ({})) RETURNING what", "INSERT INTO desk.copy {}",
	"UPDATE desk.copy SET note = ({})", "UPDATE desk.copy SET note = q::VARCHAR FROM ({}) q RETURNING *", "DELETE FROM desk.copy WHERE EXISTS ({}) RETURNING *",
	"DELETE FROM desk.copy USING ({}) q RETURNING q", "UPDATE orders SET note = ({})", "DELETE FROM orders WHERE EXISTS ({})",
	"MERGE INTO desk.copy USING ({}) s ON true WHEN MATCHED THEN UPDATE SET note = s::VARCHAR", "MERGE INTO desk.copy c USING ({}) s ON c.id = s.id WHEN NOT MATCHED THEN INSERT BY NAME RETURNING *",
	"WITH q AS ({}) INSERT INTO events SELECT 1, q::VARCHAR FROM q", "WITH q AS ({}) DELETE FROM desk.copy USING q RETURNING *", "CREATE TABLE desk.n (a INTEGER DEFAULT (({})))",
	"CREATE TABLE desk.n (a INTEGER CHECK (EXISTS ({})))", "SELECT * FROM ({}) AS q(a, b, c)", "SELECT a.b FROM ({}) AS a(b)", "SELECT (q).id FROM ({}) q",
	"SELECT rowid FROM ({}) q", "SELECT ssn FROM ({}) q", "SELECT q.ssn FROM ({}) q", "FROM orders o WHERE o.id IN (SELECT o.id FROM ({}))", "{} ORDER BY ALL",
	"{} LIMIT 1", "{} WINDOW w AS (ORDER BY ({}))", "{} USING SAMPLE 3", "{} AT (VERSION => 3)", "COPY ({}) TO '/tmp/x'", "FROM query($q${}$q$)", "PREPARE p AS {}",
	"FROM ({}) q WHERE q::VARCHAR::UUID IS NOT NULL", "SELECT count(*) FROM ({}) q WHERE CAST(q::VARCHAR AS STRUCT(a INTEGER)) IS NOT NULL",
	"SELECT count(*) FROM ({}) q JOIN events ON CAST(q::VARCHAR AS INTEGER[]) IS NOT NULL", "SELECT count(*) FROM ({}) q WHERE q::VARCHAR = uuid()",
	"CREATE MACRO m() AS TABLE {}", "EXPORT DATABASE '/tmp/x' ({})", "{}; {}", "; {}",
}

func (m mutator) wrap(sql string, n int) string { return fill(wrappings[n%len(wrappings)], sql) }

// tables and others are names that a statement may have in the place of its own.
var tables = []string{
	"orders", "main.orders", "lake.main.orders", `"Orders"`, "lake.orders", "events", "regions", "accounts", "lake.main.accounts", "open_view", "desk.copy",
	"salaries", "main.salaries", "lake.main.salaries", "canary_table", "canary_view", "hidden.members", "lake.hidden.members", "members", "canary_schema.canary_inner",
	"information_schema.tables", "information_schema.columns", "lake.information_schema.views", "information_schema.schemata", "memory.main.orders", "temp.orders",
	"duckdb_tables()", "range(3)", "__ducklake_metadata_lake.ducklake_table", "orders AT (VERSION => 3)", "(FROM orders)", "'orders'", "pg_catalog.pg_class",
	"lake.snapshots()", "desk.events_view", "desk.secret",
}

var columnNames = []string{
	"id", "region", "amount", "card", "ssn", "note", "tags", "doc", "what", "name", "salary", "owner", "balance", "pin", "rowid", "filename", "orders", "orders.ssn",
	"main.orders.ssn", "lake.main.orders.card", "orders.*", "*", "COLUMNS(*)", "o", "snapshot_id", "orders.rowid", "doc.a", "tags[1]", "row_id", "file_row_number", "note::UUID", "pin::UUID",
	"CAST(note AS STRUCT(a INTEGER))", "table_name", "table_name::UUID", "CAST(column_name AS INTEGER[])",
}

// name puts another name where the statement has one of these.
func (m mutator) name(sql string, n int) string {
	list := tables
	if n%2 == 1 {
		list = columnNames
	}
	with := list[n/2%len(list)]
	var places []string
	respell(sql, func(word string) string {
		if slices.Contains(list, strings.ToLower(word)) {
			places = append(places, word)
		}
		return word
	})
	if len(places) == 0 {
		return sql
	}
	at, chosen := 0, n%len(places)
	return respell(sql, func(word string) string {
		if !slices.Contains(list, strings.ToLower(word)) {
			return word
		}
		if at++; at-1 == chosen {
			return with
		}
		return word
	})
}

// splice puts the end of another statement after the beginning of this one.
func (m mutator) splice(sql string, n int) string {
	other := m.statements[n*7919%len(m.statements)]
	left, err := sqltext.Tokens(sql)
	right, otherErr := sqltext.Tokens(other)
	if err != nil || otherErr != nil || len(left) == 0 || len(right) == 0 {
		return sql
	}
	return sql[:left[n%len(left)].Start] + other[right[n*31%len(right)].Start:]
}

// pieces are what changes the meaning of the words around it.
var pieces = []string{
	"(", ")", ",", ".", "*", "::VARCHAR", "AS", "FROM", "SELECT", "UNION", "AT (VERSION => 1)", "ONLY", "LATERAL", "WITH", "x:", "RETURNING *", "OR true", "IS NULL",
	"LEFT JOIN", "NATURAL", "USING (id)", "DISTINCT ON (id)", "ALL", "EXCLUDE (id)", "RENAME (id AS ssn)", "REPLACE (1 AS id)", "COLUMNS(*)", "LIKE 'c%'", "AS o(a)",
	"GROUP BY ALL", "ORDER BY ALL", "TABLESAMPLE 50%", "ON CONFLICT DO NOTHING", "DEFAULT", "$1", "?", "''", "E'\\''", "$$x$$", "U&'x'", "{'a': 1}", "[1]", "lambda x:", "->", ";",
	"WHERE", "AND", "NOT", "INTO", "SET", "TABLE", "OVER ()", "FILTER (WHERE true)", "INTERVAL 1 DAY", "NULL", "IN", "ANY", "WITH ORDINALITY", "*COLUMNS(*)", "!", "|| ''",
}

func (m mutator) insert(sql string, n int) string {
	tokens, err := sqltext.Tokens(sql)
	if err != nil || len(tokens) == 0 {
		return sql
	}
	at := tokens[n*13%len(tokens)].Start
	return sql[:at] + " " + pieces[n%len(pieces)] + " " + sql[at:]
}

func (m mutator) cut(sql string, n int) string {
	tokens, err := sqltext.Tokens(sql)
	if err != nil || len(tokens) < 3 {
		return sql
	}
	from := n % len(tokens)
	to := min(from+1+n/64, len(tokens)-1)
	return sql[:tokens[from].Start] + sql[tokens[to].Start:]
}

// bracket puts a part of the statement into brackets.
func (m mutator) bracket(sql string, n int) string {
	tokens, err := sqltext.Tokens(sql)
	if err != nil || len(tokens) < 2 {
		return sql
	}
	from := n % len(tokens)
	to := min(from+n/32, len(tokens)-1)
	return sql[:tokens[from].Start] + "(" + sql[tokens[from].Start:tokens[to].End] + ")" + sql[tokens[to].End:]
}

// TestMutations asserts that every change changes some statement: one that never does tests nothing.
func TestMutations(t *testing.T) {
	const sql = "SELECT o.id, note FROM orders o WHERE id IN (SELECT id FROM salaries)"
	m := mutator{statements: []string{"DELETE FROM events USING salaries WHERE events.what = salaries.name"}}
	for change := range 11 {
		changed := 0
		for n := range 256 {
			if m.apply(sql, []byte{byte(change), byte(n)}) != sql {
				changed++
			}
		}
		if changed < 16 {
			t.Errorf("change %d works for %d of 256 details", change, changed)
		}
	}
}
