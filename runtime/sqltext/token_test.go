package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/sqltext"
)

// texts joins the texts of tokens so that their borders show.
func texts(tokens []sqltext.Token) string {
	var parts []string
	for _, t := range tokens {
		parts = append(parts, t.Text)
	}
	return strings.Join(parts, " ‖ ")
}

func TestTokens(t *testing.T) {
	// Each was compared with DuckDB 1.5's own tokenizer.
	tests := map[string]struct{ sql, want string }{
		"words":                 {`SELECT a.b FROM "T ""x"""`, `SELECT ‖ a ‖ . ‖ b ‖ FROM ‖ "T ""x"""`},
		"doubled quote":         {`'it''s' 'x'`, `'it''s' ‖ 'x'`},
		"joined over a line":    {"'a'\n  'b'", "'a'\n  'b'"},
		"joined over comment":   {"'a' -- x\n 'b'", "'a' -- x\n 'b'"},
		"not joined by block":   {"'a' /* \n */ 'b'", "'a' ‖ 'b'"},
		"backslash is plain":    {`'a\' || 'b'`, `'a\' ‖ || ‖ 'b'`},
		"escape":                {`E'a\'b' e'\\' x`, `E'a\'b' ‖ e'\\' ‖ x`},
		"escape goes on":        {"E'a'\n'\\'' x", "E'a'\n'\\'' ‖ x"},
		"escape is no suffix":   {`xe'\' y`, `xe ‖ '\' ‖ y`},
		"after a number":        {`1e'\'' x`, `1 ‖ e'\'' ‖ x`},
		"after a dollar":        {`$e'\'' x`, `$ ‖ e'\'' ‖ x`},
		"bits do not double":    {`x'a''b'`, `x'a' ‖ 'b'`},
		"national":              {`n'\'`, `n ‖ '\'`},
		"dollar":                {`$$a'b$$ $t$ $$ $x$ $t$`, `$$a'b$$ ‖ $t$ $$ $x$ $t$`},
		"dollar in a word":      {`a$b$c$b$`, `a$b$c$b$`},
		"parameters":            {`? ?1 $1 $na_me $1_0 ?+?`, `? ‖ ?1 ‖ $1 ‖ $na_me ‖ $1_0 ‖ ? ‖ + ‖ ?`},
		"nested comment":        {`a /* /* ' */ " */ b`, `a ‖ b`},
		"slash star slash":      {`a /*/ b */ c`, `a ‖ c`},
		"comment in operator":   {"a+--b\n+/*c*/-d", "a ‖ + ‖ + ‖ - ‖ d"},
		"operators":             {`a<=-1 @-b ->>'x' => ** // ~~*`, `a ‖ <= ‖ - ‖ 1 ‖ @- ‖ b ‖ ->> ‖ 'x' ‖ => ‖ ** ‖ // ‖ ~~*`},
		"numbers":               {`1.5e-3 .5 1_000 1..2 1.e5 1__0`, `1.5e-3 ‖ .5 ‖ 1_000 ‖ 1 ‖ .. ‖ 2 ‖ 1.e5 ‖ 1 ‖ __0`},
		"colons":                {`a::b :=:c`, `a ‖ :: ‖ b ‖ := ‖ : ‖ c`},
		"Unicode blanks":        {"SELECT\u00a01\u200b,\ufeff2\u3000;", "SELECT ‖ 1 ‖ , ‖ 2 ‖ ;"},
		"blank ends a word":     {"a\u2007b", "a ‖ b"},
		"other Unicode is word": {"é\u0085\u2028x", "é\u0085\u2028x"},
		"comment to the end":    {"a -- b", "a"},
		"carriage return":       {"a -- b\rc", "a ‖ c"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tokens, err := sqltext.Tokens(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, texts(tokens)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokensRefuses(t *testing.T) {
	tests := map[string]struct {
		sql    string
		offset int
	}{
		"string":          {`a 'b`, 2},
		"escaped end":     {`E'b\'`, 0},
		"name":            {`a "b`, 2},
		"empty name":      {`""`, 0},
		"comment":         {`a /* /* */`, 2},
		"dollar":          {`$a$ $b$`, 0},
		"NUL":             {"a\x00b", 1},
		"NUL in a string": {"'a\x00b'", 2},
		"NUL in comment":  {"/*\x00*/", 2},
		"not UTF-8":       {"a \xff", 2},
		"U& string":       {`U&'\0061'`, 0},
		"U& name":         {`u&"\0061"`, 0},
		"blank in name":   {"\"a\u00a0b\"", 0},
		"blank in tag":    {"$a\u00a0$x$a\u00a0$", 0},
		"control":         {"a\vb", 1},
		"operator":        {"a" + strings.Repeat("+", 300), 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := sqltext.Tokens(test.sql)
			var e *sqltext.Error
			if !errors.As(err, &e) || e.Offset != test.offset {
				t.Errorf("got error %v, want one at byte %d", err, test.offset)
			}
		})
	}
}

func TestToken(t *testing.T) {
	tokens, err := sqltext.Tokens(`SeLecT "SELECT" "a""B" Straße`)
	if err != nil {
		t.Fatal(err)
	}
	if !tokens[0].Is("select") || tokens[1].Is("select") {
		t.Errorf("Is: only the unquoted word is a keyword")
	}
	if tokens[2].Name() != `a"B` || tokens[3].Name() != "Straße" {
		t.Errorf("Name: got %q and %q", tokens[2].Name(), tokens[3].Name())
	}
	if got := sqltext.Fold("ABCÄ\u212a"); got != "abcÄ\u212a" {
		t.Errorf("Fold changes more than A to Z: %q", got)
	}
}

func TestSplit(t *testing.T) {
	tests := map[string]struct {
		sql  string
		want []string
	}{
		"none":     {" ; -- x\n;/*;*/", nil},
		"one":      {"select 1", []string{"select 1"}},
		"two":      {";select ';' ;; select \";\" /* ; */ x ;", []string{"select ';'", "select \";\" /* ; */ x"}},
		"brackets": {"(select 1;", []string{"(select 1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sqltext.Split(test.sql)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClean(t *testing.T) {
	sql := "a/* '\n */b\u00a0-- c\n'--' \"/*\" d"
	clean, _, err := sqltext.Clean(sql)
	if err != nil {
		t.Fatal(err)
	}
	if want := "a        b      \n'--' \"/*\" d"; clean != want {
		t.Errorf("got %q, want %q", clean, want)
	}
	if len(clean) != len(sql) {
		t.Errorf("offsets moved: %d bytes of %d", len(clean), len(sql))
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{
		"select 1", `E'a\'b' /* /* */ */ -- x`, "$t$ x $t$ $1 ?", "'a'\n'b'", "a+-- b\n+/**/-c", "\u00a0a\u200b\"b\"\"c\"",
		"x'1''2' $e'\\''", "1.5e-3..2 a$b$", "U&'x'", "/*/ */", "\xff\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		clean, tokens, err := sqltext.Clean(sql)
		if err != nil {
			return
		}
		at := 0
		for _, token := range tokens {
			if token.Start < at || token.End <= token.Start || token.Text != sql[token.Start:token.End] {
				t.Fatalf("token %+v after byte %d", token, at)
			}
			if gap := strings.Trim(clean[at:token.Start], " \n\r"); gap != "" {
				t.Fatalf("gap before %+v holds %q", token, gap)
			}
			at = token.End
		}
		if gap := strings.Trim(clean[at:], " \n\r"); gap != "" {
			t.Fatalf("the last gap holds %q", gap)
		}
		again, err := sqltext.Tokens(clean)
		if err != nil {
			t.Fatalf("the cleaned text has no tokens: %v", err)
		}
		if diff := cmp.Diff(tokens, again); diff != "" {
			t.Fatalf("cleaning changes the tokens:\n%s", diff)
		}
	})
}
