package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// rowPolicy hides rows of the tables that its pattern covers. Without a predicate it cannot be applied.
type rowPolicy struct {
	pattern
	predicate *template
}

// columnPolicy denies a column, or with a mask replaces its value.
type columnPolicy struct {
	pattern
	column string // folded
	name   string // as the policy spells it
	mask   *template
	bad    bool // it has a mask that cannot be applied
}

func (g *Guard) rowPolicy(ctx context.Context, p wire.RowPolicy, catalog string, who *wire.Principal) (rowPolicy, error) {
	out := rowPolicy{pattern: newPattern(p.Schema, p.Table)}
	text, ok := principal(p.Predicate, who)
	if !ok {
		return out, nil
	}
	var err error
	out.predicate, err = g.template(ctx, text, catalog, out.pattern, "")
	return out, usable(err)
}

func (g *Guard) columnPolicy(ctx context.Context, p wire.ColumnPolicy, catalog string) (columnPolicy, error) {
	out := columnPolicy{pattern: newPattern(p.Schema, p.Table), column: sqltext.Fold(p.Column), name: p.Column}
	if p.Expression == "" {
		return out, nil
	}
	var err error
	out.mask, err = g.template(ctx, p.Expression, catalog, out.pattern, out.column)
	out.bad = out.mask == nil
	return out, usable(err)
}

// usable returns the errors that are not about the policy itself.
func usable(err error) error {
	var refusal *Refusal
	var syntax *SyntaxError
	if errors.As(err, &refusal) || errors.As(err, &syntax) {
		return nil
	}
	return err
}

// principal puts literals in the places of the words for whom a policy is about. It reports false if
// the text has no tokens or says too little.
func principal(text string, who *wire.Principal) (string, bool) {
	clean, tokens, err := sqltext.Clean(text)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	at := 0
	for i, t := range tokens {
		if t.Kind != sqltext.Word || i > 0 && tokens[i-1].IsPunct(".") || i+1 < len(tokens) && tokens[i+1].IsPunct(".") {
			continue
		}
		value := ""
		switch name := sqltext.Fold(t.Text); {
		case !slices.Contains(wire.PrincipalWords(), name):
			continue
		case who == nil:
			return "", false
		case name == wire.CurrentUser:
			value = literal(who.User)
		case name == wire.CurrentTenant:
			value = literal(who.Tenant)
		case name == wire.CurrentRoles:
			value = literals(who.Roles)
		default:
			value = literals(who.Groups)
		}
		b.WriteString(clean[at:t.Start] + value)
		at = t.End
	}
	return b.String() + clean[at:], true
}

// literals returns a list of texts as a literal.
func literals(list []string) string {
	quoted := make([]string, len(list))
	for i, one := range list {
		quoted[i] = literal(one)
	}
	return "CAST([" + strings.Join(quoted, ", ") + "] AS VARCHAR[])"
}

// expressionOnly reports whether the tokens are one expression when brackets are put around them.
func expressionOnly(tokens []sqltext.Token) bool {
	depth := 0
	for _, t := range tokens {
		if t.Kind == sqltext.Punct {
			depth += bracket(t)
		}
		if depth < 0 || depth == 0 && t.IsPunct(",") || t.IsPunct(";") || hidden(t.Name()) {
			return false
		}
	}
	return depth == 0 && len(tokens) > 0
}

// template is an expression of a policy whose names of tables and columns say exactly what they mean,
// by aliases that are made up for each statement: a statement around it cannot give them a meaning.
type template struct {
	text   string
	slots  []slot
	tables int // in its subqueries
}

// slot is a part of the text that is replaced by before, the alias of a table of the policy, and after.
// The alias 0 is that of the table that the policy is about.
type slot struct {
	span
	before, after string
	alias         int
}

// fill returns the text with aliases that begin with a name, which nothing else in the statement has.
func (t *template) fill(name string) string {
	var b strings.Builder
	at := 0
	for _, s := range t.slots {
		b.WriteString(t.text[at:s.from] + s.before + quote(alias(name, s.alias)) + s.after)
		at = s.to
	}
	return b.String() + t.text[at:]
}

// template reads an expression for tables that a pattern covers. For a mask it may name only the
// column; a predicate may have subqueries.
func (g *Guard) template(ctx context.Context, text, catalog string, about pattern, mask string) (*template, error) {
	clean, tokens, err := sqltext.Clean(text)
	if err != nil || !expressionOnly(tokens) || len(clean) > maxBytes/16 {
		return nil, refuse(NotAllowed, "a policy is one expression")
	}
	t := &template{text: clean}
	const head = "SELECT ("
	c := &composition{}
	c.say(head)
	c.copy(clean, span{0, len(clean)})
	c.say(")")
	sql := c.b.String()
	a := &analysis{}
	if err := g.query(ctx, c, resolver{catalog: sqltext.Fold(catalog), builtin: g.builtin}, a); err != nil {
		return nil, err
	}
	tree, err := g.sandbox.parse(ctx, sql)
	if err != nil {
		return nil, err
	}
	r := policyReader{template: t, words: tokens, catalog: catalog, mask: mask, shift: len(head)}
	if !a.Parameters && r.read(tree, about) && r.tables == len(a.references) && r.known(a) {
		slices.SortFunc(t.slots, func(a, b slot) int { return a.from - b.from })
		return t, nil
	}
	return nil, refuse(NotAllowed, "a policy uses what policies may not use")
}
