package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// estate is a configuration of many tenants as users have them, and what is stored of it.
type estate struct {
	desired []schema.Object
	actual  []plan.Actual
}

func newEstate(tenants, users int) *estate {
	e := &estate{}
	for t := range tenants {
		tenant := fmt.Sprintf("t%d", t)
		in := func(values map[string]cty.Value) map[string]cty.Value {
			values["tenant"] = cty.StringVal(tenant)
			return values
		}
		at := e.add("tenant", tenant, map[string]cty.Value{"name": cty.StringVal(tenant)})
		db := e.add("tenant_db", tenant, in(map[string]cty.Value{"name": cty.StringVal("db"), "kind": cty.StringVal("ducklake")}), at)
		pool := e.add("pool", tenant, in(map[string]cty.Value{
			"name": cty.StringVal("bi"), "tenant_db": cty.StringVal("db"), "memory": cty.StringVal("2GiB"),
			"nodes": cty.ObjectVal(map[string]cty.Value{
				"read": cty.NumberIntVal(2), "write": cty.NullVal(cty.Number), "dual": cty.NullVal(cty.Number),
			}),
		}), at, db)
		for r := range users / 10 {
			name := fmt.Sprintf("r%d", r)
			e.add("role", tenant+name, in(map[string]cty.Value{"name": cty.StringVal(name)}), at)
			e.add("group", tenant+name, in(map[string]cty.Value{
				"name": cty.StringVal(name), "roles": cty.SetVal([]cty.Value{cty.StringVal(name)}),
			}), at, "role."+tenant+name)
		}
		for u := range users {
			name, role := fmt.Sprintf("u%d", u), fmt.Sprintf("r%d", u%(users/10))
			user := e.add("user", tenant+name, in(map[string]cty.Value{
				"name": cty.StringVal(name), "email": cty.StringVal(name + "@example.org"), "password": cty.StringVal("secret"),
				"roles":  cty.SetVal([]cty.Value{cty.StringVal(role)}),
				"groups": cty.SetVal([]cty.Value{cty.StringVal(role)}),
			}), at, "role."+tenant+role, "group."+tenant+role)
			e.add("pool_grant", tenant+name, in(map[string]cty.Value{"pool": cty.StringVal("bi"), "user": cty.StringVal(name)}), at, pool, user)
		}
	}
	return e
}

func (e *estate) add(kindName, label string, values map[string]cty.Value, needs ...string) string {
	k, _ := schema.Lookup(kindName)
	attrs := k.Empty().AsValueMap()
	for name, v := range values {
		attrs[name] = v
	}
	address := kindName + "." + label
	want := schema.Object{Kind: k, Address: address, Value: cty.ObjectVal(attrs), DependsOn: needs}
	if v, ok := values["password"]; ok {
		attrs["password"] = cty.StringVal(address + v.AsString())
	}
	spec := cty.ObjectVal(attrs)
	e.desired = append(e.desired, want)
	e.actual = append(e.actual, plan.Actual{ID: address, Kind: k, Spec: spec, Applied: spec, Address: address, Stack: "s", Revision: 1})
	return address
}

func (e *estate) input() plan.Input {
	next := 0
	return plan.Input{
		Stack: "s", Desired: schema.Desired{Objects: e.desired}, Actual: e.actual,
		NewID:       func() string { next++; return fmt.Sprint("new-", next) },
		Fingerprint: func(id, _, secret string) string { return id + secret },
	}
}

func BenchmarkBuild(b *testing.B) {
	e := newEstate(50, 134)
	b.Logf("%d objects", len(e.desired))
	for name, change := range map[string]func(*plan.Input){
		"unchanged": func(*plan.Input) {},
		"create":    func(in *plan.Input) { in.Actual = nil },
		"destroy":   func(in *plan.Input) { in.Mode = plan.Destroy },
		"targeted": func(in *plan.Input) {
			in.Selection.Targets = []schema.Address{{Kind: "user", Step: schema.Step{Name: "t1u1"}}}
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				in := e.input()
				change(&in)
				plan.Build(in)
			}
		})
	}
}

// Ten times the objects take about ten times as long. The least of several runs is compared: it is the one
// that others disturbed least.
func TestPlansGrowLinearly(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for name, change := range map[string]func(*plan.Input){
		"unchanged": func(*plan.Input) {},
		"create":    func(in *plan.Input) { in.Actual = nil },
		"destroy":   func(in *plan.Input) { in.Mode = plan.Destroy },
	} {
		small, large := least(newEstate(5, 134), change), least(newEstate(50, 134), change)
		t.Logf("%s: %v for a tenth of %v", name, small, large)
		if large > 40*small {
			t.Errorf("%s: %v for a tenth of the objects, %v for all", name, small, large)
		}
	}
}

func least(e *estate, change func(*plan.Input)) time.Duration {
	best := time.Hour
	for range 3 {
		in := e.input()
		change(&in)
		start := time.Now()
		plan.Build(in)
		best = min(best, time.Since(start))
	}
	return best
}
