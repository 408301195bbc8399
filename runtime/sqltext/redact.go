package sqltext

import (
	"strings"
	"unicode/utf8"

	"github.com/qod-io/qod/runtime/wire"
)

// Redact returns a form of the text for history and logs, at most max bytes: literals are replaced by
// ?, comments dropped, blanks folded. The values of SET and PRAGMA and all of CREATE SECRET and ATTACH
// are left out, quoted or not. Of a text that cannot be read only its probable class remains.
func Redact(sql string, max int) string {
	var out strings.Builder
	l := lexer{text: sql}
	secret := secrecy{}
	end := 0
	for out.Len() <= max {
		t, ok, err := l.next()
		if err != nil {
			return cut(unreadable(Guess(sql)), max)
		}
		if !ok {
			break
		}
		if out.Len() > 0 && t.Start > end {
			out.WriteByte(' ')
		}
		end = t.End
		out.WriteString(secret.text(t))
	}
	return cut(out.String(), max)
}

func unreadable(class wire.Class) string { return "(" + string(class) + " statement, unreadable)" }

// cut returns at most max bytes of s and no part of a rune.
func cut(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// secrecy decides token by token what of a statement may be shown. Its zero value is the start of one.
type secrecy struct {
	words  int    // seen in this statement
	first  string // word of the statement
	hidden bool   // from here to the end of the statement nothing is shown
}

func (s *secrecy) text(t Token) string {
	if t.IsPunct(";") {
		*s = secrecy{}
		return ";"
	}
	if s.hidden {
		return hide(t)
	}
	s.words++
	if s.words == 1 {
		s.first = Fold(t.Text)
		s.hidden = s.first == "attach"
	}
	switch {
	case (s.first == "set" || s.first == "pragma") && (t.IsPunct("=") || t.IsPunct("(") || t.Is("to")):
		s.hidden = true
	case s.first == "set" && s.words == 3 && !t.IsPunct("=") && !t.IsPunct("."):
		s.hidden = true // SET SCHEMA x, SET TIME ZONE x, SET VARIABLE x = y
	case s.first == "create" && t.Is("secret") && s.words <= 6:
		s.hidden = true
	}
	switch t.Kind {
	case String, Number:
		return "?"
	}
	return t.Text
}

// hide shows only punctuation of the token.
func hide(t Token) string {
	if t.Kind == Punct {
		return t.Text
	}
	return "?"
}

// Fingerprint is equal for statements that differ only in literals, in the lengths of lists of
// literals, in blanks, comments and the case of unquoted words. It is the same in every process.
func Fingerprint(sql string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	add := func(text string) {
		for i := range len(text) {
			sum = (sum ^ uint64(text[i])) * prime
		}
		sum = (sum ^ 0xFF) * prime
	}
	l := lexer{text: sql}
	literal, comma := false, false // what the last tokens were
	for {
		t, ok, err := l.next()
		if err != nil {
			add("unreadable")
			return sum
		}
		if !ok {
			return sum
		}
		isLiteral := t.Kind == String || t.Kind == Number || t.Kind == Parameter
		switch {
		case literal && t.IsPunct(","):
			comma = true
			continue
		case comma && isLiteral:
			comma = false
			continue
		case comma:
			add(",")
		}
		literal, comma = isLiteral, false
		if isLiteral {
			add("?")
			continue
		}
		if t.Kind == Word {
			add(Fold(t.Text))
			continue
		}
		add(t.Text)
	}
}
