package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/schema"
)

// Question is whose access is to be explained. Tenant may be empty where the user's name is in one only,
// Database where the tenant has one; On is empty or names a table, as TABLE, SCHEMA.TABLE or
// DATABASE.SCHEMA.TABLE.
type Question struct {
	User, Tenant, Database, On string
}

// Explanation is what a user may do, and why. Objects are named by their addresses.
type Explanation struct {
	User string `json:"user"`
	// Administrator says of what the user is one; then there are neither limits nor policies.
	Administrator string `json:"administrator,omitempty"`
	// Stops are the reasons for which all is refused.
	Stops    []string `json:"stops,omitempty"`
	Roles    []Held   `json:"roles"`
	Pools    []Entry  `json:"pools"`
	Database string   `json:"database,omitempty"`
	On       string   `json:"on,omitempty"`
	// Verdicts has each privilege on the table On.
	Verdicts []Verdict `json:"privileges,omitempty"`
	// Rules are the permissions and policies of the roles, those on the table where one is asked for.
	Rules []Rule `json:"rules"`
}

// Held is a role that the user holds: itself, or through a group.
type Held struct {
	Role  string `json:"role"`
	Group string `json:"group,omitempty"`
}

// Entry is a pool that the user may connect to.
type Entry struct {
	Pool     string `json:"pool"`
	Database string `json:"database"`
	// Grants are the pool_grants that allow it.
	Grants []string `json:"grants,omitempty"`
	// Refused says why the pool takes no statements now, if so.
	Refused string `json:"refused,omitempty"`
}

// Verdict says whether a privilege is allowed, and by which roles.
type Verdict struct {
	Privilege string   `json:"privilege"`
	Allowed   bool     `json:"allowed"`
	Roles     []string `json:"roles,omitempty"`
}

// Rule is a permission or a policy of a role.
type Rule struct {
	Role       string   `json:"role"`
	Kind       string   `json:"kind"` // the name of its block
	Database   string   `json:"database"`
	Schema     string   `json:"schema"`
	Table      string   `json:"table"`
	Column     string   `json:"column,omitempty"`
	Privileges []string `json:"privileges,omitempty"`
	// SQL is the predicate or mask; empty where a column is denied.
	SQL string `json:"sql,omitempty"`
	// Sensitive says that the configuration computes the rule from what must not be shown: only its role and
	// kind are given.
	Sensitive bool `json:"sensitive,omitempty"`
}

// Explain says what a user may do, and why. It reads what Authorize reads, and gives nothing away that an
// administrator may not know: it is not for users.
func (d *Directory) Explain(q Question) (*Explanation, error) {
	u, err := d.named(q.User, q.Tenant)
	if err != nil {
		return nil, err
	}
	e := &Explanation{User: address(u), Roles: []Held{}, Pools: d.entries(u), Rules: []Rule{}}
	at, err := d.target(u, q)
	if err != nil {
		return nil, err
	}
	e.Database = at.database
	switch {
	case u.system:
		e.Administrator = "the whole system"
	case u.admin:
		e.Administrator = "tenant " + u.tenant
	}
	if u.disabled {
		e.Stops = append(e.Stops, "the user is disabled")
	}
	if d.shut(u) {
		e.Stops = append(e.Stops, "tenant "+u.tenant+" is disabled")
	}
	for _, name := range u.roles {
		e.Roles = append(e.Roles, Held{Role: roleAddress(u.tenant, name)})
	}
	for _, g := range u.groups {
		for _, name := range d.groups[path{u.tenant, g}] {
			e.Roles = append(e.Roles, Held{roleAddress(u.tenant, name), schema.NewAddr("group", u.tenant, g).String()})
		}
	}
	for _, name := range d.rolesOf(u) {
		if r, ok := d.role(u.tenant, name); ok {
			e.Rules = append(e.Rules, r.rules(roleAddress(u.tenant, name), at)...)
		}
	}
	if at.table != "" {
		e.On = strings.Join([]string{at.database, at.schema, at.table}, ".")
		e.judge()
	}
	for i, r := range e.Rules {
		if r.Sensitive {
			e.Rules[i] = Rule{Role: r.Role, Kind: r.Kind, Sensitive: true}
		}
	}
	return e, nil
}

// judge says of each privilege whether the rules allow it.
func (e *Explanation) judge() {
	for _, privilege := range schema.Privileges() {
		v := Verdict{Privilege: privilege, Allowed: e.Administrator != ""}
		for _, r := range e.Rules {
			if slices.Contains(r.Privileges, privilege) || slices.Contains(r.Privileges, schema.AllPrivileges) {
				v.Roles = append(v.Roles, r.Role)
			}
		}
		v.Roles = slices.Compact(v.Roles)
		v.Allowed = v.Allowed || len(v.Roles) > 0
		e.Verdicts = append(e.Verdicts, v)
	}
}

// target is what is asked about: nothing, a database, or a table.
type target struct{ database, schema, table string }

// meets reports whether a rule may concern the target.
func (t target) meets(catalog, in, table string) bool {
	is := func(rule, asked string) bool { return asked == "" || rule == schema.Any || rule == asked }
	return is(catalog, t.database) && is(in, t.schema) && is(table, t.table)
}

func (d *Directory) target(u *user, q Question) (target, error) {
	t := target{database: schema.Fold(q.Database)}
	if q.On != "" {
		parts, err := nameParts(q.On)
		if err != nil {
			return t, err
		}
		t.table = parts[len(parts)-1]
		if len(parts) > 1 {
			t.schema = parts[len(parts)-2]
		}
		if len(parts) > 2 {
			if t.database != "" && t.database != parts[0] {
				return t, fmt.Errorf("%s is not in database %s", q.On, q.Database)
			}
			t.database = parts[0]
		}
	}
	if t.database == "" && t.table == "" {
		return t, nil
	}
	db, err := d.database(u.tenant, t.database)
	if err != nil {
		return t, err
	}
	if t.database = db.name; t.table != "" && t.schema == "" {
		t.schema = db.schema
	}
	return t, nil
}

// nameParts reads the name of a table as SQL has it, and folds its parts.
func nameParts(name string) ([]string, error) {
	wrong := fmt.Errorf("%q names no table: want TABLE, SCHEMA.TABLE or DATABASE.SCHEMA.TABLE", name)
	tokens, err := sqltext.Tokens(name)
	if err != nil || len(tokens)%2 == 0 || len(tokens) > 5 {
		return nil, wrong
	}
	var parts []string
	for i, t := range tokens {
		switch {
		case i%2 == 1 && t.IsPunct("."):
		case i%2 == 0 && t.Name() != "":
			parts = append(parts, sqltext.Fold(t.Name()))
		default:
			return nil, wrong
		}
	}
	return parts, nil
}

// database returns the tenant's database of that name, or its only one.
func (d *Directory) database(tenant, name string) (*database, error) {
	var names []string
	for at := range d.dbs {
		if at.tenant == tenant {
			names = append(names, at.name)
		}
	}
	slices.Sort(names)
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	if db, ok := d.dbs[path{tenant, name}]; ok {
		return db, nil
	}
	if name == "" {
		return nil, fmt.Errorf("tenant %s has %d databases: choose one of %s", tenant, len(names), strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("tenant %s has no database %q.%s", tenant, name, schema.DidYouMean(name, names))
}

// named returns the user of that name.
func (d *Directory) named(name, tenant string) (*user, error) {
	name, tenant = schema.Fold(name), schema.Fold(tenant)
	var found []*user
	for _, u := range d.names[name] {
		if tenant == "" || u.tenant == tenant || u.system {
			found = append(found, u)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, fmt.Errorf("there is no user %q.%s", name, schema.DidYouMean(name, slices.Sorted(maps.Keys(d.names))))
	}
	var list []string
	for _, u := range found {
		list = append(list, address(u))
	}
	slices.Sort(list)
	return nil, fmt.Errorf("there are %s: say of which tenant", strings.Join(list, ", "))
}

func address(u *user) string {
	if u.system {
		return schema.NewAddr("user", u.name).String()
	}
	return schema.NewAddr("user", u.tenant, u.name).String()
}

// roleAddress is the address of a role, or the name of a virtual one.
func roleAddress(tenant, name string) string {
	if _, ok := virtual(name); ok {
		return name
	}
	return schema.NewAddr("role", tenant, name).String()
}

// entries lists the pools that the user may connect to, with what lets it in.
func (d *Directory) entries(u *user) []Entry {
	list := []Entry{}
	for _, p := range d.pools {
		if !d.granted(u, p) {
			continue
		}
		e := Entry{Pool: schema.NewAddr("pool", p.tenant, p.name).String(), Database: p.db, Grants: d.grantsOf(u, p)}
		if _, err := d.enter(u, p); err != nil {
			e.Refused = err.Error()
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Pool, b.Pool) })
	return list
}

func (d *Directory) grantsOf(u *user, p *pool) []string {
	to := []grantee{{u.tenant, "user", u.name}}
	for _, g := range u.groups {
		to = append(to, grantee{u.tenant, "group", g})
	}
	for _, r := range d.rolesOf(u) {
		to = append(to, grantee{u.tenant, "role", r})
	}
	var out []string
	for _, g := range to {
		for _, name := range d.grants[g] {
			if name == p.name || name == schema.Any {
				base := schema.NewAddr("pool_grant", g.tenant, name)
				out = append(out, fmt.Sprintf("%s/%s:%s", base, g.kind, schema.NewAddr("", g.name).Path))
			}
		}
	}
	return out
}

// rules lists what of a role concerns the target.
func (r *role) rules(name string, at target) []Rule {
	var out []Rule
	for _, g := range r.grants {
		if at.meets(g.Catalog, g.Schema, g.Table) {
			out = append(out, Rule{Role: name, Kind: "permission", Database: g.Catalog, Schema: g.Schema, Table: g.Table, Privileges: g.Privileges})
		}
	}
	for _, p := range r.rows {
		if at.meets(p.Catalog, p.Schema, p.Table) {
			out = append(out, Rule{Role: name, Kind: "row_policy", Database: p.Catalog, Schema: p.Schema, Table: p.Table, SQL: p.Predicate})
		}
	}
	for _, p := range r.columns {
		if at.meets(p.Catalog, p.Schema, p.Table) {
			out = append(out, Rule{
				Role: name, Kind: "column_policy", Database: p.Catalog, Schema: p.Schema, Table: p.Table, Column: p.Column, SQL: p.Expression,
			})
		}
	}
	for i := range out {
		out[i].Sensitive = slices.Contains(r.hidden, out[i].Kind)
	}
	return out
}

// PermissionsOf returns what a user may do on a database of its tenant, and the schema its sessions start in.
// Reached is false where no pool of the database is granted, so that the user may do nothing.
func (d *Directory) PermissionsOf(q Question) (p wire.Permissions, database, in string, reached bool, err error) {
	u, err := d.named(q.User, q.Tenant)
	if err != nil {
		return p, "", "", false, err
	}
	db, err := d.database(u.tenant, schema.Fold(q.Database))
	if err != nil {
		return p, "", "", false, err
	}
	reached = slices.ContainsFunc(d.entries(u), func(e Entry) bool { return e.Database == db.name })
	return d.permissionsOf(u, db.name), db.name, db.schema, reached && !u.disabled && !d.shut(u), nil
}
