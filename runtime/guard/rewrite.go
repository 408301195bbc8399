package guard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
)

// edit replaces a part of a statement. Within what it puts there the references are the guard's own.
type edit struct {
	span
	text   string
	tables int // references in text
}

// rewriter puts into a statement what the rulings on it ask for.
type rewriter struct {
	scope    Scope
	a        *analysis
	words    words
	name     string // begins the aliases of policies
	count    int    // of tables with policies
	edits    []edit
	original bool
}

// rewrite returns the statement with what the rulings ask for. The result is read again like any other
// statement, and is refused if that shows anything else than what was meant.
func (g *Guard) rewrite(ctx context.Context, a *analysis, s Scope, rulings []ruling) (*Statement, error) {
	tokens, err := sqltext.Tokens(a.SQL)
	if err != nil {
		return nil, syntaxError("the statement has a " + err.Error())
	}
	secret := make([]byte, 8)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	w := &rewriter{scope: s, a: a, words: tokens, name: "p" + hex.EncodeToString(secret)}
	if refusal := w.all(rulings); refusal != nil {
		return nil, refusal
	}
	out := a.Statement
	out.SQL = apply(a.SQL, w.edits)
	if w.original && out.Kind != Explain {
		out.Original = a.SQL
	}
	return &out, g.verify(ctx, w, &out, rulings)
}

// all makes the edits.
func (w *rewriter) all(rulings []ruling) *Refusal {
	for i, r := range w.a.references {
		var refusal *Refusal
		switch rulings[i].action {
		case qualify:
			refusal = w.qualify(r, rulings[i].place)
		case substitute:
			refusal = w.substitute(r, rulings[i])
		case restrict:
			refusal = w.restrict(rulings[i])
		case filter:
			refusal = w.filter(r)
		}
		if refusal != nil {
			return refusal
		}
	}
	for _, c := range w.a.columns {
		if refusal := w.column(c, rulings); refusal != nil {
			return refusal
		}
	}
	slices.SortStableFunc(w.edits, func(a, b edit) int { return a.from - b.from })
	for i := 1; i < len(w.edits); i++ {
		if w.edits[i].from < w.edits[i-1].to {
			return tangled()
		}
	}
	return nil
}

// tangled is the refusal of statements in which the places of tables are not clear.
func tangled() *Refusal {
	return refuse(NotAllowed, "a table is named here in a way in which policies cannot be applied; "+
		"write FROM schema.table AS name")
}

// put adds an edit, once: DuckDB's tree repeats the parts of a window that is used repeatedly.
func (w *rewriter) put(e edit) {
	for _, one := range w.edits {
		if one.span == e.span && !e.empty() {
			return
		}
	}
	w.edits = append(w.edits, e)
}

func (w *rewriter) done(at int) bool {
	return slices.ContainsFunc(w.edits, func(e edit) bool { return e.holds(at) || e.from == at })
}

// apply returns the text with the edits, which are in order.
func apply(text string, edits []edit) string {
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.from] + e.text)
		at = e.to
	}
	return b.String() + text[at:]
}

// find returns the tokens of the reference's name.
func (w *rewriter) find(r reference) (first, end int, ok bool) {
	return w.words.name(r.at, r.table.written())
}

// qualify puts the database, or the schema, before a name that could mean another table as well.
func (w *rewriter) qualify(r reference, p place) *Refusal {
	first, _, ok := w.find(r)
	if !ok {
		return tangled()
	}
	start := w.words[first].Start
	if w.done(start) {
		return nil
	}
	e := edit{span: span{start, start}}
	switch {
	case p.temporary:
		e.text = temporary + "."
	case r.table.Catalog != "":
		e.span = span{w.words[first+1].End, w.words[first+1].End}
		e.text = quote(p.schema) + "."
	case r.table.Schema != "":
		e.text = quote(w.scope.Catalog) + "."
	default:
		e.text = quote(w.scope.Catalog) + "." + quote(p.schema) + "."
	}
	w.original = w.original || r.highest > 0 && w.a.does() == Select
	w.put(e)
	return nil
}

// column takes database and schema from the name of a column where a query stands in the table's place:
// it has the table's name only.
func (w *rewriter) column(c column, rulings []ruling) *Refusal {
	for i, r := range w.a.references {
		if act := rulings[i].action; act != substitute && act != filter || r.alias != "" {
			continue
		}
		schema, table := rulings[i].place.schema, rulings[i].place.table
		if act := rulings[i].action; act == filter {
			schema, table = informationSchema, sqltext.Fold(r.table.Name)
		}
		n := qualifiers(c.names, sqltext.Fold(w.scope.Catalog), schema, table)
		if n == 0 {
			continue
		}
		first, _, ok := w.words.prefix(c.at, c.names)
		if !ok {
			return tangled()
		}
		w.put(edit{span: span{w.words[first].Start, w.words[first+2*n].Start}})
		w.original = w.original || w.a.does() == Select
		return nil
	}
	return nil
}

// qualifiers returns how many of the first names stand before the table's.
func qualifiers(names []string, catalog, schema, table string) int {
	folded := make([]string, len(names))
	for i, one := range names {
		folded[i] = sqltext.Fold(one)
	}
	switch {
	case len(names) > 3 && folded[0] == catalog && folded[1] == schema && folded[2] == table:
		return 2
	case (folded[0] == schema || folded[0] == catalog) && folded[1] == table:
		return 1
	}
	return 0
}
