package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/runtime/backend"
)

func TestTargets(t *testing.T) {
	tests := map[string]struct {
		change     func(d *desk)
		stop, hold string
		count      map[backend.Role]int
	}{
		"ready": {func(*desk) {}, "", "", map[backend.Role]int{backend.Dual: 2}},
		"roles": {
			func(d *desk) {
				d.put("pool", map[string]cty.Value{"nodes": cty.ObjectVal(map[string]cty.Value{
					"dual": cty.NullVal(cty.Number), "read": cty.NumberIntVal(3), "write": cty.NumberIntVal(1),
				})})
			}, "", "", map[backend.Role]int{backend.Read: 3, backend.Write: 1},
		},
		"no nodes block": {func(d *desk) { d.put("pool", nil) }, "", "", map[backend.Role]int{backend.Dual: 1}},
		"suspended":      {func(d *desk) { d.put("pool", plus(dual(2), "suspended", cty.True)) }, "suspended", "", nil},
		"disabled":       {func(d *desk) { d.put("pool", plus(dual(2), "disabled", cty.True)) }, "disabled", "", nil},
		"deleted":        {func(d *desk) { d.bury("pool", "bi") }, "the pool is deleted", "", nil},
		"tenant disabled": {
			func(d *desk) { d.put("tenant", map[string]cty.Value{"disabled": cty.True}) },
			"its tenant is disabled", "", nil,
		},
		"database disabled": {
			func(d *desk) {
				d.put("tenant_db", map[string]cty.Value{"kind": cty.StringVal("ducklake"), "disabled": cty.True})
			}, "its database is disabled", "", nil,
		},
		"database provisioning": {
			func(d *desk) { d.status(store.Status{Phase: store.Provisioning, Message: "making the lake"}) },
			"", "tenant_db.acme/sales is not ready: making the lake", map[backend.Role]int{backend.Dual: 2},
		},
		"database new": {
			func(d *desk) { d.status(store.Status{}) },
			"", "tenant_db.acme/sales is not ready", map[backend.Role]int{backend.Dual: 2},
		},
		"database deleting": {
			func(d *desk) { d.status(store.Status{Phase: store.Deleting}) }, "its database is being deleted", "", nil,
		},
		"no spec": {
			func(d *desk) { d.put("pool", plus(dual(2), "threads", cty.NumberIntVal(13))) },
			"", "no luck", map[backend.Role]int{backend.Dual: 2},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, store.NewMemory(nil))
			pool := d.put("pool", dual(2))
			test.change(d)
			s, err := d.store.Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := targets(s, d.spec)[pool]
			if got.stop != test.stop || got.hold != test.hold {
				t.Errorf("stop %q, hold %q; want %q, %q", got.stop, got.hold, test.stop, test.hold)
			}
			if diff := cmp.Diff(test.count, got.count); diff != "" {
				t.Errorf("count (-want +got):\n%s", diff)
			}
			if got.addr.String() != "pool.acme/bi" || got.tenant != "acme" || got.name != "bi" {
				t.Errorf("names %s %s %s", got.addr, got.tenant, got.name)
			}
		})
	}
}

func (d *desk) status(s store.Status) {
	d.t.Helper()
	db, _ := d.find("tenant_db", "sales")
	if err := d.store.SetStatus(d.t.Context(), db.ID, s, nil); err != nil {
		d.t.Fatal(err)
	}
}
