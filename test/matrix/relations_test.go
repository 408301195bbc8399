package matrix

import (
	"fmt"
	"testing"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// user writes an object that refers to one of the kind, and whose tenant follows from that; "" where no
// kind refers to it.
func (r *rows) user(label, of string) string {
	body := map[string]string{
		"tenant":    "role %q {\n  tenant = tenant.%s\n  name   = \"of\"\n}\n\n",
		"tenant_db": "pool %q {\n  tenant_db = tenant_db.%s\n  nodes {\n    dual = 0\n  }\n}\n\n",
		"pool":      "pool_grant %q {\n  pool = pool.%s\n  user = \"ana\"\n}\n\n",
		"role":      "group %q {\n  roles = [role.%s]\n}\n\n",
		"group":     "user %q {\n  groups = [group.%s]\n}\n\n",
		"user":      "pool_grant %q {\n  pool = \"bi\"\n  user = user.%s\n}\n\n",
	}[r.kind.Name]
	if body == "" {
		return ""
	}
	return fmt.Sprintf(body, label, of)
}

// distinct is an argument that tells two objects of the kind apart, and two values of it.
func (r *rows) distinct() (attr, one, two string) {
	if _, named := r.kind.Attr("name"); named {
		return "name", `"one"`, `"two"`
	}
	return "user", `"ana"`, `"bob"`
}

// renamed gives another name to an object that others refer to.
func (r *rows) renamed(t *testing.T) {
	attr, one, two := r.distinct()
	if attr != "name" {
		return
	}
	of := r.user("of", "it")
	r.stepSource(t, "with one that refers to it", r.source(r.body(map[string]string{attr: one}))+of)
	p := r.stepSource(t, "renamed below one that refers to it", r.source(r.body(map[string]string{attr: two}))+of)
	if len(p.Changes) != 1 || p.Changes[0].Action != plan.Update {
		t.Errorf("a rename is more than one update:\n%s", text(p))
	}
}

// replaced makes an object anew that others refer to.
func (r *rows) replaced(t *testing.T) {
	source := r.source(r.body()) + r.user("of", "it")
	r.apply(t, source)
	it, err := schema.ParseAddress(r.kind.Name + ".it")
	if err != nil {
		t.Fatal(err)
	}
	p := r.planned(t, source, engine.PlanOptions{Selection: plan.Selection{Replace: []schema.Address{it}}})
	r.record(t, "replaced below one that refers to it", p.Plan)
	if r.kind.Holds != "" {
		if !p.Failed() {
			t.Error("an object with data may be replaced")
		}
		return
	}
	before := r.object(t, r.kind).ID
	r.carryOut(t, p)
	r.settled(t, source)
	if r.object(t, r.kind).ID == before {
		t.Error("it was not replaced")
	}
}

// swapped exchanges the names of two objects that others refer to.
func (r *rows) swapped(t *testing.T) {
	attr, one, two := r.distinct()
	source := func(a, b string) string {
		return head(r.Name) + r.block("a", r.body(map[string]string{attr: a})) + r.user("of_a", "a") +
			r.block("b", r.body(map[string]string{attr: b})) + r.user("of_b", "b")
	}
	r.stepSource(t, "two of them", source(one, two))
	p := r.stepSource(t, "their names swapped", source(two, one))
	for _, c := range p.Changes {
		if attr == "name" && c.Action != plan.Update {
			t.Errorf("a swap of names is more than updates:\n%s", text(p))
		}
	}
}

// swappedBelowAName exchanges the names of two objects, of which another one names the first by its name and
// not by its block: from then on it means the second.
func (r *rows) swappedBelowAName(t *testing.T) {
	of := map[string]string{
		"tenant":    "role \"of\" {\n  tenant = \"one\"\n}\n",
		"tenant_db": "pool \"of\" {\n  tenant    = \"acme\"\n  tenant_db = \"one\"\n  nodes {\n    dual = 0\n  }\n}\n",
		"pool":      "pool_grant \"of\" {\n  tenant = \"acme\"\n  pool   = \"one\"\n  user   = \"ana\"\n}\n",
		"role":      "group \"of\" {\n  tenant = \"acme\"\n  roles  = [\"one\", \"reader\"]\n}\n",
		"group":     "user \"of\" {\n  tenant = \"acme\"\n  groups = [\"one\"]\n}\n",
		"user":      "pool_grant \"of\" {\n  tenant = \"acme\"\n  pool   = \"bi\"\n  user   = \"one\"\n}\n",
	}[r.kind.Name]
	if of == "" {
		return
	}
	source := func(a, b string) string {
		return head(r.Name) + r.block("a", r.body(map[string]string{"name": a})) + r.block("b", r.body(map[string]string{"name": b})) + of
	}
	r.apply(t, source(`"one"`, `"two"`))
	r.stepSource(t, "their names swapped below one that names the first", source(`"two"`, `"one"`))
}

// twins have one name in two tenants.
func (r *rows) twins(t *testing.T) {
	if !r.inTenant() {
		return
	}
	attr, one, two := r.distinct()
	body := map[string]string{attr: one}
	in := func(tenant, value string) map[string]string {
		return r.body(body, map[string]string{"tenant": tenant, attr: value})
	}
	r.stepSource(t, "one name in two tenants", head(r.Name)+r.block("a", in(`"acme"`, one))+r.block("b", in(`"other"`, one)))
	if attr == "name" {
		r.stepSource(t, "one of two of one name is renamed", head(r.Name)+r.block("a", in(`"acme"`, one))+r.block("b", in(`"other"`, two)))
	}
}

func (r *rows) inTenant() bool {
	_, ok := r.kind.Attr("tenant")
	return ok
}

// movedAway puts an object, and one that refers to it, into another tenant.
func (r *rows) movedAway(t *testing.T) {
	of := r.user("of", "it")
	if !r.inTenant() || r.kind.Holds != "" || of == "" {
		return
	}
	r.apply(t, r.source(r.body(map[string]string{"tenant": `"acme"`}))+of)
	r.stepSource(t, "in another tenant with one that refers to it", r.source(r.body(map[string]string{"tenant": `"other"`}))+of)
}

// tenantRenamed renames the tenant around an object and all it needs: everything follows.
func (r *rows) tenantRenamed(t *testing.T) {
	source := func(name string) string {
		return head(r.Name) + fmt.Sprintf("tenant \"home\" {\n  name = %q\n}\n\n", name) + household()[r.kind.Name]
	}
	r.stepSource(t, "a tenant with all it needs", source("old"))
	p := r.stepSource(t, "its tenant renamed", source("new"))
	if len(p.Changes) != 1 || p.Changes[0].Action != plan.Update {
		t.Errorf("renaming a tenant is more than one update:\n%s", text(p))
	}
}

// household is, for each kind, an object of tenant.home with what it needs.
func household() map[string]string {
	const (
		lake  = "tenant_db \"lake\" {\n  tenant        = tenant.home\n  kind          = \"ducklake\"\n  allow_destroy = true\n}\n\n"
		pool  = "pool \"bi\" {\n  tenant_db = tenant_db.lake\n  nodes {\n    dual = 0\n  }\n}\n\n"
		role  = "role \"reader\" {\n  tenant = tenant.home\n  permission {\n    privileges = [\"all\"]\n    catalog    = \"lake\"\n  }\n}\n\n"
		group = "group \"staff\" {\n  roles = [role.reader]\n}\n\n"
		user  = "user \"ana\" {\n  groups = [group.staff]\n  roles  = [role.reader]\n}\n\n"
		grant = "pool_grant \"ana\" {\n  pool = pool.bi\n  user = user.ana\n}\n\n"
	)
	return map[string]string{
		"tenant": "", "tenant_db": lake, "pool": lake + pool, "role": role, "group": role + group,
		"user": role + group + user, "pool_grant": lake + pool + role + group + user + grant,
	}
}
