package sqltext_test

import (
	"testing"

	"github.com/qod-io/qod/runtime/sqltext"
)

func TestFirst(t *testing.T) {
	for name, c := range map[string]struct {
		sql    string
		length int
		tokens int
	}{
		"one":            {"SELECT 1;", 9, 2},
		"two":            {"SELECT 1; SELECT 2;", 9, 2},
		"open":           {"SELECT 1", 0, 2},
		"empty":          {" \n;", 3, 0},
		"nothing":        {"", 0, 0},
		"literal":        {"SELECT ';';", 11, 2},
		"doubled quote":  {"SELECT 'it''s;';", 16, 2},
		"name":           {`SELECT ";" ;`, 12, 2},
		"dollar":         {"SELECT $x$;$$;$x$;", 18, 2},
		"comment":        {"SELECT 1 -- ;\n;", 15, 2},
		"block comment":  {"SELECT /* ; /* ; */ */ 1;", 25, 2},
		"open literal":   {"SELECT 'a;", 0, 1},
		"open name":      {`SELECT "a;`, 0, 1},
		"open dollar":    {"SELECT $x$ ; $$", 0, 1},
		"open comment":   {"SELECT 1 /* ;", 0, 2},
		"literal end":    {"SELECT E'\\';';", 14, 2},
		"after a broken": {"SELECT 1; '", 9, 2},
	} {
		length, tokens, err := sqltext.First(c.sql)
		if err != nil || length != c.length || len(tokens) != c.tokens {
			t.Errorf("%s: length %d with %d tokens (%v), want %d with %d", name, length, len(tokens), err, c.length, c.tokens)
		}
	}
	if _, _, err := sqltext.First("SELECT \x00;"); err == nil {
		t.Error("a NUL byte is taken")
	}
}
