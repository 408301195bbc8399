package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// stored is an estate of two stacks as the store gives it.
func stored(t *testing.T) *store.Snapshot {
	t.Helper()
	object := func(id, kind, address, stack, spec string) store.Object {
		k, _ := schema.Lookup(kind)
		v, err := k.Decode([]byte(spec))
		if err != nil {
			t.Fatal(err)
		}
		return store.Object{ID: id, Kind: k, Spec: v, Applied: v, Address: address, Stack: stack, Generation: 1, Revision: 4}
	}
	objects := []store.Object{
		object("t", "tenant", "tenant.acme", "s", `{"name":"acme"}`),
		object("d", "tenant_db", "tenant_db.sales", "s", `{"tenant":"acme","name":"sales","kind":"ducklake"}`),
		object("p", "pool", `pool.all["bi"]`, "s", `{"tenant":"acme","name":"bi","tenant_db":"sales","nodes":{"dual":2}}`),
		object("r", "role", "role.owner", "s", `{"tenant":"acme","name":"owner","permission":[{"privileges":["all"]}]}`),
		object("u", "user", "user.ana", "s", `{"tenant":"acme","name":"ana","password":"hmac:1","password_version":9007199254740993,"roles":["owner"]}`),
		object("v", "user", "user.bob", "s", `{"tenant":"acme","name":"bob","password_verifier":"hmac:2"}`),
		object("x", "tenant", "tenant.x", "other", `{"name":"x"}`),
		object("w", "tenant", "tenant.w", "s", `{"name":"w","display_name":"hunter2"}`),
	}
	objects[1].Status = store.Status{Phase: store.Provisioning, Message: "its Postgres database is being made", Generation: 1}
	objects[2].Protected, objects[2].Sensitive = true, []string{"nodes"}
	objects[7].Sensitive = []string{"display_name"}
	return &store.Snapshot{
		Revision: 9, Objects: objects, Stacks: map[string]store.Stack{"s": {Name: "s", Lineage: "l"}, "other": {Name: "other", Lineage: "m"}},
		Outputs: map[string][]schema.Output{"s": {
			{Name: "pools", Value: cty.ListVal([]cty.Value{cty.StringVal("bi")})}, {Name: "token", Value: cty.NilVal, Sensitive: true},
		}},
	}
}

func TestShowStack(t *testing.T) {
	out := &bytes.Buffer{}
	if err := (&app{stdout: out}).printStack(stored(t), "s"); err != nil {
		t.Fatal(err)
	}
	want := `Stack "s" at revision 9: 7 objects.

# tenant.acme is tenant.acme
tenant "acme" {
  name = "acme"
}

# tenant_db.acme/sales is tenant_db.sales, provisioning (its Postgres database is being made)
tenant_db "sales" {
  tenant = "acme"
  name   = "sales"
  kind   = "ducklake"
}

# pool.acme/bi is pool.all["bi"], protected
pool.all["bi"] {
  tenant    = "acme"
  name      = "bi"
  tenant_db = "sales"
  nodes     = (sensitive value)
}

# role.acme/owner is role.owner
role "owner" {
  tenant = "acme"
  name   = "owner"
  permission {
    privileges = ["all"]
  }
}

# user.acme/ana is user.ana
user "ana" {
  tenant           = "acme"
  name             = "ana"
  password         = (sensitive value)
  password_version = 9007199254740993
  roles            = ["owner"]
}

# user.acme/bob is user.bob
user "bob" {
  tenant            = "acme"
  name              = "bob"
  password_verifier = (sensitive value)
}

# tenant.w is tenant.w
tenant "w" {
  name         = "w"
  display_name = (sensitive value)
}

Outputs:

pools = ["bi"]
token = (sensitive value)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestShowStackAsJSON(t *testing.T) {
	d, err := describeStack(stored(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"format_version":"1.1"`, `"revision":9`, `"values":{"name":"bob","password_verifier":null,"tenant":"acme"},"sensitive":{"password_verifier":true}`,
		`{"display_name":null,"name":"w"},"sensitive":{"display_name":true}`, `"password_version":9007199254740993`, `"status":{"phase":"provisioning"`, `"protected":true`, `"token":{"sensitive":true}`,
		`"pools":{"sensitive":false,"type":["list","string"],"value":["bi"]}`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the JSON lacks %s", want)
		}
	}
	if strings.Contains(string(raw), "hmac:") || strings.Contains(string(raw), "hunter2") || len(d.Objects) != 7 {
		t.Errorf("%d objects: %s", len(d.Objects), raw)
	}
}

func TestStaleness(t *testing.T) {
	snap := stored(t)
	snap.Objects[1].Tombstone = true
	change := func(action plan.Action, id, newID string, saw int64) plan.Change {
		return plan.Change{Action: action, ID: id, NewID: newID, Addr: schema.NewAddr("tenant", id), Saw: saw}
	}
	tests := map[string]struct {
		plan plan.Plan
		want string
	}{
		"fresh":         {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Create, "new", "", 0), change(plan.Update, "t", "", 4)}}, ""},
		"first":         {plan.Plan{Stack: "unknown", Lineage: "l"}, ""},
		"other stack":   {plan.Plan{Stack: "s", Lineage: "m"}, "another stack"},
		"made":          {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Create, "t", "", 0)}}, "has been applied"},
		"made anew":     {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Replace, "gone", "t", 3)}}, "has been applied"},
		"moved":         {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Update, "t", "", 3)}}, "tenant.t has changed"},
		"gone":          {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Delete, "gone", "", 3)}}, "tenant.gone has changed"},
		"being deleted": {plan.Plan{Stack: "s", Lineage: "l", Changes: []plan.Change{change(plan.Delete, "d", "", 4)}}, "tenant.d has changed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := staleness(&tt.plan, snap)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
