package guard

// unprotected returns a Refusal if policies on a table rule out what the statement does with it.
func (a *analysis) unprotected(t Table, p *protection) *Refusal {
	no := func(what, why string) *Refusal {
		return refuse(NotAllowed, what+" of table %q is not allowed: policies hide "+why+" of it from you", t.Name)
	}
	c := a.change
	switch kind := a.does(); kind {
	case CreateTable, CreateTableAs, CreateView, DropTable, DropView, Truncate:
		switch {
		case t.Privilege == "select":
			return refuse(NotAllowed, "a table cannot refer to table %q: policies on it apply to you", t.Name)
		case t.Privilege != "create" && p.hidesRows():
			return no(string(kind), "rows")
		}
	case Insert:
		switch {
		case c.conflict && p.hidesRows():
			return no("INSERT that replaces or updates rows", "rows")
		case (c.conflict || a.Returning || !c.targets.empty()) && p.hidesColumns():
			return no("INSERT with RETURNING or ON CONFLICT DO UPDATE", "columns")
		}
	case Update:
		if p.hidesColumns() {
			return no("UPDATE", "columns")
		}
	case Delete:
		if p.hidesColumns() && c.reads {
			return no("DELETE with a condition", "columns")
		}
	default:
		return no(string(kind), "rows or columns")
	}
	return nil
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
