package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// random makes small configurations in which names, references, tenants and labels come and go.
type random struct {
	*rand.Rand
	objects []schema.Object
	tenant  map[string]string // address → tenant
	names   map[string]bool
}

func (r *random) some() bool { return r.IntN(3) > 0 }

func configuration(rnd *rand.Rand) []schema.Object {
	r := &random{Rand: rnd, tenant: map[string]string{}, names: map[string]bool{}}
	for i := range 2 {
		label := fmt.Sprint("t", i)
		r.add("tenant", label, "", map[string]cty.Value{"name": r.name("tenant", "")})
	}
	for i := range 4 {
		r.one("role", i, nil)
	}
	for i := range 3 {
		r.one("group", i, func(t string, v map[string]cty.Value) []string { return r.refer(v, "roles", "role", t) })
	}
	for i := range 4 {
		r.one("user", i, func(t string, v map[string]cty.Value) []string {
			return append(r.refer(v, "roles", "role", t), r.refer(v, "groups", "group", t)...)
		})
	}
	for i := range 2 {
		tenant := fmt.Sprint("tenant.t", i)
		db := r.add("tenant_db", fmt.Sprint("d", i), tenant, map[string]cty.Value{
			"name": r.name("tenant_db", tenant), "kind": cty.StringVal("ducklake"), "allow_destroy": cty.True,
		}, tenant)
		if !r.some() {
			continue
		}
		pool := r.add("pool", fmt.Sprint("p", i), tenant, map[string]cty.Value{
			"name": r.name("pool", tenant), "tenant_db": r.nameOf(db), "memory": cty.StringVal(fmt.Sprintf("%dGiB", 1+r.IntN(2))),
		}, tenant, db)
		for _, user := range r.of("user", tenant) {
			if r.some() {
				r.add("pool_grant", "g"+user[len("user."):], tenant, map[string]cty.Value{"pool": r.nameOf(pool), "user": r.nameOf(user)}, pool, user)
			}
		}
	}
	return r.objects
}

func (r *random) one(kind string, i int, more func(string, map[string]cty.Value) []string) {
	if !r.some() {
		return
	}
	tenant := fmt.Sprint("tenant.t", i%2)
	if r.IntN(6) == 0 {
		tenant = fmt.Sprint("tenant.t", (i+1)%2)
	}
	values := map[string]cty.Value{"name": r.name(kind, tenant)}
	if kind == "group" {
		values["description"] = cty.StringVal(fmt.Sprint(r.IntN(3)))
	}
	needs := []string{tenant}
	if more != nil {
		needs = append(needs, more(tenant, values)...)
	}
	r.add(kind, fmt.Sprint(kind[:1], i), tenant, values, needs...)
}

// name picks one of few names, so that they are swapped and given on.
func (r *random) name(kind, tenant string) cty.Value {
	for {
		name := string(rune('a' + r.IntN(6)))
		if key := kind + tenant + "/" + name; !r.names[key] {
			r.names[key] = true
			return cty.StringVal(name)
		}
	}
}

func (r *random) of(kind, tenant string) []string {
	var list []string
	for _, o := range r.objects {
		if o.Kind.Name == kind && r.tenant[o.Address] == tenant {
			list = append(list, o.Address)
		}
	}
	return list
}

func (r *random) refer(values map[string]cty.Value, attr, kind, tenant string) []string {
	var names []cty.Value
	var needs []string
	for _, address := range r.of(kind, tenant) {
		if r.some() {
			names, needs = append(names, r.nameOf(address)), append(needs, address)
		}
	}
	if len(names) > 0 {
		values[attr] = cty.SetVal(names)
	}
	return needs
}

func (r *random) nameOf(address string) cty.Value {
	i := slices.IndexFunc(r.objects, func(o schema.Object) bool { return o.Address == address })
	return r.objects[i].Value.GetAttr("name")
}

func (r *random) add(kind, label, tenant string, values map[string]cty.Value, needs ...string) string {
	k, _ := schema.Lookup(kind)
	attrs := k.Empty().AsValueMap()
	for name, v := range values {
		attrs[name] = v
	}
	if tenant != "" {
		attrs["tenant"] = r.nameOf(tenant)
	}
	address := kind + "." + label
	r.tenant[address] = tenant
	o := schema.Object{Kind: k, Address: address, Value: cty.ObjectVal(attrs), DependsOn: needs}
	if kind == "group" && r.IntN(5) == 0 {
		o.Lifecycle.IgnoreChanges = []cty.Path{cty.GetAttrPath("description")}
	}
	if kind == "user" && r.IntN(5) == 0 && len(needs) > 1 {
		at, _ := schema.ParseAddress(needs[1])
		o.Lifecycle.ReplaceTriggeredBy = []schema.Trigger{{Address: at}}
	}
	r.objects = append(r.objects, o)
	return address
}

// selection narrows a plan at random.
func (r *random) selection(objects []schema.Object, stored []plan.Actual) plan.Selection {
	var s plan.Selection
	pick := func() []schema.Address {
		var list []schema.Address
		for range 1 + r.IntN(3) {
			address := objects[r.IntN(len(objects))].Address
			if r.IntN(2) == 0 && len(stored) > 0 {
				address = stored[r.IntN(len(stored))].Address
			}
			a, _ := schema.ParseAddress(address)
			list = append(list, a)
		}
		return list
	}
	if r.some() {
		s.Targets = pick()
	}
	if !s.Partial() || r.IntN(4) == 0 {
		s.Exclude = pick()
	}
	if r.IntN(4) == 0 {
		if a, _ := schema.ParseAddress(objects[r.IntN(len(objects))].Address); a.Kind != "tenant_db" {
			s.Replace = []schema.Address{a}
		}
	}
	return s
}

// Whatever is selected of whatever configuration, a plan that has no error leaves a sound world, is in order,
// and a plan of everything afterwards leaves nothing to do.
func TestRandomPlans(t *testing.T) {
	refused, plans := 0, 0
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		r := &random{Rand: rnd}
		w := &simulated{}
		w.run(t, seed, configuration(rnd), plan.Selection{}, plan.Normal)
		next := configuration(rnd)
		mode := plan.Normal
		if rnd.IntN(6) == 0 {
			mode = plan.Destroy
		}
		plans++
		if !w.run(t, seed, next, r.selection(next, w.objects), mode) {
			refused++
		}
		if !w.run(t, seed, next, plan.Selection{}, plan.Normal) {
			t.Fatalf("seed %d: the whole plan is refused: %s", seed, render(t, w.plan(next, plan.Selection{}, plan.Normal)))
		}
		if p := w.plan(next, plan.Selection{}, plan.Normal); !p.Empty() || len(p.Problems) > 0 {
			t.Fatalf("seed %d: the second plan is not empty: %s", seed, render(t, p))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d of %d partial plans refused", refused, plans)
	if refused > plans/6 {
		t.Errorf("%d of %d partial plans are refused", refused, plans)
	}
}
