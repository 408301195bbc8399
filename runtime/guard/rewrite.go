package guard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
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

// naming judges whether the names that DuckDB generates for columns would show a policy.
func (w *rewriter) naming(r reference) *Refusal {
	top := 1 // the depth of the list of which the result takes its names
	named := r.lowest == top
	switch w.a.does() {
	case Select:
	case Insert:
		top = 2 // that of the query, whose names nobody sees
		named = named && w.a.change.targets.holds(r.at)
	case CreateTableAs, CreateView:
		top, named = 0, false
	default:
		named = named && w.a.change.targets.holds(r.at)
	}
	if r.highest > top {
		return refuse(NotAllowed, "name the column in which table %q is read: (SELECT …) AS name; "+
			"its generated name would show a policy", r.table.Name)
	}
	w.original = w.original || named
	return nil
}

// substitute puts what policies leave of a table in its place.
func (w *rewriter) substitute(r reference, ruling ruling) *Refusal {
	if refusal := w.naming(r); refusal != nil {
		return refusal
	}
	first, end, ok := w.find(r)
	if !ok {
		return tangled()
	}
	if w.done(w.words[first].Start) {
		return nil
	}
	at := ""
	if r.past {
		var refusal *Refusal
		if at, refusal = w.past(r, end); refusal != nil {
			return refusal
		}
	}
	sql, tables := w.visible(ruling.place, ruling.policy, at)
	w.replace(r, first, end, sql, tables)
	return nil
}

// replace puts a query in the place of a table's name.
func (w *rewriter) replace(r reference, first, end int, sql string, tables int) {
	e := edit{span: span{w.words[first].Start, w.words[end-1].End}, text: "(" + sql + ")", tables: tables}
	if r.alias == "" {
		e.text += " AS " + quote(r.table.Name)
	}
	if first > 0 {
		switch before := w.words[first-1]; {
		case before.Is("table"):
			e.from = before.Start
			e.text = "SELECT * FROM " + e.text
		case is(before, "describe", "desc", "summarize", "show") && r.shown:
			e.text = "SELECT * FROM " + e.text
		}
	}
	w.put(e)
}

// past cuts out the AT clause of a table whose name ends before the token, and returns it.
func (w *rewriter) past(r reference, end int) (string, *Refusal) {
	i := end
	clause := func() bool { return i+1 < len(w.words) && w.words[i].Is("at") && w.words[i+1].IsPunct("(") }
	if !clause() && i < len(w.words) && r.alias != "" {
		if w.words[i].Is("as") {
			i++
		}
		if i == len(w.words) || w.words[i].Name() != r.alias {
			return "", tangled()
		}
		i++
		if after := w.words.brackets(i); after > 0 {
			i = after
		}
	}
	if !clause() {
		return "", tangled()
	}
	close := w.words.brackets(i + 1)
	if close < 0 {
		return "", tangled()
	}
	s := span{w.words[i].Start, w.words[close-1].End}
	for _, other := range w.a.references {
		if s.holds(other.at) {
			return "", tangled()
		}
	}
	w.put(edit{span: s})
	return " " + w.a.SQL[s.from:s.to], nil
}

// visible returns the query of what policies leave of a table, and how many tables it names.
func (w *rewriter) visible(p place, policy *protection, at string) (string, int) {
	name := w.next()
	list := "*"
	if len(policy.denied) > 0 {
		quoted := make([]string, len(policy.denied))
		for i, one := range policy.denied {
			quoted[i] = quote(one)
		}
		list += " EXCLUDE (" + strings.Join(quoted, ", ") + ")"
	}
	if len(policy.masks) > 0 {
		masks := make([]string, len(policy.masks))
		for i, one := range policy.masks {
			masks[i] = "(" + one.mask.fill(name) + ") AS " + quote(one.name)
		}
		list += " REPLACE (" + strings.Join(masks, ", ") + ")"
	}
	where, tables := policy.condition(name)
	sql := "SELECT " + list + " FROM " + w.full(p) + " AS " + quote(alias(name, 0)) + at
	if where != "" {
		sql += " WHERE " + where
	}
	// What a statement asks for must not be computed on hidden rows: an error would tell of them. Of some
	// functions DuckDB believes that they cannot fail, and computes them before the predicate, or before
	// the join that it makes of a predicate with a query, even inside a materialized table expression. It
	// moves nothing below a LIMIT.
	if !policy.plain() {
		sql += " LIMIT 9223372036854775806"
	}
	if tables > 0 {
		sql = "WITH " + quote(name) + " AS MATERIALIZED (" + sql + ") SELECT * FROM " + quote(name)
	}
	return sql, tables + 1
}

// plain reports whether the predicates, if there are any, need no barrier.
func (p *protection) plain() bool {
	return len(p.predicates) == 0 || len(p.predicates) == 1 && p.predicates[0].plain
}

// condition returns the condition under which rows are seen, and how many tables it names.
func (p *protection) condition(name string) (string, int) {
	tables := 0
	parts := make([]string, len(p.predicates))
	for i, one := range p.predicates {
		parts[i] = "(" + one.fill(name) + ")"
		tables += one.tables
	}
	return strings.Join(parts, " OR "), tables
}

func (w *rewriter) next() string {
	w.count++
	return alias(w.name, w.count)
}

func (w *rewriter) full(p place) string {
	return quote(w.scope.Catalog) + "." + quote(p.schema) + "." + quote(p.table)
}

// restrict lets the statement change only those rows of its target that are seen. CASE keeps the
// statement's own condition from being computed on the others.
func (w *rewriter) restrict(ruling ruling) *Refusal {
	c, target := w.a.change, w.a.references[0]
	name := w.next()
	first, end, ok := w.find(target)
	if !ok {
		return tangled()
	}
	if ruling.place.schema != "" && len(target.table.written()) < 3 {
		start := w.words[first].Start
		full := w.full(ruling.place)
		w.put(edit{span: span{start, w.words[end-1].End}, text: full})
	}
	known := c.alias
	if known == "" {
		known = target.table.Name
	}
	where, tables := ruling.policy.condition(name)
	own := quote(alias(name, 0))
	seen := quote(known) + ".rowid IN (SELECT " + own + ".rowid FROM " + w.full(ruling.place) + " AS " + own +
		" WHERE " + where + ")"
	if c.where.empty() {
		at := c.where.from
		w.put(edit{span: span{at, at}, text: " WHERE " + seen, tables: tables + 1})
		return nil
	}
	w.put(edit{span: span{c.where.from, c.where.from}, text: "CASE WHEN " + seen + " THEN (", tables: tables + 1})
	w.put(edit{span: span{c.where.to, c.where.to}, text: ") ELSE false END"})
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

// verify reads the rewritten statement again. Outside the edits it has to name what the statement named
// before, and no table with policies but the target; inside only what the edits put there.
func (g *Guard) verify(ctx context.Context, w *rewriter, out *Statement, rulings []ruling) error {
	b, err := g.analyse(ctx, out.SQL, sqltext.Fold(w.scope.Catalog))
	var syntax *SyntaxError
	var refusal *Refusal
	if errors.As(err, &syntax) || errors.As(err, &refusal) {
		return tangled()
	}
	if err != nil {
		return err
	}
	before, inside := w.expected(rulings)
	for _, r := range b.references {
		at, own := w.origin(r.at)
		if own {
			if inside--; r.table.Catalog == "" || r.table.Schema == "" {
				return tangled()
			}
			continue
		}
		i := slices.IndexFunc(before, func(one reference) bool {
			return one.at == at && one.table.Privilege == r.table.Privilege &&
				sqltext.Fold(one.table.Name) == sqltext.Fold(r.table.Name)
		})
		if i < 0 || !w.harmless(b, r) {
			return tangled()
		}
	}
	if inside != 0 || !same(w.a, b) {
		return tangled()
	}
	return nil
}

// expected returns the references that stay as they are, and the number of those in the edits.
func (w *rewriter) expected(rulings []ruling) (before []reference, inside int) {
	for i, r := range w.a.references {
		if act := rulings[i].action; act != substitute && act != filter {
			before = append(before, r)
		}
	}
	for _, e := range w.edits {
		inside += e.tables
	}
	return before, inside
}

// origin returns where in the statement before the edits an offset of the result was, and whether it is
// in the text of an edit.
func (w *rewriter) origin(at int) (int, bool) {
	shift := 0
	for _, e := range w.edits {
		start := e.from + shift
		switch {
		case at < start:
			return at - shift, false
		case at < start+len(e.text) && e.tables > 0:
			return e.from, true
		case at < start+len(e.text):
			return e.from, false
		}
		shift += len(e.text) - (e.to - e.from)
	}
	return at - shift, false
}

// harmless reports whether a reference of the result that the guard did not put there is to no table
// with policies, unless it is the target.
func (w *rewriter) harmless(b *analysis, r reference) bool {
	if r.head {
		return true
	}
	if sqltext.Fold(r.table.Schema) == informationSchema {
		return w.scope.Rights.admin
	}
	places := w.scope.resolve(r.table)
	if b.does() == CreateView && len(r.table.written()) < 3 && !places[0].temporary {
		return false
	}
	return !slices.ContainsFunc(places, func(p place) bool {
		return !p.temporary && w.scope.Rights.protection(p.schema, p.table) != nil
	})
}

// same reports whether two statements are the same but for the tables that they read.
func same(a, b *analysis) bool {
	return a.Kind == b.Kind && a.Class == b.Class && a.ReadOnly == b.ReadOnly && a.Leaves == b.Leaves &&
		a.Returning == b.Returning && a.Parameters == b.Parameters && a.Explains == b.Explains && a.Analyze == b.Analyze &&
		a.NoOp == b.NoOp
}
