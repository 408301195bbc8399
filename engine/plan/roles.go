package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/schema"
)

// Standing is an object as it is after a plan.
type Standing struct {
	ID        string
	Kind      *schema.Kind
	Spec      cty.Value
	Sensitive []string
}

// Roles is what the roles of a configuration are judged by.
type Roles struct {
	// Written are the roles to judge, as the configuration has them.
	Written []schema.Object
	// After is everything that there is after the plan, of all stacks.
	After []Standing
	// Seen says what databases hold, by id. One that is not there was not seen, or is still to be made.
	Seen map[string]schema.Contents
}

// Warnings lists what is likely a mistake in roles: names that mean nothing, roles that nobody holds, policies
// that contradict each other, and policies on what nobody may read. It is sorted as the roles are.
func (r Roles) Warnings() []Problem {
	j := newJudge(r)
	var out []Problem
	unheld := 0
	for _, o := range r.Written {
		w, ok := j.roles[o.Addr()]
		if !ok {
			continue
		}
		w.from = &o
		if len(w.holders) == 0 {
			if unheld++; unheld > unheldTold {
				continue
			}
		}
		w.written = rulesOf(o)
		told := map[string]bool{}
		for _, rule := range w.written {
			for _, p := range j.names(w, rule) {
				if !told[p.Summary] { // a table that is not there is missed once
					out = append(out, p)
				}
				told[p.Summary] = true
			}
		}
		out = append(out, j.held(w)...)
		out = append(out, j.contradictions(w)...)
	}
	if more := unheld - unheldTold; more > 0 {
		out = append(out, Problem{Warning: true, Summary: fmt.Sprintf("nobody holds %d more roles", more),
			Detail: "What they say concerns nobody, and is not judged further."})
	}
	return out
}

// unheldTold is how many roles without holders are told one by one: an estate may have thousands.
const unheldTold = 5

// Specific reports which databases of the tenant have to be seen to judge a role: those that its rules name
// something in.
func Specific(o schema.Object, databases []Standing) []string {
	var ids []string
	tenant := textOf(o.Value, "tenant")
	for _, rule := range rulesOf(o) {
		if rule.schema == schema.Any && rule.table == schema.Any {
			continue
		}
		for _, db := range databases {
			if textOf(db.Spec, "tenant") == tenant && rule.means(textOf(db.Spec, "name")) {
				ids = append(ids, db.ID)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rule is a permission or a policy.
type rule struct {
	block                          string
	path                           cty.Path // of the block
	catalog, schema, table, column string   // folded
	as                             map[string]string
	privileges                     []string
	deny                           bool
	mask                           string
}

func (r rule) means(catalog string) bool { return r.catalog == schema.Any || r.catalog == catalog }

func (r rule) policy() bool { return r.block != "permission" }

// meets reports whether some table can be meant by both.
func (r rule) meets(other rule) bool {
	both := func(a, b string) bool { return a == schema.Any || b == schema.Any || a == b }
	return both(r.catalog, other.catalog) && both(r.schema, other.schema) && both(r.table, other.table)
}

// heldRole is a role with what it says, and who holds it.
type heldRole struct {
	addr      schema.Addr
	tenant    string
	sensitive []string
	all       []rule
	holders   []*holder
	from      *schema.Object // in the configuration
	written   []rule         // what it says there
}

// holder is a user that is subject to its roles.
type holder struct {
	name  string
	roles []*heldRole
	reads []rule // grants to read
}

type judge struct {
	Roles
	databases map[string]map[string]string // by tenant and name, the id
	roles     map[schema.Addr]*heldRole
}

func newJudge(r Roles) *judge {
	j := &judge{Roles: r, databases: map[string]map[string]string{}, roles: map[schema.Addr]*heldRole{}}
	groups := map[schema.Addr][]string{}
	for _, o := range r.After {
		tenant := textOf(o.Spec, "tenant")
		switch o.Kind.Name {
		case "tenant_db":
			if j.databases[tenant] == nil {
				j.databases[tenant] = map[string]string{}
			}
			j.databases[tenant][textOf(o.Spec, "name")] = o.ID
		case "group":
			groups[o.Kind.Addr(o.Spec)] = texts(o.Spec.GetAttr("roles"))
		case "role":
			w := &heldRole{
				addr: o.Kind.Addr(o.Spec), tenant: tenant, sensitive: o.Sensitive, all: rulesOf(schema.Object{Kind: o.Kind, Value: o.Spec}),
			}
			j.roles[w.addr] = w
		}
	}
	holders := make([]*holder, len(r.After))
	parallel.Each(len(r.After), enoughToShare, func(i int) {
		if r.After[i].Kind.Name == "user" {
			holders[i] = j.holder(r.After[i], groups)
		}
	})
	for _, h := range holders {
		if h == nil {
			continue
		}
		for _, w := range h.roles {
			w.holders = append(w.holders, h)
		}
	}
	return j
}

// holder is a user with the roles that it holds.
func (j *judge) holder(o Standing, groups map[schema.Addr][]string) *holder {
	tenant := textOf(o.Spec, "tenant")
	names := texts(o.Spec.GetAttr("roles"))
	for _, g := range texts(o.Spec.GetAttr("groups")) {
		names = append(names, groups[schema.NewAddr("group", tenant, g)]...)
	}
	slices.Sort(names)
	h := &holder{name: textOf(o.Spec, "name")}
	for _, name := range slices.Compact(names) {
		if w, ok := j.roles[schema.NewAddr("role", tenant, name)]; ok {
			h.roles = append(h.roles, w)
			h.reads = append(h.reads, w.reads()...)
		}
		if slices.ContainsFunc(schema.VirtualRoles(), func(v schema.VirtualRole) bool { return v.Name == name }) {
			h.reads = append(h.reads, rule{catalog: schema.Any, schema: schema.Any, table: schema.Any}) // each of them reads all
		}
	}
	return h
}

func (w *heldRole) reads() []rule {
	var out []rule
	for _, r := range w.all {
		if slices.Contains(r.privileges, "select") || slices.Contains(r.privileges, schema.AllPrivileges) {
			out = append(out, r)
		}
	}
	return out
}

// rulesOf reads the blocks of a role. Their paths lead to the blocks as they are written.
func rulesOf(o schema.Object) []rule {
	var out []rule
	for i := range o.Kind.Blocks {
		b := &o.Kind.Blocks[i]
		v := o.Value.GetAttr(b.Name)
		if absent(v) {
			continue
		}
		for it := v.ElementIterator(); it.Next(); {
			_, item := it.Element()
			r := rule{block: b.Name, path: cty.GetAttrPath(b.Name).Index(item), as: map[string]string{}}
			for j := range b.Attrs {
				a := &b.Attrs[j]
				av := item.GetAttr(a.Name)
				switch {
				case a.Set():
					r.privileges = texts(av)
				case av.IsNull() && a.Default != cty.NilVal:
					r.as[a.Name] = a.Default.AsString()
				case !av.IsNull():
					r.as[a.Name] = av.AsString()
				}
			}
			r.catalog, r.schema = schema.Fold(r.as["catalog"]), schema.Fold(r.as["schema"])
			r.table, r.column = schema.Fold(r.as["table"]), schema.Fold(r.as["column"])
			r.deny, r.mask = r.as["action"] == schema.DenyColumn, r.as["expression"]
			out = append(out, r)
		}
	}
	return out
}

// warn makes a warning about a rule, at one of its arguments or the block. What is sensitive is not named.
func (w *heldRole) warn(r rule, arg, summary, detail string) Problem {
	p := Problem{Warning: true, Address: w.from.Address, Path: r.path.Copy(), Summary: summary, Detail: detail}
	if arg != "" {
		p.Path = p.Path.GetAttr(arg)
	}
	if w.hides(r.block) {
		p.Path = cty.GetAttrPath(r.block)
	}
	return p
}

func (w *heldRole) hides(block string) bool {
	return slices.Contains(w.sensitive, block) || w.from != nil && slices.Contains(w.from.Sensitive, block)
}

// names warns of the first part of a rule that names nothing in any database that it can mean. Nothing is said
// where one of them was not seen, nor of what the role is to create.
func (j *judge) names(w *heldRole, r rule) []Problem {
	known := j.databases[w.tenant]
	missing := func(arg string, list []string) []Problem {
		if w.hides(r.block) {
			return []Problem{w.warn(r, arg, fmt.Sprintf("%s: a %s names a %s that does not exist", w.addr, words(r.block), plainArg(arg)),
				"Its name is sensitive and not shown.")}
		}
		return []Problem{w.warn(r, arg,
			fmt.Sprintf("%s: %s %q does not exist", w.addr, plainArg(arg), r.as[arg]),
			fmt.Sprintf("A %s names it%s. Until it exists, the %s means nothing.%s",
				words(r.block), r.place(arg), words(r.block), schema.DidYouMean(r.as[arg], list)))}
	}
	if _, ok := known[r.catalog]; !ok && r.catalog != schema.Any {
		return missing("catalog", slices.Sorted(maps.Keys(known)))
	}
	if slices.Contains(r.privileges, "create") {
		return nil
	}
	var seen []schema.Contents
	for name, id := range known {
		if !r.means(name) {
			continue
		}
		contents, ok := j.Seen[id]
		if !ok {
			return nil
		}
		seen = append(seen, contents)
	}
	if len(seen) == 0 {
		return nil
	}
	arg, list := r.unknown(seen)
	if arg == "" {
		return nil
	}
	return missing(arg, list)
}

// unknown returns the first argument that names nothing in the databases, and what there is in its place.
func (r rule) unknown(seen []schema.Contents) (arg string, instead []string) {
	schemas, tables, columns := map[string]bool{}, map[string]bool{}, map[string]bool{}
	foundSchema, foundTable, foundColumn := r.schema == schema.Any, r.table == schema.Any, r.column == ""
	for _, contents := range seen {
		for name, inside := range contents {
			schemas[name] = true
			if r.schema != schema.Any && schema.Fold(name) != r.schema {
				continue
			}
			foundSchema = true
			for table, of := range inside {
				tables[table] = true
				if schema.Fold(table) != r.table {
					continue
				}
				foundTable = true
				foundColumn = foundColumn || of == nil
				for _, column := range of {
					columns[column] = true
					foundColumn = foundColumn || schema.Fold(column) == r.column
				}
			}
		}
	}
	switch {
	case !foundSchema:
		return "schema", sortedKeys(schemas)
	case !foundTable:
		return "table", sortedKeys(tables)
	case !foundColumn:
		return "column", sortedKeys(columns)
	}
	return "", nil
}

// place says where an argument is looked for.
func (r rule) place(arg string) string {
	switch arg {
	case "column":
		return fmt.Sprintf(" in table %q", r.as["table"])
	case "table":
		if r.schema != schema.Any {
			return fmt.Sprintf(" in schema %q", r.as["schema"])
		}
	}
	if arg != "catalog" && r.catalog != schema.Any {
		return fmt.Sprintf(" in database %q", r.as["catalog"])
	}
	return ""
}

// held warns of a role without holders, or of its policies on what no holder may read.
func (j *judge) held(w *heldRole) []Problem {
	if len(w.holders) == 0 {
		return []Problem{{
			Warning: true, Address: w.from.Address, Summary: fmt.Sprintf("nobody holds %s", w.addr),
			Detail: "No user has it among its roles, nor is any in a group that has: what it says concerns nobody.",
		}}
	}
	var out []Problem
	for _, r := range w.written {
		if !r.policy() || slices.ContainsFunc(w.holders, func(h *holder) bool { return slices.ContainsFunc(h.reads, r.meets) }) {
			continue
		}
		what := fmt.Sprintf("table %q", r.as["table"])
		if w.hides(r.block) {
			what = "its table"
		}
		out = append(out, w.warn(r, "", fmt.Sprintf("%s: a %s on %s, which no holder may read", w.addr, words(r.block), what),
			"A policy restricts and allows nothing: without a permission to select, the table is closed to them anyway."))
	}
	return out
}

// contradictions warns of column policies that meet in one user and differ. Each pair is told once, where the
// configuration has the first.
func (j *judge) contradictions(w *heldRole) []Problem {
	var out []Problem
	told := map[*heldRole]map[string]bool{}
	for _, h := range w.holders {
		for _, other := range h.roles {
			if told[other] != nil || other != w && other.from != nil { // judged there
				continue
			}
			told[other] = map[string]bool{}
			out = append(out, w.against(other, h, told[other])...)
		}
	}
	return out
}

func (w *heldRole) against(other *heldRole, h *holder, told map[string]bool) []Problem {
	var out []Problem
	for i, a := range w.written {
		for k, b := range other.all {
			if a.column == "" || a.column != b.column || !a.meets(b) || a.deny == b.deny && a.mask == b.mask || other == w && k < i {
				continue
			}
			what := fmt.Sprintf("%s.%s", cmp.Or(a.as["table"], b.as["table"]), a.as["column"])
			if w.hides(a.block) || other.hides(b.block) {
				what = "a column whose name is sensitive"
			}
			if told[what] {
				continue
			}
			told[what] = true
			detail := fmt.Sprintf("User %s holds both, and the denial counts: write one of them.", h.name)
			if !a.deny && !b.deny {
				detail = fmt.Sprintf("User %s holds both. Two masks that differ are a denial: write one of them.", h.name)
			}
			summary := fmt.Sprintf("%s and %s have contradicting policies on %s", w.addr, other.addr, what)
			if other == w {
				summary = fmt.Sprintf("%s has contradicting policies on %s", w.addr, what)
				detail = strings.Replace(detail, "holds both", "holds it", 1)
			}
			out = append(out, w.warn(a, "", summary, detail))
		}
	}
	return out
}

func words(block string) string { return strings.ReplaceAll(block, "_", " ") }

func plainArg(arg string) string {
	if arg == "catalog" {
		return "database"
	}
	return arg
}

// textOf returns a name, folded, or "" where there is none.
func textOf(v cty.Value, name string) string {
	if !v.Type().HasAttribute(name) || v.GetAttr(name).IsNull() {
		return ""
	}
	return schema.Fold(v.GetAttr(name).AsString())
}

// texts returns the elements of a set, folded.
func texts(v cty.Value) []string {
	if absent(v) {
		return nil
	}
	var out []string
	for it := v.ElementIterator(); it.Next(); {
		_, ev := it.Element()
		out = append(out, schema.Fold(ev.AsString()))
	}
	return out
}
