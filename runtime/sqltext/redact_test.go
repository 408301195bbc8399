package sqltext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

func TestGuess(t *testing.T) {
	tests := map[wire.Class][]string{
		wire.Read: {
			"select 1", "/* x */ FROM t", "((select 1))", "; values (1)", "table t", "describe t", "summarize t", "show tables",
			"with a as (select 1) select 2", "with recursive a(x) as (select 1), b as not materialized (from a) from b",
			"with a as (select 1) (select 2)", "with a(x) using key (x) as (select 1) select 2",
			"explain insert into t values (1)", "explain (format json) delete from t", "explain analyze select 1",
			"pivot t on x in (1)", "", "-- nothing", "select 'open\x00",
		},
		wire.Write: {
			"insert into t values (1)", "UPDATE t set a=1", "delete from t", "truncate t", "merge into t using u on x when matched then delete",
			"with a as (select 1) insert into t from a", "with a(x) as (select 1) delete from t", "explain analyze delete from t",
			"explain (analyze) update t set a = 1", "copy t to 'x'", "call f()", "attach 'x'", "nonsense", "'open",
			"\"select\" 1",
		},
		wire.DDL:         {"create table t (a int)", "alter table t add b int", "drop view v", "comment on table t is 'x'"},
		wire.Transaction: {"begin", "start transaction", "commit", "END", "rollback", "abort"},
		wire.Setting:     {"set schema = 'x'", "reset x", "use lake", "pragma x", "prepare p as select 1", "execute p"},
	}
	for want, list := range tests {
		for _, sql := range list {
			if got := sqltext.Guess(sql); got != want {
				t.Errorf("%q: got %s, want %s", sql, got, want)
			}
		}
	}
}

func TestRedact(t *testing.T) {
	tests := map[string]struct {
		sql  string
		max  int
		want string
	}{
		"literals":     {`select 'a', 1.5, E'\'', $$x$$, "c", $1, x'AB' from t`, 99, `select ?, ?, ?, ?, "c", $1, ? from t`},
		"blanks":       {"select\n\t 1 /* 'secret' */ + -- 2\n 3", 99, "select ? + ?"},
		"tight":        {"f(a,1)::int", 99, "f(a,?)::int"},
		"cut":          {"select aaaa", 9, "select aa"},
		"cut in rune":  {"select ää", 8, "select "},
		"no room":      {"select 1", 0, ""},
		"unreadable":   {"select 'secret", 99, "(read statement, unreadable)"},
		"unreadable 2": {"frobnicate 'secret", 99, "(write statement, unreadable)"},
		"set":          {`set s3_key = "AKIA"; select "x"`, 99, `set s3_key = ?; select "x"`},
		"set word":     {`SET x TO secret`, 99, `SET x TO ?`},
		"set variable": {`set variable v = secret`, 99, `set variable v ? ?`},
		"pragma":       {`pragma add_parquet_key(k, "secret")`, 99, `pragma add_parquet_key(?, ?)`},
		"secret":       {`CREATE OR REPLACE SECRET s (type s3, secret "abc")`, 99, `CREATE OR REPLACE SECRET ? (? ?, ? ?)`},
		"attach":       {`attach "dbname=x password=y" as z`, 99, `attach ? ? ?`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sqltext.Redact(test.sql, test.max)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	same := [][]string{
		{"select * from t where a = 1", "SELECT *\n FROM t /* x */ WHERE a = 'other'"},
		{"select 1 where a in (1, 2, 3)", "select 2 where a in (7)"},
		{"insert into t values (1, 'a'), (2, 'b')", "insert into t values (3, 'c'), (4, 'd')"},
		{"select $1", "select ?"},
	}
	for _, pair := range same {
		if sqltext.Fingerprint(pair[0]) != sqltext.Fingerprint(pair[1]) {
			t.Errorf("%q and %q differ", pair[0], pair[1])
		}
	}
	seen := map[uint64]string{}
	for _, sql := range []string{"select a", "select b", `select "A"`, "select 1, a", "select 1 a", "select a, 1", "select", "'", "select 1,"} {
		sum := sqltext.Fingerprint(sql)
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q are the same", sql, other)
		}
		seen[sum] = sql
	}
}

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{
		"select 'secretsecret'", "set x = secretsecret", `E'\'secretsecret'`, "$t$secretsecret$t$", "create secret (x 'secretsecret')",
		"'a'\n'secretsecret'", "$e'\\'secretsecret'", "1e'\\'secretsecret'", "/* ' */ 'secretsecret' -- '", "x'secret''secretsecret'",
	} {
		f.Add(seed, 200)
	}
	f.Fuzz(func(t *testing.T, sql string, limit int) {
		limit = max(0, min(limit, 1<<16))
		out := sqltext.Redact(sql, limit)
		if len(out) > limit {
			t.Fatalf("%d bytes, at most %d wanted", len(out), limit)
		}
		if utf8.ValidString(sql) && !utf8.ValidString(out) {
			t.Fatalf("a rune is cut: %q", out)
		}
		tokens, err := sqltext.Tokens(sql)
		if err != nil {
			return
		}
		var names strings.Builder
		for _, token := range tokens {
			if token.Kind != sqltext.String && token.Kind != sqltext.Number {
				names.WriteString(token.Text + " ")
			}
		}
		for _, token := range tokens {
			if token.Kind != sqltext.String || len(token.Text) < 14 {
				continue
			}
			content := token.Text[3 : len(token.Text)-3]
			if strings.Trim(content, "abcdefghijklmnopqrstuvwxyz") != "" {
				continue // what the output has of its own could look like it
			}
			if strings.Contains(out, content) && !strings.Contains(names.String(), content) {
				t.Fatalf("%q survives in %q", content, out)
			}
		}
	})
}
