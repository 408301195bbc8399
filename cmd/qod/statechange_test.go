package main

import (
	"strings"
	"testing"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// What is moved is called by where it is, or by what it is.
func TestMove(t *testing.T) {
	object := func(kind, spec, address string) store.Object {
		k, _ := schema.Lookup(kind)
		v, err := k.Decode([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		return store.Object{ID: address, Kind: k, Spec: v, Applied: v, Address: address, Stack: "s"}
	}
	objects := []store.Object{
		object("tenant", `{"name":"apex"}`, "tenant.acme"), // called apex since
		object("pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`, `pool.all["bi"]`),
		object("pool", `{"tenant":"acme","name":"etl","tenant_db":"sales"}`, `pool.all["etl"]`),
		object("pool", `{"tenant":"acme","name":"made","tenant_db":"sales"}`, "pool.acme/made"), // by a request
		object("user", `{"name":"ana@example.com","system":true}`, "user.ana@example.com"),      // likewise
	}
	for name, tt := range map[string]struct{ from, to, want, err string }{
		"a place":            {from: `pool.all["bi"]`, to: "pool.bi", want: `pool.all["bi"] to pool.bi`},
		"a block":            {from: "pool.all", to: "pool.each", want: `pool.all["bi"] to pool.each["bi"], pool.all["etl"] to pool.each["etl"]`},
		"a name":             {from: "pool.acme/bi", to: "pool.bi", want: `pool.all["bi"] to pool.bi`},
		"a name of no block": {from: "pool.acme/made", to: "pool.made", want: "pool.acme/made to pool.made"},
		"in other letters":   {from: "pool.Acme/BI", to: "pool.bi", want: `pool.all["bi"] to pool.bi`},
		"without a tenant":   {from: "tenant.apex", to: "tenant.a", want: "tenant.acme to tenant.a"},
		"nothing":            {from: "pool.acme/bo", to: "pool.b", err: `there is no object pool.acme/bo. Did you mean "pool.acme/bi"?`},
		"no key":             {from: "pool.acme/bi/x", to: "pool.b", err: "there is no object"},
		"no address":         {from: "pool", to: "pool.b", err: `"pool" is no address`},
		"to a name":          {from: "pool.acme/bi", to: "pool.acme/bo", err: "TO is where the configuration has it then, as in pool.LABEL"},
		"to another kind":    {from: "pool.acme/bi", to: "user.bi", err: "are not of one kind"},
		"to where it is":     {from: "pool.acme/bi", to: `pool.all["bi"]`, err: "is there already"},
		"to where one is":    {from: "pool.acme/bi", to: `pool.all["etl"]`, err: "is the address of pool.acme/etl already"},
	} {
		writes, err := move(objects, tt.from, tt.to)
		var moved []string
		for _, w := range writes {
			moved = append(moved, w.ID+" to "+w.Address)
		}
		got := strings.Join(moved, ", ")
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %s, %v; want %s, %s", name, got, err, tt.want, tt.err)
		}
	}
}
