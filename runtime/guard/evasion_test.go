package guard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qod-io/qod/runtime/sqltext"
)

// placesForTables are statements with %s where a table can stand; each is allowed with a good one.
func placesForTables() []string {
	return []string{
		"SELECT * FROM %s", "FROM %s", "FROM %s AS x", "FROM a JOIN %s ON true", "FROM a LEFT JOIN b USING (x) CROSS JOIN %s", "FROM a, %s",
		"FROM a, LATERAL (FROM %s)", "SELECT (SELECT max(x) FROM %s)", "SELECT EXISTS (FROM %s)", "SELECT 1 IN (FROM %s)", "SELECT 1 = ANY (FROM %s)",
		"SELECT ARRAY (FROM %s)", "WITH c AS (FROM %s) SELECT 1", "WITH c AS MATERIALIZED (FROM %s) FROM c", "WITH a AS (SELECT 1), c AS (FROM a, %s) FROM c",
		"WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n FROM c, %s) FROM c", "WITH RECURSIVE c AS (FROM %s UNION ALL FROM c) FROM c",
		"SELECT 1 UNION ALL FROM %s", "SELECT 1 EXCEPT (FROM %s)", "(((FROM %s)))", "VALUES (1), ((FROM %s))", "SELECT 1 ORDER BY (FROM %s)", "SELECT 1 LIMIT (FROM %s)",
		"SELECT 1 OFFSET (FROM %s)", "SELECT 1 FROM a WHERE x > (FROM %s)", "SELECT x FROM a GROUP BY x, (FROM %s)", "SELECT x FROM a GROUP BY GROUPING SETS ((x), ((FROM %s)))",
		"SELECT x FROM a GROUP BY x HAVING (FROM %s)", "SELECT x FROM a QUALIFY (FROM %s)", "SELECT sum(x) OVER (PARTITION BY (FROM %s)) FROM a", "SELECT sum(x) OVER (ORDER BY (FROM %s)) FROM a",
		"SELECT sum(x) OVER (ROWS BETWEEN (FROM %s) PRECEDING AND CURRENT ROW) FROM a", "SELECT sum(x) OVER w FROM a WINDOW w AS (PARTITION BY (FROM %s))", "SELECT sum(x) FILTER (WHERE (FROM %s)) FROM a",
		"SELECT string_agg(x, ',' ORDER BY (FROM %s)) FROM a", "SELECT CASE WHEN (FROM %s) THEN 1 END", "SELECT CASE 1 WHEN 2 THEN (FROM %s) END", "SELECT CASE WHEN true THEN 1 ELSE (FROM %s) END",
		"SELECT list_transform([1], lambda y: (FROM %s))", "SELECT [(FROM %s) FOR y IN [1]]", "SELECT [y FOR y IN [1] IF (FROM %s)]", "SELECT {'k': (FROM %s)}", "SELECT map {1: (FROM %s)}", "SELECT [1][(FROM %s)]",
		"SELECT [1][1:(FROM %s)]", "SELECT coalesce(1, (FROM %s))", "SELECT TRY((FROM %s))", "SELECT 1 BETWEEN 0 AND (FROM %s)", "SELECT NOT (FROM %s)", "SELECT (FROM %s)::INTEGER", "SELECT (FROM %s) COLLATE NOCASE",
		"SELECT (FROM %s) AT TIME ZONE 'UTC'", "SELECT * REPLACE ((FROM %s) AS x) FROM a", "SELECT COLUMNS(c -> (FROM %s)) FROM a", "SELECT DISTINCT ON ((FROM %s)) x FROM a", "FROM a AT (VERSION => (FROM %s))",
		"FROM range((FROM %s))", "FROM unnest((FROM %s))", "FROM a JOIN b ON (FROM %s)", "FROM a ASOF JOIN %s ON true", "FROM a POSITIONAL JOIN %s", "FROM a SEMI JOIN %s ON true", "PIVOT %s ON x IN (1)", "UNPIVOT %s ON x",
		"FROM %s PIVOT (sum(x) FOR y IN (1))", "PIVOT a ON x IN (1) USING sum((FROM %s))", "FROM %s TABLESAMPLE 10%%", "FROM (FROM %s) USING SAMPLE 1%%", "DESCRIBE FROM %s", "SUMMARIZE FROM %s", "FROM (DESCRIBE FROM %s)",
		"FROM (VALUES ((FROM %s))) v", "EXPLAIN FROM %s", "EXPLAIN ANALYZE FROM %s", "CREATE TABLE t AS FROM %s", "CREATE VIEW v AS FROM %s", "CREATE TEMP TABLE t AS (FROM %s)", "INSERT INTO t FROM %s",
		"INSERT INTO t VALUES ((FROM %s))", "INSERT INTO t (x) (FROM %s) RETURNING 1", "INSERT INTO t SELECT 1 RETURNING (FROM %s)", "UPDATE t SET x = (FROM %s)", "UPDATE t SET x = 1 FROM %s", "UPDATE t SET x = 1 FROM a WHERE (FROM %s)",
		"DELETE FROM t USING %s", "DELETE FROM t WHERE x IN (FROM %s)", "DELETE FROM t RETURNING (FROM %s)", "MERGE INTO t USING %s ON true WHEN MATCHED THEN DELETE", "MERGE INTO t USING a ON (FROM %s) WHEN MATCHED THEN DELETE",
		"MERGE INTO t USING (FROM %s) AS s USING (x) WHEN MATCHED THEN UPDATE", "MERGE INTO t USING a ON true WHEN MATCHED AND (FROM %s) THEN DELETE", "MERGE INTO t USING a ON true WHEN MATCHED THEN UPDATE SET x = (FROM %s)",
		"MERGE INTO t USING a ON true WHEN NOT MATCHED THEN INSERT VALUES ((FROM %s))", "WITH c AS (FROM %s) INSERT INTO t FROM c", "WITH c AS (FROM %s) UPDATE t SET x = 1", "WITH c AS (FROM %s) DELETE FROM t",
		"EXPLAIN INSERT INTO t FROM %s", "EXPLAIN ANALYZE DELETE FROM t USING %s", "CREATE TABLE t (x INTEGER DEFAULT (FROM %s))", "CREATE TABLE t (x INTEGER, CHECK ((FROM %s)))", "ALTER TABLE t ALTER x SET DEFAULT (FROM %s)",
		"ALTER TABLE t ALTER x TYPE INTEGER USING (FROM %s)", "CREATE TABLE t (x INTEGER) PARTITIONED BY ((FROM %s))",
	}
}

// badTables are tables that are never allowed, in the spellings that DuckDB takes.
func badTables() []string {
	return []string{
		"read_csv('/etc/passwd')", `"read_csv"('/etc/passwd')`, "READ_CSV ('/etc/passwd')", "Read_Csv/**/('x')", "read_csv\u00a0('x')", "system.main.read_csv('x')", `"system"."main"."READ_CSV"('x')`,
		"postgres_query('__ducklake_metadata_lake', 'x')", "glob('**')", "query('SELECT 1')", "duckdb_secrets()", "'/etc/passwd'", `"/etc/passwd"`, "'x.csv'", "x.parquet", `"s3://b/x"`, "E'\\x2fetc'",
		"__ducklake_metadata_lake.public.t", `"__DUCKLAKE_METADATA_LAKE".t`, "__ducklake_metadata_lake/**/./**/t", "__DuckLake_Metadata_lake\u200b.\u3000t", "system.main.t", "memory.t", "pg_catalog.pg_class", "duckdb_tables", "other.main.t",
	}
}

func TestNoPlaceHidesATable(t *testing.T) {
	g := newGuard(t)
	for _, place := range placesForTables() {
		if _, err := g.Check(t.Context(), fmt.Sprintf(place, "good"), owner()); err != nil {
			t.Errorf("%s, with a good table: %v", place, err)
		}
		for _, bad := range badTables() {
			sql := fmt.Sprintf(place, bad)
			if c := verdict(t, g, sql); c != string(BadFunction) && c != string(BadName) {
				// Where DuckDB's grammar has no room for it there is no way in either.
				if c != "syntax" || accepts(t, g, sql) {
					t.Errorf("%s: %s", sql, c)
				}
			}
		}
	}
}

// accepts reports whether DuckDB parses the text.
func accepts(t *testing.T, g *Guard, sql string) bool {
	_, err := g.sandbox.count(t.Context(), sql)
	return err == nil
}

func verdict(t *testing.T, g *Guard, sql string) string {
	_, err := g.Check(t.Context(), sql, owner())
	return code(err)
}

func TestNoPlaceHidesAFunction(t *testing.T) {
	g := newGuard(t)
	bad := []string{"current_setting('x')", `"Current_Setting"('x')`, "main.current_setting('x')", "system.main.current_setting/* */('x')", "getvariable('x')",
		"nextval('s')", "pg_sleep(9)", "no_such(1)", "current_setting\u2003('x')"}
	for _, place := range placesForTables() {
		if !strings.Contains(place, "(FROM %s)") {
			continue
		}
		place = strings.Replace(place, "FROM %s", "SELECT %s", 1)
		if _, err := g.Check(t.Context(), fmt.Sprintf(place, "upper('x')"), owner()); err != nil {
			t.Errorf("%s, with a good function: %v", place, err)
		}
		for _, f := range bad {
			if c := verdict(t, g, fmt.Sprintf(place, f)); c != string(BadFunction) {
				t.Errorf("%s: %s", fmt.Sprintf(place, f), c)
			}
		}
	}
}

// TestSpellings asserts that what is refused stays so however it is written.
func TestSpellings(t *testing.T) {
	spell := map[string]func(string) string{
		"upper":    func(s string) string { return respell(s, strings.ToUpper) },
		"lower":    func(s string) string { return respell(s, strings.ToLower) },
		"comments": func(s string) string { return between(s, "/* ' */") },
		"nested":   func(s string) string { return between(s, "/* /* \" */ ; */") },
		"lines":    func(s string) string { return between(s, "-- '\"\n") },
		"blanks":   func(s string) string { return between(s, "\u00a0\u200b\ufeff\u3000\f") },
		"around":   func(s string) string { return "; /* x */ " + s + " ;; -- x" },
	}
	g := newGuard(t)
	for name, f := range spell {
		for want, list := range refusedStatements() {
			for _, sql := range list {
				got := verdict(t, g, f(sql))
				if got == "allowed" {
					t.Errorf("%s: %q is allowed", name, f(sql))
				}
				if got != string(want) && got != "syntax" {
					t.Errorf("%s: %q: got %s, want %s", name, f(sql), got, want)
				}
			}
		}
	}
}

// respell changes the unquoted words of a statement.
func respell(sql string, f func(string) string) string {
	tokens, err := sqltext.Tokens(sql)
	if err != nil {
		return sql
	}
	out, at := "", 0
	for _, token := range tokens {
		out += sql[at:token.Start]
		if token.Kind == sqltext.Word {
			out += f(token.Text)
		} else {
			out += token.Text
		}
		at = token.End
	}
	return out + sql[at:]
}

// between puts the gap where the statement has a blank.
func between(sql, gap string) string {
	tokens, err := sqltext.Tokens(sql)
	if err != nil {
		return sql
	}
	out, at := "", 0
	for _, token := range tokens {
		out += sql[at:token.Start]
		if token.Start > at {
			out += gap
		}
		out += token.Text
		at = token.End
	}
	return out + sql[at:]
}

// FuzzRefused changes statements and asserts that none that is allowed calls or names what is forbidden.
func FuzzRefused(f *testing.F) {
	for _, list := range refusedStatements() {
		for _, sql := range list {
			f.Add(sql)
		}
	}
	for i, place := range placesForTables() {
		f.Add(fmt.Sprintf(place, badTables()[i%len(badTables())]))
	}
	for _, sql := range []string{"WITH a AS (SELECT 1) INSERT INTO t SELECT $e'\\'', glob('x') FROM a", "UPDATE t SET a = 1e'\\'' || getenv('x')",
		"SELECT 'a'\n'b' FROM glob('x')", "DELETE FROM t WHERE a = $t$ ' $t$ OR glob('x')", "INSERT INTO t (values) VALUES (x'1''2') RETURNING glob('x')"} {
		f.Add(sql)
	}
	g := newGuard(f)
	forbidden := []string{"glob", "read_csv", "read_text", "read_blob", "read_parquet", "parquet_scan", "postgres_query", "postgres_scan",
		"query_table", "current_setting", "getenv", "duckdb_secrets", "json_serialize_plan", "pg_sleep"}
	f.Fuzz(func(t *testing.T, sql string) {
		st, err := g.Check(t.Context(), sql, owner())
		if err != nil || !strings.Contains(sql, "(") && !strings.Contains(strings.ToLower(sql), hiddenPrefix) {
			return
		}
		tokens, err := sqltext.Tokens(st.SQL)
		if err != nil {
			t.Fatalf("%q is allowed and has no tokens: %v", st.SQL, err)
		}
		for i, token := range tokens {
			name := sqltext.Fold(token.Name())
			if strings.HasPrefix(name, hiddenPrefix) {
				t.Fatalf("%q is allowed and names %s", st.SQL, name)
			}
			if i+1 < len(tokens) && tokens[i+1].IsPunct("(") && isCall(tokens, i) {
				for _, f := range forbidden {
					if name == f {
						t.Fatalf("%q is allowed and calls %s", st.SQL, name)
					}
				}
			}
		}
	})
}

// isCall reports whether the name before a bracket at i is a function's, and not that of a table with a
// list of columns, as in INSERT INTO glob (a) or WITH glob (a) AS.
func isCall(tokens []sqltext.Token, i int) bool {
	depth := 0
	for j := i + 1; j < len(tokens); j++ {
		if tokens[j].Kind == sqltext.Punct {
			depth += bracket(tokens[j])
		}
		if depth == 0 {
			list := j+1 < len(tokens) && is(tokens[j+1], "as", "values", "select", "from", "table", "using")
			return !list && (i == 0 || !is(tokens[i-1], "into", "as", "table", "references", "with", "view", "key"))
		}
	}
	return true
}
