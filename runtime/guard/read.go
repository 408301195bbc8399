package guard

import (
	"context"
	"fmt"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// read analyses one statement by its first word.
func (g *Guard) read(ctx context.Context, p *phrase) (*analysis, error) {
	p.a.SQL = p.slice(0, len(p.tokens))
	first := p.tokens[0]
	if first.IsPunct("(") {
		return p.a, g.readQuery(ctx, p)
	}
	switch word := sqltext.Fold(first.Text); {
	case first.Kind != sqltext.Word:
		return nil, syntaxError("syntax error at or near " + shorten(fmt.Sprintf("%q", first.Text), 64))
	case isQuery(word):
		return p.a, g.readQuery(ctx, p)
	case word == "with":
		if main := p.afterWith(); isQuery(main) || main == "(" || main == "" {
			return p.a, g.readQuery(ctx, p)
		}
		return p.a, g.readChange(ctx, p)
	case word == "explain":
		return g.readExplain(ctx, p)
	case isTransaction(word):
		return p.a, p.transaction()
	case word == "use":
		return p.a, p.use()
	case word == "set":
		return p.a, p.set()
	case isChange(word):
		return p.a, g.readChange(ctx, p)
	}
	return nil, p.refused()
}

// isQuery reports whether a statement that begins with the word is SELECT-like.
func isQuery(word string) bool {
	switch word {
	case "select", "from", "values", "table", "describe", "desc", "summarize", "show", "pivot", "pivot_wider",
		"unpivot", "pivot_longer":
		return true
	}
	return false
}

func isTransaction(word string) bool {
	switch word {
	case "begin", "start", "commit", "end", "rollback", "abort":
		return true
	}
	return false
}

func isChange(word string) bool {
	switch word {
	case "insert", "update", "delete", "truncate", "merge", "create", "alter", "drop":
		return true
	}
	return false
}

func (g *Guard) readQuery(ctx context.Context, p *phrase) error {
	p.a.Kind, p.a.Class = Select, wire.Read
	all := span{p.tokens[0].Start, p.tokens[len(p.tokens)-1].End}
	if err := g.query(ctx, whole(p.text, all), p.names, p.a); err != nil {
		return err
	}
	p.a.ReadOnly = true
	p.a.open = len(p.a.Tables) == 0
	return nil
}

// readChange analyses what changes the lake: by the grammar, and what is in it as one query.
func (g *Guard) readChange(ctx context.Context, p *phrase) error {
	if !p.opens() {
		return p.refused()
	}
	n, err := g.sandbox.count(ctx, p.a.SQL)
	if err != nil {
		return err
	}
	if n != 1 {
		return refuse(NotAllowed, "this form of %s is not allowed: DuckDB makes several statements of it", string(p.a.Kind))
	}
	if p.change(); p.refusal != nil {
		return p.refusal
	}
	query := p.compose()
	if query == nil {
		return nil
	}
	return g.query(ctx, query, p.names, p.a)
}

// readExplain analyses the statement that is explained. Only ANALYZE executes it.
func (g *Guard) readExplain(ctx context.Context, p *phrase) (*analysis, error) {
	p.pos = 1
	analyze := p.accept("analyze") || p.accept("analyse")
	if p.acceptPunct("(") {
		for first := true; p.refusal == nil && !p.acceptPunct(")"); first = false {
			if !first {
				p.expectPunct(",")
			}
			analyze = p.explainOption() || analyze
		}
	}
	if p.refusal != nil || p.pos == len(p.tokens) {
		return nil, refuse(NotAllowed, "this form of EXPLAIN is not allowed; "+
			"EXPLAIN [ANALYZE] [(FORMAT json)] statement is")
	}
	inner, err := g.read(ctx, &phrase{names: p.names, text: p.text, tokens: p.tokens[p.pos:], a: &analysis{}})
	if err != nil {
		return nil, err
	}
	switch inner.Kind {
	case Select, Insert, Update, Delete, Merge, CreateTableAs:
	default:
		return nil, refuse(NotAllowed, "EXPLAIN of %s is not allowed; of queries, INSERT, UPDATE, DELETE, "+
			"MERGE and CREATE TABLE AS it is",
			string(inner.Kind))
	}
	a := *inner
	a.SQL, a.Kind, a.Explains, a.Analyze, a.Returning = p.a.SQL, Explain, inner.Kind, analyze, false
	if !analyze {
		a.Class, a.ReadOnly, a.Leaves, a.Temporary = wire.Read, true, false, false
	}
	return &a, nil
}

// explainOption reads one option and reports whether it is ANALYZE. Every form of ANALYZE counts.
func (p *phrase) explainOption() bool {
	if p.accept("analyze") || p.accept("analyse") {
		_ = p.accept("true")
		return true
	}
	if !p.accept("format") {
		p.fail("FORMAT or ANALYZE")
		return false
	}
	t := p.peek()
	if t.Kind != sqltext.Word && t.Kind != sqltext.String {
		p.fail("a format")
	}
	p.pos++
	return false
}
