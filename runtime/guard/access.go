package guard

import "github.com/qod-io/qod/runtime/sqltext"

// action is what has to be done with a reference before the statement may run.
type action int

const (
	keep       action = iota
	qualify           // say in the text where it is
	substitute        // put what policies leave in place of the table
	restrict          // change only visible rows of it
	filter            // show only what the user sees of the catalog
)

// ruling is the judgment on one reference.
type ruling struct {
	action action
	place  place
	policy *protection // of a table of the lake
}

// does returns the kind of the statement, or of the one that it explains.
func (a *analysis) does() Kind {
	if a.Kind == Explain {
		return a.Explains
	}
	return a.Kind
}

// isTarget reports whether the reference is the table that the statement changes.
func (a *analysis) isTarget(i int) bool {
	return a.change.target && a.references[i].head && a.references[i].at == a.references[0].at
}

// needs lists the privileges that a reference takes.
func (a *analysis) needs(i int) []string {
	out := []string{a.references[i].table.Privilege}
	if !a.isTarget(i) {
		return out
	}
	if a.change.reads {
		out = append(out, "select")
	}
	if a.change.conflict {
		out = append(out, "update")
	}
	if a.change.rename != "" {
		out = append(out, all)
	}
	return out
}

// authorize judges a statement by the rights of a user and returns a ruling on each of its references.
func authorize(a *analysis, s Scope) ([]ruling, *Refusal) {
	if a.open {
		return nil, nil
	}
	if s.Rights.Empty() {
		return nil, refuse(NotAuthorized, "no permission on database %q", s.Catalog)
	}
	out := make([]ruling, len(a.references))
	for i, r := range a.references {
		var refusal *Refusal
		switch {
		case r.table.Name == "":
			out[i], refusal = authorizeSchema(a, r, s)
		case sqltext.Fold(r.table.Schema) == informationSchema:
			out[i], refusal = authorizeCatalog(a, s)
		case a.isTarget(i):
			out[i], refusal = authorizeTarget(a, i, s)
		default:
			out[i], refusal = authorizeSource(a, i, s)
		}
		if refusal != nil {
			return nil, refusal
		}
		if out[i].policy != nil && a.Kind == Explain {
			return nil, refuse(NotAllowed, "EXPLAIN is not allowed for table %q: a plan shows the policies on it "+
				"that apply to you, and how many rows they hide", r.table.Name)
		}
	}
	return out, nil
}

// denied is the refusal for want of a privilege, which is the same where there is nothing of that name.
func denied(what, name, privilege string) *Refusal {
	r := refuse(NotAuthorized, what+" %q does not exist or you are not authorized", name)
	r.Object, r.Privilege = shorten(name, 64), privilege
	return r
}

// authorizeSchema judges a schema, or a catalog, that is named.
func authorizeSchema(a *analysis, r reference, s Scope) (ruling, *Refusal) {
	schema := sqltext.Fold(r.table.Schema)
	switch a.does() {
	case CreateSchema, DropSchema:
		if !s.Rights.holds(r.table.Privilege, schema, every) {
			return ruling{}, denied("schema", r.table.Schema, r.table.Privilege)
		}
		if r.table.Privilege == "drop" && s.Rights.hidesRows(schema) {
			return ruling{}, refuse(NotAllowed, "schema %q cannot be dropped: policies hide rows in it from you", r.table.Schema)
		}
		return ruling{}, nil
	}
	temp := sqltext.Fold(r.table.Catalog) == temporary
	if schema != "" && !temp && !s.Rights.SeesSchema(schema) {
		return ruling{}, denied("schema", r.table.Schema, "")
	}
	if r.head {
		return ruling{}, nil
	}
	return authorizeCatalog(a, s)
}

// authorizeCatalog judges a view of information_schema, or SHOW TABLES.
func authorizeCatalog(a *analysis, s Scope) (ruling, *Refusal) {
	switch {
	case s.Rights.admin:
		return ruling{}, nil
	case a.does() == CreateView:
		return ruling{}, refuse(NotAllowed, "a view cannot read the catalog: it would show to everybody what you see")
	case s.Rights.full():
		return ruling{}, nil
	}
	return ruling{action: filter}, nil
}

// authorizeTarget judges the table that the statement changes.
func authorizeTarget(a *analysis, i int, s Scope) (ruling, *Refusal) {
	r, kind := a.references[i], a.does()
	var places []place
	if kind == CreateTable || kind == CreateTableAs || kind == CreateView {
		places = []place{s.created(r.table, a.Temporary)}
	} else {
		places = s.resolve(r.table)
	}
	out, refusal := settle(a, i, places, s)
	if refusal != nil || out.place.temporary {
		return out, refusal
	}
	if name := a.change.rename; name != "" && !s.Rights.holds(all, out.place.schema, sqltext.Fold(name)) {
		return out, denied("table", name, all)
	}
	if out.policy == nil {
		return out, nil
	}
	if refusal := a.unprotected(r.table, out.policy); refusal != nil {
		return out, refusal
	}
	if (kind == Update || kind == Delete) && out.policy.hidesRows() {
		out.action = restrict
	}
	return out, nil
}

// authorizeSource judges a table that the statement reads, or drops together with the target.
func authorizeSource(a *analysis, i int, s Scope) (ruling, *Refusal) {
	r := a.references[i]
	out, refusal := settle(a, i, s.resolve(r.table), s)
	switch {
	case refusal != nil:
		return out, refusal
	case r.head && out.policy != nil:
		return out, a.unprotected(r.table, out.policy)
	case a.does() == CreateView && !r.head:
		return a.viewed(r, out)
	case out.policy == nil:
		return out, nil
	case r.past && out.policy.hidesColumns():
		return out, refuse(NotAllowed, "AT cannot be used on table %q: policies hide columns of it from you", r.table.Name)
	}
	if out.place.temporary {
		return out, nil
	}
	out.action = substitute
	return out, nil
}

// viewed judges a table that a new view reads. DuckDB resolves the names in a view when somebody reads
// it, in the view's schema and among the temporary objects of the reader: they have to be complete.
func (a *analysis) viewed(r reference, out ruling) (ruling, *Refusal) {
	switch {
	case out.policy != nil:
		return out, refuse(NotAllowed, "a view cannot read table %q: policies on it apply to you, "+
			"and a view would be read without them", r.table.Name)
	case out.place.temporary && !a.Temporary:
		return out, refuse(NotAllowed, "a view of the lake cannot read the temporary table %q", r.table.Name)
	}
	if len(r.table.written()) < 3 && sqltext.Fold(r.table.Catalog) != temporary {
		out.action = qualify
	}
	return out, nil
}

// settle finds out which of the places a reference means, or that it makes no difference.
func settle(a *analysis, i int, places []place, s Scope) (ruling, *Refusal) {
	r := a.references[i]
	if places[0].temporary {
		out := ruling{place: places[0]}
		if s.shadowed(r.table) && !a.creates(i) {
			out.action = qualify
		}
		return out, nil
	}
	needs, granted, equal := a.needs(i), 0, true
	policies := make([]*protection, len(places))
	for n, p := range places {
		if s.Rights.mayAll(needs, p) {
			granted++
		}
		policies[n] = s.Rights.protection(p.schema, p.table)
		equal = equal && policies[n] == nil
	}
	out := ruling{place: places[0], policy: policies[0]}
	switch {
	case granted == 0 || len(s.schemas()) == 1 && !s.Rights.mayAll(needs, places[0]):
		return out, denied("table", r.table.Name, s.Rights.lacks(needs, places[0]))
	case policies[0] != nil && policies[0].bad:
		return out, refuse(NotAuthorized, "table %q cannot be used: a policy on it cannot be applied; "+
			"ask an administrator", r.table.Name)
	case len(places) == 1:
		return out, nil
	case equal && granted == len(places) && !(a.does() == CreateView && len(s.schemas()) > 1):
		return out, nil
	case len(s.schemas()) == 1:
		out.action = qualify
		return out, nil
	}
	return out, refuse(NotAuthorized, "write schema.%s: the search path has several schemas", r.table.Name)
}

// creates reports whether the reference is a table that the statement makes.
func (a *analysis) creates(i int) bool {
	switch a.does() {
	case CreateTable, CreateTableAs, CreateView:
		return a.isTarget(i)
	}
	return false
}

func (r *Rights) mayAll(needs []string, p place) bool { return r.lacks(needs, p) == "" }

// lacks returns the first of the privileges that is not granted on the place.
func (r *Rights) lacks(needs []string, p place) string {
	for _, one := range needs {
		if !r.holds(one, p.schema, p.table) {
			return one
		}
	}
	return ""
}
