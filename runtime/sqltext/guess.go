package sqltext

import "github.com/qod-io/qod/runtime/wire"

// Guess says from the first tokens what a statement probably does. It is for routing only: the node
// decides, and a wrong guess is routed again. Text that cannot be read counts as a write.
func Guess(sql string) wire.Class {
	l := lexer{text: sql}
	return guess(&l)
}

func guess(l *lexer) wire.Class {
	t, ok, err := l.next()
	for ok && (t.IsPunct("(") || t.IsPunct(";")) {
		t, ok, err = l.next()
	}
	if err != nil {
		return wire.Write
	}
	if !ok {
		return wire.Read
	}
	if t.Kind != Word {
		return wire.Write
	}
	switch word := Fold(t.Text); word {
	case "with":
		return guessWith(l)
	case "explain":
		return guessExplain(l)
	default:
		return classOf(word)
	}
}

// classOf returns the class of a statement that begins with the word.
func classOf(word string) wire.Class {
	switch word {
	case "select", "from", "values", "table", "describe", "desc", "summarize", "show", "pivot", "unpivot",
		"pivot_wider", "pivot_longer":
		return wire.Read
	case "create", "alter", "drop", "comment":
		return wire.DDL
	case "begin", "start", "commit", "end", "rollback", "abort":
		return wire.Transaction
	case "set", "reset", "use", "pragma", "prepare", "execute", "deallocate":
		return wire.Setting
	}
	return wire.Write
}

// guessWith finds the word after the list of common table expressions.
func guessWith(l *lexer) wire.Class {
	depth, closed := 0, false
	for {
		t, ok, err := l.next()
		if err != nil || !ok {
			return wire.Write
		}
		switch {
		case t.IsPunct("("):
			if closed && depth == 0 {
				return wire.Read // WITH … AS (…) (SELECT …)
			}
			depth++
		case t.IsPunct(")"):
			depth--
		case depth == 0 && closed && t.Kind == Word && !t.Is("as") && !t.Is("using"):
			return classOf(Fold(t.Text))
		}
		// A list of columns closes too; AS, USING or a comma then says that the list goes on.
		closed = t.IsPunct(")") && depth == 0
	}
}

// guessExplain returns Read unless the statement is executed as well.
func guessExplain(l *lexer) wire.Class {
	analyze := false
	for {
		before := l.pos
		t, ok, err := l.next()
		if err != nil || !ok {
			return wire.Read
		}
		switch {
		case t.Is("analyze"), t.Is("analyse"):
			analyze = true
		case t.Is("verbose"):
		case t.IsPunct("(") && !analyze:
			if !skipOptions(l, &analyze) {
				l.pos = before
				return wire.Read
			}
		default:
			if !analyze {
				return wire.Read
			}
			l.pos = before
			return guess(l)
		}
	}
}

// skipOptions goes over (FORMAT json, ANALYZE) and reports whether it found its end.
func skipOptions(l *lexer, analyze *bool) bool {
	for {
		t, ok, err := l.next()
		if err != nil || !ok {
			return false
		}
		if t.IsPunct(")") {
			return true
		}
		*analyze = *analyze || t.Is("analyze") || t.Is("analyse")
	}
}
