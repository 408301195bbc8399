package guard

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/runtime/sqltext"
)

// fill puts something in the place that a statement of testdata/places.sql has for a table.
func fill(place, with string) string { return strings.ReplaceAll(place, "{}", with) }

func TestNoPlaceHidesATable(t *testing.T) {
	g := newGuard(t)
	bad := statements(t, "tables")
	for _, place := range statements(t, "places") {
		if _, err := g.Check(t.Context(), fill(place, "good"), owner()); err != nil {
			t.Errorf("%s, with a good table: %v", place, err)
		}
		for _, table := range bad {
			sql := fill(place, table)
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
	for _, place := range statements(t, "places") {
		if !strings.Contains(place, "(FROM {})") {
			continue
		}
		place = strings.Replace(place, "FROM {}", "SELECT {}", 1)
		if _, err := g.Check(t.Context(), fill(place, "upper('x')"), owner()); err != nil {
			t.Errorf("%s, with a good function: %v", place, err)
		}
		for _, f := range bad {
			if c := verdict(t, g, fill(place, f)); c != string(BadFunction) {
				t.Errorf("%s: %s", fill(place, f), c)
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
		for want, list := range refusedStatements(t) {
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
	for _, list := range refusedStatements(f) {
		for _, sql := range list {
			f.Add(sql)
		}
	}
	tables := statements(f, "tables")
	for i, place := range statements(f, "places") {
		f.Add(fill(place, tables[i%len(tables)]))
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
			if token.Is("window") {
				return // DuckDB's parser drops a window that nothing uses, with all that is in it
			}
			if i+1 < len(tokens) && tokens[i+1].IsPunct("(") && isCall(g, tokens, i) {
				for _, f := range forbidden {
					if name == f {
						t.Fatalf("%q is allowed and calls %s", st.SQL, name)
					}
				}
			}
		}
	})
}

// isCall reports whether the name before a bracket at i is a function's, and not that of a table or an
// alias with a list of columns, as in INSERT INTO glob (a), WITH glob (a) AS, FROM t glob (a).
func isCall(g *Guard, tokens []sqltext.Token, i int) bool {
	if i > 0 {
		before := tokens[i-1]
		word := before.Kind == sqltext.Word && !g.builtin.reserved[sqltext.Fold(before.Text)] &&
			!is(before, "between", "escape", "set", "rows", "range", "groups", "zone", "error", "values")
		if word || before.Kind == sqltext.Quoted || before.Kind == sqltext.String || before.IsPunct(")") ||
			is(before, "into", "as", "table", "references", "with") {
			return false
		}
	}
	depth := 0
	for j := i + 1; j < len(tokens); j++ {
		if tokens[j].Kind == sqltext.Punct {
			depth += bracket(tokens[j])
		}
		if depth == 0 {
			return j+1 == len(tokens) || !is(tokens[j+1], "as", "using")
		}
	}
	return true
}
