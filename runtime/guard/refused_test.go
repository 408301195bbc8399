package guard

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/runtime/wire"
)

// refusedStatements are statements that must not run, by the code of their refusal. They are what
// DuckDB's own lock leaves open, attacks on authorization, and what a lake has no use for.
func refusedStatements(t testing.TB) map[Code][]string {
	out := map[Code][]string{}
	for _, c := range []Code{BadFunction, BadName, NotAllowed, BadSetting, Multiple} {
		out[c] = statements(t, "refused/"+string(c))
	}
	return out
}

func TestRefused(t *testing.T) {
	g := newGuard(t)
	s := owner()
	s.Rights = rights(wire.Permissions{Admin: true}, "lake") // not even an administrator
	s.Prepared = true
	count := 0
	for want, list := range refusedStatements(t) {
		for _, sql := range list {
			count++
			if _, err := g.Check(t.Context(), sql, s); code(err) != string(want) {
				t.Errorf("%s: got %s (%v), want %s", sql, code(err), err, want)
			}
		}
	}
	t.Logf("%d statements refused", count)
}

func TestSyntaxErrors(t *testing.T) {
	g := newGuard(t)
	tests := map[string]string{ // statement: part of the message
		"SELECT":                   "SELECT clause without selection list",
		"SELECT FROM WHERE":        "syntax error at or near \"WHERE\"",
		"INSERT INTO t VALUES (1":  "syntax error at end of input",
		"INSERT t VALUES (1)":      "syntax error at or near \"t\"",
		"UPDATE t":                 "syntax error at end of input",
		"CREATE TABLE t":           "syntax error at end of input",
		"CREATE TABLE t (a INT,,)": "syntax error at or near \",\"",
		"SELECT 'open":             "string that is not closed",
		"SELECT /* open":           "comment that is not closed",
		"SELECT \"open":            "quoted name that is not closed",
		"SELECT 1)":                "syntax error at or near \")\"",
		"WITH a AS (SELECT 1)":     "syntax error at end of input",
		"WITH a AS (INSERT INTO t VALUES (1)) FROM a": "A CTE needs a SELECT",
		"SELECT 1\x00":      "NUL byte",
		"SELECT '\xff'":     "not UTF-8",
		"1":                 "syntax error",
		"SELECT U&'\\0061'": "U&",
		"SELECT ?, $a":      "Mixing named and positional parameters",
	}
	for sql, want := range tests {
		s := owner()
		s.Prepared = true
		_, err := g.Check(t.Context(), sql, s)
		if code(err) != "syntax" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v (%s), want a syntax error with %q", sql, err, code(err), want)
		}
	}
}
