package guard

import (
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// phrase reads one statement by its tokens and collects the expressions and queries in it. It works on
// text without comments, so that what it cuts out means the same to DuckDB where it is put together.
// DuckDB has accepted the whole statement before the grammar is tried: the grammar has to tell apart
// only what is well-formed.
type phrase struct {
	names   resolver
	text    string
	tokens  []sqltext.Token
	pos     int
	a       *analysis
	refusal *Refusal

	with        span    // WITH and its list
	expressions []piece // expressions anywhere
	from        piece   // tables, as after FROM
	order       span    // as after ORDER BY
}

// slice returns the text of the tokens from i to j.
func (p *phrase) slice(i, j int) string {
	s := p.between(i, j)
	return p.text[s.from:s.to]
}

// between returns the span of the tokens from i to j.
func (p *phrase) between(i, j int) span {
	if i >= j {
		return span{}
	}
	return span{p.tokens[i].Start, p.tokens[j-1].End}
}

// fail refuses the statement: something else was wanted here.
func (p *phrase) fail(want string) {
	if p.refusal != nil {
		return
	}
	near := "its end"
	if p.pos < len(p.tokens) {
		near = p.tokens[p.pos].Text
		if k := p.tokens[p.pos].Kind; k == sqltext.String || k == sqltext.Number {
			near = "a literal"
		}
	}
	kind := string(p.a.Kind)
	if kind == "" {
		kind = strings.ToUpper(p.tokens[0].Text)
	}
	p.refusal = refuse(NotAllowed, "this form of %s is not allowed: near %q only %s is", kind, near, want)
}

func (p *phrase) peek() sqltext.Token {
	if p.pos < len(p.tokens) {
		return p.tokens[p.pos]
	}
	return sqltext.Token{}
}

// next reports whether the words come next.
func (p *phrase) next(words ...string) bool {
	for i, w := range words {
		if p.pos+i >= len(p.tokens) || !p.tokens[p.pos+i].Is(w) {
			return false
		}
	}
	return true
}

// accept goes over the words if they come next.
func (p *phrase) accept(words ...string) bool {
	if p.refusal != nil || !p.next(words...) {
		return false
	}
	p.pos += len(words)
	return true
}

func (p *phrase) expect(words ...string) {
	if !p.accept(words...) {
		p.fail(strings.ToUpper(strings.Join(words, " ")))
	}
}

func (p *phrase) acceptPunct(text string) bool {
	if p.refusal != nil || !p.peek().IsPunct(text) {
		return false
	}
	p.pos++
	return true
}

func (p *phrase) expectPunct(text string) {
	if !p.acceptPunct(text) {
		p.fail(text)
	}
}

// done refuses what is left of the statement.
func (p *phrase) done() {
	if p.refusal == nil && p.pos < len(p.tokens) {
		p.fail("the end")
	}
}

// word reads one identifier, quoted or not.
func (p *phrase) word() string {
	t := p.peek()
	if !p.isName(t) {
		p.fail("a name")
		return ""
	}
	p.pos++
	return t.Name()
}

func (p *phrase) isName(t sqltext.Token) bool {
	return t.Kind == sqltext.Quoted || t.Kind == sqltext.Word && !p.names.builtin.reserved[sqltext.Fold(t.Text)]
}

// path reads a name of at most so many parts.
func (p *phrase) path(limit int) []string {
	parts := []string{p.word()}
	for p.acceptPunct(".") {
		parts = append(parts, p.word())
	}
	if len(parts) > limit {
		p.pos--
		p.fail("a name of fewer parts")
	}
	return parts
}

// paths reads a list of names with commas between them.
func (p *phrase) paths(limit int) [][]string {
	list := [][]string{p.path(limit)}
	for p.acceptPunct(",") {
		if p.peek().IsPunct(")") {
			break // DuckDB lets a list end in a comma
		}
		list = append(list, p.path(limit))
	}
	return list
}

// columns goes over a list of columns in brackets.
func (p *phrase) columns() {
	p.expectPunct("(")
	p.paths(8)
	p.expectPunct(")")
}

// table reads the name of a table that the statement changes.
func (p *phrase) table(privilege string) {
	at := p.peek().Start
	parts := p.path(3)
	if p.refusal != nil {
		return
	}
	t := Table{Name: parts[len(parts)-1], Privilege: privilege}
	if len(parts) > 1 {
		t.Schema = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		t.Catalog = parts[0]
	}
	t, p.refusal = p.names.table(t)
	if sqltext.Fold(t.Catalog) == temporary {
		p.a.Temporary = true
	}
	p.a.Tables = append(p.a.Tables, t)
	p.a.references = append(p.a.references, reference{table: t, at: at, fixed: true, head: true})
	p.a.change.target = true
}

// alias reads [AS] name of the target, unless the name is one of the words that go on.
func (p *phrase) alias(goOn ...string) {
	if p.accept("as") {
		p.a.change.alias = p.word()
		return
	}
	if t := p.peek(); p.isName(t) && !is(t, goOn...) {
		p.a.change.alias = p.word()
	}
}

func is(t sqltext.Token, words ...string) bool {
	for _, w := range words {
		if t.Is(w) {
			return true
		}
	}
	return false
}

// until returns the part up to where stop holds outside brackets and CASE … END. It takes one token at
// least.
func (p *phrase) until(stop func() bool) span {
	if p.refusal != nil {
		return span{}
	}
	start, depth, cases := p.pos, 0, 0
	for p.pos < len(p.tokens) {
		t := p.tokens[p.pos]
		if depth == 0 && cases == 0 && p.pos > start && stop() {
			break
		}
		if t.Kind == sqltext.Punct {
			depth += bracket(t)
		}
		if depth < 0 {
			break
		}
		if depth == 0 && t.Is("case") {
			cases++
		}
		if depth == 0 && cases > 0 && t.Is("end") {
			cases--
		}
		p.pos++
	}
	if start == p.pos {
		p.fail("an expression or query")
	}
	return p.between(start, p.pos)
}

// at returns a stop for until: one of the words, or the punctuation if there is one. A FROM that
// belongs to IS DISTINCT FROM is none.
func (p *phrase) at(punct string, words ...string) func() bool {
	return func() bool {
		t := p.peek()
		if punct != "" && t.IsPunct(punct) {
			return true
		}
		if t.Is("from") && p.pos > 0 && p.tokens[p.pos-1].Is("distinct") {
			return false
		}
		return is(t, words...)
	}
}

// expression reads an expression up to stop and keeps it.
func (p *phrase) expression(stop func() bool) {
	if s := p.until(stop); !s.empty() {
		p.expressions = append(p.expressions, piece{"(", s, ")"})
	}
}

// bracketed reads ( expression ).
func (p *phrase) bracketed() {
	p.expectPunct("(")
	p.expression(func() bool { return false })
	p.expectPunct(")")
}

// bracketedList reads ( expression, … ).
func (p *phrase) bracketedList() {
	p.expectPunct("(")
	for p.refusal == nil {
		p.expression(p.at(","))
		if !p.acceptPunct(",") || p.peek().IsPunct(")") {
			break
		}
	}
	p.expectPunct(")")
}

// source keeps a query that the statement reads from.
func (p *phrase) source(s span) {
	if !s.empty() {
		p.from = piece{"(", s, ")"}
	}
}

// compose returns one query that holds all that the statement reads and computes, or nil.
func (p *phrase) compose() *composition {
	targets := p.a.change.targets
	if p.with.empty() && len(p.expressions) == 0 && targets.empty() && p.from.span.empty() && p.order.empty() {
		return nil
	}
	c := &composition{}
	c.copy(p.text, p.with)
	c.say(" SELECT ")
	list := p.expressions
	if !targets.empty() {
		list = append(list, piece{span: targets})
	}
	if len(list) == 0 {
		list = []piece{{before: "1"}}
	}
	for i, one := range list {
		if i > 0 {
			c.say(", ")
		}
		c.piece(p.text, one)
	}
	if !p.from.span.empty() {
		c.say(" FROM ")
		c.piece(p.text, p.from)
	}
	if !p.order.empty() {
		c.say(" ORDER BY ")
		c.copy(p.text, p.order)
	}
	return c
}

// afterWith goes over WITH and its list and returns the word, or bracket, that comes then; empty if
// that is not clear. The position is on it.
func (p *phrase) afterWith() string {
	p.pos = 1
	_ = p.accept("recursive")
	for {
		p.pos++ // the name
		if p.peek().IsPunct("(") {
			p.skipBrackets()
		}
		if p.accept("using", "key") {
			p.skipBrackets()
		}
		if !p.accept("as") {
			return ""
		}
		_ = p.accept("not")
		_ = p.accept("materialized")
		if !p.skipBrackets() {
			return ""
		}
		if !p.acceptPunct(",") {
			break
		}
	}
	p.with = p.between(0, p.pos)
	t := p.peek()
	if t.Kind == sqltext.Word || t.IsPunct("(") {
		return sqltext.Fold(t.Text)
	}
	return ""
}

// skipBrackets goes over ( … ) and reports whether it was there.
func (p *phrase) skipBrackets() bool {
	if !p.peek().IsPunct("(") {
		return false
	}
	depth := 0
	for ; p.pos < len(p.tokens); p.pos++ {
		if p.tokens[p.pos].Kind == sqltext.Punct {
			depth += bracket(p.tokens[p.pos])
		}
		if depth == 0 {
			p.pos++
			return true
		}
	}
	return false
}
