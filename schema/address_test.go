package schema_test

import (
	"testing"

	"github.com/qod-io/qod/schema"
)

func TestAddressRoundTrip(t *testing.T) {
	for _, s := range []string{
		"pool.bi", `user.all["ana"]`, `user.all["ann.o'neil@corp.com"]`, `user.all["a\"b\\$${c}"]`, "module.eu",
		`module.region["eu"].pool.bi`, `module.region["eu"].module.inner.user.all["x"]`,
	} {
		a, err := schema.ParseAddress(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if again, err := schema.ParseAddress(a.String()); err != nil || again.String() != a.String() {
			t.Errorf("%s printed as %s: %v", s, a, err)
		}
	}
	for _, s := range []string{"", "pool", "pools.bi", "pool.bi.memory", "module", `module["x"]`, "pool.bi[0]", "pool.bi[each.key]", "x y"} {
		if a, err := schema.ParseAddress(s); err == nil {
			t.Errorf("%q was read as %s", s, a)
		}
	}
}

func TestRebase(t *testing.T) {
	for name, c := range map[string]struct{ address, from, to, want string }{
		"object":                 {"pool.bi", "pool.bi", "pool.reports", "pool.reports"},
		"another":                {"pool.etl", "pool.bi", "pool.reports", ""},
		"into for_each":          {"pool.bi", "pool.bi", `pool.all["x"]`, `pool.all["x"]`},
		"out of for_each":        {`pool.all["x"]`, `pool.all["x"]`, "pool.bi", "pool.bi"},
		"other key":              {`pool.all["y"]`, `pool.all["x"]`, "pool.bi", ""},
		"whole block":            {`pool.all["y"]`, "pool.all", "pool.each", `pool.each["y"]`},
		"instances to one":       {`pool.all["y"]`, "pool.all", `pool.each["x"]`, ""},
		"module":                 {"module.a.pool.bi", "module.a", "module.b", "module.b.pool.bi"},
		"module into for_each":   {"module.a.pool.bi", "module.a", `module.b["x"]`, `module.b["x"].pool.bi`},
		"modules":                {`module.a["x"].pool.bi`, "module.a", "module.b", `module.b["x"].pool.bi`},
		"inner module":           {"module.a.module.c.pool.bi", "module.a.module.c", "module.d", "module.d.pool.bi"},
		"into a module":          {"pool.bi", "pool.bi", "module.a.pool.bi", "module.a.pool.bi"},
		"other module":           {"module.b.pool.bi", "pool.bi", "pool.x", ""},
		"outer object is not in": {"pool.bi", "module.a", "module.b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			address, from, to := parse(t, c.address), parse(t, c.from), parse(t, c.to)
			got, ok := address.Rebase(from, to)
			if ok != (c.want != "") || ok && got.String() != c.want {
				t.Errorf("got %s, %v; want %q", got, ok, c.want)
			}
		})
	}
}

func parse(t *testing.T, s string) schema.Address {
	t.Helper()
	a, err := schema.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
