package guard

import "strings"

// barrier stands behind every condition under which rows are seen. What a statement asks for must not be computed
// on hidden rows: an error would tell of them. Of some expressions DuckDB believes that they cannot fail, and
// computes them before the condition, whatever that is: in a scan it learns from the rows which filter to compute
// first. A condition with a query becomes a join, and they are computed before that, even inside a materialized
// table expression. It moves nothing below a LIMIT.
const barrier = " LIMIT 9223372036854775806"

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
		sql += " WHERE " + where + barrier
	}
	return sql, tables + 1
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
