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
