package sqltext

import (
	"strings"
	"unicode/utf8"
)

// lexer yields tokens one by one. Its rules are those of DuckDB 1.5's scan.l, with the pass before it
// that turns Unicode blanks into spaces.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) fail(at int, message string) (Token, bool, error) {
	return Token{}, false, &Error{Offset: at, Message: message}
}

// next returns the next token; ok is false at the end of the text.
func (l *lexer) next() (t Token, ok bool, err error) {
	if err := l.skip(); err != nil {
		return Token{}, false, err
	}
	if l.pos == len(l.text) {
		return Token{}, false, nil
	}
	start := l.pos
	kind, n, message := scan(l.text[start:])
	if message != "" {
		return l.fail(start, message)
	}
	l.pos = start + n
	t = Token{Kind: kind, Text: l.text[start:l.pos], Start: start, End: l.pos}
	if i := strings.IndexByte(t.Text, 0); i >= 0 {
		return l.fail(start+i, "NUL byte")
	}
	if !utf8.ValidString(t.Text) {
		return l.fail(start, "bytes that are not UTF-8")
	}
	return t, true, nil
}

// skip goes over blanks and comments.
func (l *lexer) skip() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		n := blankLen(rest)
		switch {
		case n > 0:
		case strings.HasPrefix(rest, "--"):
			n = lineComment(rest)
		case strings.HasPrefix(rest, "/*"):
			var closed bool
			if n, closed = blockComment(rest); !closed {
				return &Error{Offset: l.pos, Message: "comment that is not closed"}
			}
		default:
			return nil
		}
		if i := strings.IndexByte(rest[:n], 0); i >= 0 {
			return &Error{Offset: l.pos + i, Message: "NUL byte"}
		}
		if !utf8.ValidString(rest[:n]) {
			return &Error{Offset: l.pos, Message: "bytes that are not UTF-8"}
		}
		l.pos += n
	}
	return nil
}

// blankLen returns the length of the one blank that s begins with, or 0.
func blankLen(s string) int {
	switch s[0] {
	case ' ', '\t', '\n', '\r', '\f':
		return 1
	case 0xC2, 0xE2, 0xE3, 0xEF:
		return unicodeBlankLen(s)
	}
	return 0
}

// unicodeBlankLen is blankLen for the blanks beyond ASCII.
func unicodeBlankLen(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == 0xA0, r >= 0x2000 && r <= 0x200B, r == 0x202F, r == 0x205F, r == 0x2060, r == 0x3000, r == 0xFEFF:
		return n
	}
	return 0
}

// hasUnicodeBlank reports whether there is a Unicode blank anywhere in s.
func hasUnicodeBlank(s string) bool {
	for i := range len(s) {
		if s[i] >= 0xC2 && unicodeBlankLen(s[i:]) > 0 {
			return true
		}
	}
	return false
}

func lineComment(s string) int {
	if i := strings.IndexAny(s, "\r\n"); i >= 0 {
		return i
	}
	return len(s)
}

// blockComment returns the length of the comment, which may hold others, and whether it is closed.
func blockComment(s string) (n int, closed bool) {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(s), false
}

// scan returns kind and length of the token that s begins with, or a message.
func scan(s string) (Kind, int, string) {
	c := s[0]
	switch {
	case c == '\'':
		return quoted(s, 1, '\'')
	case c == '"':
		return scanQuoted(s)
	case c == '$':
		return scanDollar(s)
	case c == '?':
		return Parameter, 1 + digits(s[1:]), ""
	case isDigit(c), c == '.' && len(s) > 1 && isDigit(s[1]):
		return Number, number(s), ""
	case isWordStart(c):
		return scanWord(s)
	case strings.HasPrefix(s, ".."):
		return Punct, 2, ""
	case strings.IndexByte("()[]{},;.", c) >= 0:
		return Punct, 1, ""
	case c == ':':
		if len(s) > 1 && (s[1] == ':' || s[1] == '=') {
			return Punct, 2, ""
		}
		return Punct, 1, ""
	case isOperator(c):
		return operator(s)
	case c == 0:
		return 0, 0, "NUL byte"
	case c < ' ' || c == 0x7F:
		return 0, 0, "control character"
	}
	return Operator, 1, "" // # or backslash: DuckDB's parser decides
}

// scanWord reads an identifier or keyword, or a literal with a letter before its quote.
func scanWord(s string) (Kind, int, string) {
	if len(s) > 1 && s[1] == '\'' {
		switch s[0] {
		case 'e', 'E':
			return quoted(s, 2, '\\')
		case 'x', 'X', 'b', 'B':
			return quoted(s, 2, 0)
		}
	}
	if len(s) > 2 && (s[0] == 'u' || s[0] == 'U') && s[1] == '&' && (s[2] == '\'' || s[2] == '"') {
		return 0, 0, "U& with Unicode escapes, which is not accepted"
	}
	return Word, wordLen(s), ""
}

// wordLen returns the length of the identifier that s begins with: up to a Unicode blank at most.
func wordLen(s string) int {
	i := 1
	if s[0] >= 0x80 {
		_, i = utf8.DecodeRuneInString(s)
	}
	for i < len(s) {
		c := s[i]
		if c >= 0x80 {
			if unicodeBlankLen(s[i:]) > 0 {
				return i
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			i += n
			continue
		}
		if !isWordStart(c) && !isDigit(c) && c != '$' {
			return i
		}
		i++
	}
	return i
}

// quoted reads a string literal whose contents start at i. The escape is a quote for doubled quotes, a
// backslash for those and backslashes, 0 for none. A literal goes on after a gap with a line end.
func quoted(s string, i int, escape byte) (Kind, int, string) {
	for i < len(s) {
		switch {
		case s[i] == '\\' && escape == '\\':
			i += 2
		case s[i] != '\'':
			i++
		case escape != 0 && i+1 < len(s) && s[i+1] == '\'':
			i += 2
		default:
			next := continued(s[i+1:])
			if next == 0 {
				return String, i + 1, ""
			}
			i += 1 + next
		}
	}
	return 0, 0, "string that is not closed"
}

// continued returns the length of the gap and the quote that make the literal before s go on, or 0.
func continued(s string) int {
	line := false
	for i := 0; i < len(s); {
		if s[i] == '\'' {
			if line {
				return i + 1
			}
			return 0
		}
		n := blankLen(s[i:])
		if n == 0 && strings.HasPrefix(s[i:], "--") {
			n = lineComment(s[i:])
			if i+n == len(s) {
				return 0
			}
		}
		if n == 0 {
			return 0
		}
		line = line || s[i] == '\n' || s[i] == '\r'
		i += n
	}
	return 0
}

// scanQuoted reads an identifier in double quotes. DuckDB's pass over Unicode blanks loses count of
// quotes after some literals, so that a blank in a name could be read in two ways: it is refused.
func scanQuoted(s string) (Kind, int, string) {
	for i := 1; i < len(s); i++ {
		if s[i] != '"' {
			continue
		}
		if i+1 < len(s) && s[i+1] == '"' {
			i++
			continue
		}
		if i == 1 {
			return 0, 0, "empty name"
		}
		if hasUnicodeBlank(s[:i]) {
			return 0, 0, "Unicode blank in a quoted name, which is not accepted"
		}
		return Quoted, i + 1, ""
	}
	return 0, 0, "quoted name that is not closed"
}

// scanDollar reads $1, $name or $tag$…$tag$.
func scanDollar(s string) (Kind, int, string) {
	if len(s) > 1 && isDigit(s[1]) {
		return Parameter, 1 + digits(s[1:]), ""
	}
	i := 1
	for i < len(s) && (isWordStart(s[i]) || i > 1 && isDigit(s[i])) {
		i++
	}
	if hasUnicodeBlank(s[:i]) {
		return 0, 0, "Unicode blank after a dollar sign, which is not accepted"
	}
	if i < len(s) && s[i] == '$' {
		tag := s[:i+1]
		end := strings.Index(s[i+1:], tag)
		if end < 0 {
			return 0, 0, "dollar-quoted string that is not closed"
		}
		return String, i + 1 + end + len(tag), ""
	}
	if i == 1 {
		return Operator, 1, ""
	}
	kind, n, _ := scanWord(s[1:])
	if kind != Word {
		return Operator, 1, "" // $E'…' is a dollar sign and a literal
	}
	return Parameter, 1 + n, ""
}

// digits returns the length of digits with single underscores between them.
func digits(s string) int {
	i := 0
	for i < len(s) && (isDigit(s[i]) || s[i] == '_' && i > 0 && s[i-1] != '_' && i+1 < len(s) && isDigit(s[i+1])) {
		i++
	}
	return i
}

func number(s string) int {
	i := digits(s)
	if i < len(s) && s[i] == '.' && !strings.HasPrefix(s[i:], "..") {
		i++
		i += digits(s[i:])
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if n := digits(s[j:]); n > 0 {
			return j + n
		}
	}
	return i
}

// maxOperator bounds characters of operators in a row, in bytes. DuckDB takes time by its square.
const maxOperator = 256

// operator reads an operator: it ends before a comment, and a sign at its end belongs to what follows
// unless the operator has a character that makes it DuckDB's own.
func operator(s string) (Kind, int, string) {
	i := 0
	for i < len(s) && isOperator(s[i]) && !strings.HasPrefix(s[i:], "--") && !strings.HasPrefix(s[i:], "/*") {
		if i++; i > maxOperator {
			return 0, 0, "operator that is too long"
		}
	}
	if !strings.ContainsAny(s[:i], "~!@^&|`%") {
		i = max(1, len(strings.TrimRight(s[:i], "+-")))
	}
	return Operator, i, ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isOperator(c byte) bool { return strings.IndexByte("~!@^&|`+-*/%<>=", c) >= 0 }
