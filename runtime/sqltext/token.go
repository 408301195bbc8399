package sqltext

import (
	"fmt"
	"strings"
)

// Kind is the kind of a Token.
type Kind int

const (
	// Word is an unquoted identifier or keyword.
	Word Kind = iota + 1
	// Quoted is an identifier in double quotes.
	Quoted
	// String is a string literal of any form: '…', E'…', X'…', B'…', $tag$…$tag$.
	String
	// Number is a numeric literal without a sign.
	Number
	// Parameter is ?, ?1, $1 or $name.
	Parameter
	// Operator is one operator, or one other character that DuckDB passes to its parser as it is.
	Operator
	// Punct is one of ( ) [ ] { } , ; . .. and the colon forms : :: :=
	Punct
)

// Token is one token of a text.
type Token struct {
	Kind Kind
	// Text is the token as written, with its quotes.
	Text string
	// Start and End are byte offsets into the text: text[Start:End] == Text.
	Start, End int
}

// Is reports whether the token is the unquoted word, in any case. The word is given in lower case.
func (t Token) Is(word string) bool {
	return t.Kind == Word && len(t.Text) == len(word) && Fold(t.Text) == word
}

// IsPunct reports whether the token is that punctuation or operator.
func (t Token) IsPunct(text string) bool {
	return (t.Kind == Punct || t.Kind == Operator) && t.Text == text
}

// Name returns the name that an identifier stands for, without quotes and in its own case. It is
// empty for tokens that are no identifier.
func (t Token) Name() string {
	switch t.Kind {
	case Word:
		return t.Text
	case Quoted:
		return strings.ReplaceAll(t.Text[1:len(t.Text)-1], `""`, `"`)
	}
	return ""
}

// Fold returns the form in which DuckDB compares names: A to Z in lower case and nothing else changed.
func Fold(name string) string {
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			return foldFrom(name, i)
		}
	}
	return name
}

func foldFrom(name string, i int) string {
	b := []byte(name)
	for ; i < len(b); i++ {
		if b[i] >= 'A' && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}

// Error says why a text has no tokens.
type Error struct {
	// Offset is where in the text, in bytes.
	Offset int
	// Message says what is wrong and holds nothing of the text.
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s at byte %d", e.Message, e.Offset) }

// Tokens returns the tokens of a text, without blanks and comments. The error is an *Error: what is
// open at the end, NUL, bytes that are not UTF-8, U&"…" and U&'…' (whose meaning hangs on a later
// UESCAPE), and Unicode blanks in places where DuckDB itself reads them in two ways.
func Tokens(sql string) ([]Token, error) {
	tokens := make([]Token, 0, len(sql)/5+4)
	l := lexer{text: sql}
	for {
		t, ok, err := l.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return tokens, nil
		}
		tokens = append(tokens, t)
	}
}

// Clean returns the tokens of a text and the text with spaces in place of every comment and Unicode
// blank, so that offsets stay what they were. What reads it needs no notion of a comment.
func Clean(sql string) (string, []Token, error) {
	tokens, err := Tokens(sql)
	if err != nil {
		return "", nil, err
	}
	out := []byte(sql)
	at := 0
	for _, t := range tokens {
		blank(out, sql, at, t.Start)
		at = t.End
	}
	blank(out, sql, at, len(sql))
	return string(out), tokens, nil
}

// blank writes spaces over the gap between two tokens. Line ends outside block comments stay: between
// two string literals they join the literals, which a block comment does not.
func blank(out []byte, sql string, from, to int) {
	for i := from; i < to; {
		n := 1
		keep := false
		switch {
		case strings.HasPrefix(sql[i:], "--"):
			n = lineComment(sql[i:])
		case strings.HasPrefix(sql[i:], "/*"):
			n, _ = blockComment(sql[i:])
		default:
			keep = sql[i] == '\n' || sql[i] == '\r'
		}
		for j := i; j < i+n && !keep; j++ {
			out[j] = ' '
		}
		i += n
	}
}

// Split returns the statements of a text that is divided by semicolons, without those that are empty
// but for blanks and comments. A statement keeps the comments inside it.
func Split(sql string) ([]string, error) {
	tokens, err := Tokens(sql)
	if err != nil {
		return nil, err
	}
	var out []string
	first := -1
	for i, t := range tokens {
		if t.IsPunct(";") {
			if first >= 0 {
				out = append(out, sql[tokens[first].Start:tokens[i-1].End])
			}
			first = -1
			continue
		}
		if first < 0 {
			first = i
		}
	}
	if first >= 0 {
		out = append(out, sql[tokens[first].Start:tokens[len(tokens)-1].End])
	}
	return out, nil
}
