package guard

import (
	"context"
	"fmt"
	"strings"
)

// onlySelect is what json_serialize_sql says of any other statement.
const onlySelect = "Only SELECT statements can be serialized"

// query analyses a text that has to be one SELECT-like statement. It adds what the text touches to a.
func (g *Guard) query(ctx context.Context, c *composition, names resolver, a *analysis) error {
	tree, err := g.sandbox.parse(ctx, c.b.String())
	if err != nil {
		return err
	}
	w := &walker{reader: reader{text: tree}, words: g.words, names: names}
	if err := w.statements(); err != nil {
		return err
	}
	seen := make(map[Table]bool, len(w.tables))
	for _, r := range w.tables {
		known := seen[r.table]
		seen[r.table] = true
		if r.table.Name != "" {
			var refusal *Refusal
			if r.table, refusal = names.table(r.table); refusal != nil {
				return refusal
			}
		}
		r.at = c.origin(r.at)
		a.references = append(a.references, r)
		if !known {
			a.Tables = append(a.Tables, r.table)
		}
	}
	for _, one := range w.qualified {
		one.at = c.origin(one.at)
		a.columns = append(a.columns, one)
	}
	a.Parameters = a.Parameters || w.params
	return nil
}

// statements walks the tree, which has to be of exactly one statement.
func (w *walker) statements() error {
	var failed, kind, message string
	count := 0
	w.fields(func(key string) {
		switch key {
		case "error":
			failed = w.atom()
		case "error_message":
			message = w.str()
		case "statements":
			w.elements(func() {
				count++
				w.statement()
			})
		case "error_type":
			kind = w.str()
		default:
			// An error may have any other detail.
			if failed != "true" {
				w.unknown(key)
			}
			w.skip()
		}
	})
	switch {
	case w.refusal != nil:
		return w.refusal
	case failed == "true" && strings.HasPrefix(message, onlySelect):
		return refuse(NotAllowed, "this form of statement is not allowed; PIVOT needs its values, "+
			"as in PIVOT … ON x IN (…)")
	case failed == "true" && !isSyntax(kind):
		return fmt.Errorf("%w: %s", ErrParser, shorten(message, maxMessage))
	case failed == "true":
		return syntaxError(message)
	case w.bad || failed != "false" || w.pos != len(w.text):
		return refuse(Unknown, "the statement cannot be read (its syntax tree ends early)")
	case count != 1:
		return refuse(Multiple, "one statement at a time, please")
	}
	return nil
}

// isSyntax reports whether DuckDB blames the text, and not its own memory or state.
func isSyntax(kind string) bool {
	switch kind {
	case "parser", "syntax error", "not implemented", "invalid input", "invalid", "conversion", "out of range", "binder":
		return true
	}
	return false
}

func (w *walker) statement() {
	w.fields(func(key string) {
		switch key {
		case "node":
			w.value(key)
		case "named_param_map":
			w.params = true
			w.skip()
		default:
			w.unknown(key)
		}
	})
}
