package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine"
	"github.com/qod-io/qod/schema"
)

// A plan says what live work ends with it, and asks no node where none does.
func TestDraining(t *testing.T) {
	pool := func(json string) schema.Object { return object(t, "pool", "pool.p", json, "tenant_db.a") }
	asPool := func(json string) func([]schema.Object) []schema.Object {
		return func(d []schema.Object) []schema.Object { d[3] = pool(json); return d }
	}
	const busy = "2 sessions (1 in a transaction), 1 running statement: they have up to 30s to end"
	tests := map[string]struct {
		change func(desired []schema.Object) []schema.Object
		load   engine.Load
		want   []string
		asked  int
	}{
		"roll": {
			asPool(`{"tenant":"acme","name":"p","tenant_db":"a","threads":4,"nodes":{"dual":2}}`),
			engine.Load{Sessions: 2, Transactions: 1, Statements: 1}, []string{"pool.acme/p: " + busy}, 1,
		},
		"suspend": {
			asPool(`{"tenant":"acme","name":"p","tenant_db":"a","suspended":true,"nodes":{"dual":2}}`),
			engine.Load{Sessions: 1}, []string{"pool.acme/p: 1 session: they have up to 30s to end"}, 1,
		},
		"fewer nodes": {
			asPool(`{"tenant":"acme","name":"p","tenant_db":"a","nodes":{"dual":1}}`),
			engine.Load{Statements: 3, Silent: 1}, []string{"pool.acme/p: 3 running statements: they have up to 30s to end; " +
				"1 node does not answer, and what it does is not known"}, 1,
		},
		"more nodes": {
			asPool(`{"tenant":"acme","name":"p","tenant_db":"a","nodes":{"dual":3}}`),
			engine.Load{Sessions: 2}, nil, 0,
		},
		"live setting": {
			asPool(`{"tenant":"acme","name":"p","tenant_db":"a","statement_timeout":"5s","nodes":{"dual":2}}`),
			engine.Load{Sessions: 2}, nil, 0,
		},
		"idle": {
			func(d []schema.Object) []schema.Object { return append(d[:3], d[4:]...) }, engine.Load{}, nil, 1,
		},
		"the tenant is disabled": {
			func(d []schema.Object) []schema.Object {
				d[0] = object(t, "tenant", "tenant.acme", `{"name":"acme","disabled":true}`)
				return d
			}, engine.Load{Sessions: 2, Transactions: 1, Statements: 1}, []string{"pool.acme/p: " + busy}, 1,
		},
		"database and pool go": {
			func(d []schema.Object) []schema.Object { return append(d[:1:1], d[2], d[4]) },
			engine.Load{Sessions: 2, Transactions: 1, Statements: 1}, []string{"pool.acme/p: " + busy, "tenant_db.acme/a: " + busy}, 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			f := &fleet{loads: map[string]engine.Load{}}
			b.Runtime, b.DrainLimit = f, 30*time.Second
			desired := estate(t)
			desired[3] = pool(`{"tenant":"acme","name":"p","tenant_db":"a","nodes":{"dual":2}}`)
			b.commit(t, desired)
			for _, o := range snapshot(t, b).Objects {
				if o.Kind.Name == "pool" {
					f.loads[o.ID] = tt.load
				}
			}
			p := b.plan(t, tt.change(desired))
			if p.Failed() {
				t.Fatal(p.Problems)
			}
			if diff := cmp.Diff(tt.want, lines(p.Draining)); diff != "" || f.asked != tt.asked {
				t.Errorf("nodes were asked %d times, want %d\n%s", f.asked, tt.asked, diff)
			}
		})
	}
}
