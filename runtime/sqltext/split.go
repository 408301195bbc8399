package sqltext

import (
	"errors"
	"strings"
)

// First returns the length of the first statement of a text, with the semicolon that ends it, and its
// tokens without that semicolon. The length is 0 while the statement does not end: at the end of the text
// in the middle of it, also inside a literal, a quoted name or a comment. The error is an *Error about
// something that no further text mends.
func First(sql string) (length int, tokens []Token, err error) {
	l := lexer{text: sql}
	for {
		t, ok, err := l.next()
		var broken *Error
		switch {
		case errors.As(err, &broken) && strings.HasSuffix(broken.Message, notClosed):
			return 0, tokens, nil
		case err != nil:
			return 0, nil, err
		case !ok:
			return 0, tokens, nil
		case t.IsPunct(";"):
			return t.End, tokens, nil
		}
		tokens = append(tokens, t)
	}
}

// notClosed ends the messages about what is open at the end of a text.
const notClosed = "that is not closed"
