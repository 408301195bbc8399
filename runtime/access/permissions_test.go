package access

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

type permissionCase struct {
	roles  map[string]string // the blocks, by name
	groups map[string]string // the roles in JSON, by name
	ana    string            // more of her attributes
	want   wire.Permissions  // on the database sales
}

const (
	readOrders = `"permission":[{"schema":"Main","table":"Orders","privileges":["select"]}]`
	euRows     = `"row_policy":[{"table":"ORDERS","predicate":"region = 'EU'"}]`
)

func grant(schema, table string, privileges ...string) wire.Permission {
	return wire.Permission{Catalog: "sales", Schema: schema, Table: table, Privileges: privileges}
}

func rows(table, predicate string) wire.RowPolicy {
	return wire.RowPolicy{Catalog: "sales", Schema: "*", Table: table, Predicate: predicate}
}

func grantCases() map[string]permissionCase {
	return map[string]permissionCase{
		"nothing": {},
		"a role that allows nothing": {
			roles: map[string]string{"empty": `"description":"x"`}, ana: `"roles":["empty"]`,
		},
		"a role and a group's role are united": {
			roles:  map[string]string{"reader": readOrders, "writer": `"permission":[{"schema":"main","table":"orders","privileges":["insert","delete"]}]`},
			groups: map[string]string{"crew": `["writer"]`},
			ana:    `"roles":["reader"],"groups":["crew"]`,
			want:   wire.Permissions{Grants: []wire.Permission{grant("main", "orders", "delete", "insert", "select")}},
		},
		"all is every privilege": {
			roles: map[string]string{"r": `"permission":[{"privileges":["select"]},{"privileges":["all","select"]}]`}, ana: `"roles":["r"]`,
			want: wire.Permissions{Grants: []wire.Permission{grant("*", "*", "all")}},
		},
		"another database does not count": {
			roles: map[string]string{"r": `"permission":[{"catalog":"other","privileges":["all"]},{"catalog":"Sales","schema":"m","privileges":["select"]}],
				"row_policy":[{"catalog":"other","table":"t","predicate":"false"}],"column_policy":[{"catalog":"other","table":"t","column":"c","action":"deny"}]`},
			ana:  `"roles":["r"]`,
			want: wire.Permissions{Grants: []wire.Permission{grant("m", "*", "select")}},
		},
		"one grant written twice": {
			roles: map[string]string{
				"a": `"permission":[{"catalog":"sales","privileges":["select"]}]`, "b": `"permission":[{"privileges":["select"]}]`,
			}, ana: `"roles":["a","b"]`,
			want: wire.Permissions{Grants: []wire.Permission{grant("*", "*", "select")}},
		},
	}
}

func policyCases() map[string]permissionCase {
	return map[string]permissionCase{
		"policies of all roles": {
			roles: map[string]string{
				"eu": euRows, "eu2": euRows, "us": `"row_policy":[{"table":"orders","predicate":"region = 'US'"}]`,
				"blind": `"column_policy":[{"schema":"main","table":"Orders","column":"Card","action":"deny"},
					{"schema":"main","table":"orders","column":"price","action":"mask","expression":"NULL"}]`,
			}, groups: map[string]string{"crew": `["us","blind"]`}, ana: `"roles":["eu","eu2"],"groups":["crew"]`,
			want: wire.Permissions{
				Rows: []wire.RowPolicy{rows("orders", "region = 'EU'"), rows("orders", "region = 'US'")},
				Columns: []wire.ColumnPolicy{
					{Catalog: "sales", Schema: "main", Table: "orders", Column: "card"},
					{Catalog: "sales", Schema: "main", Table: "orders", Column: "price", Expression: "NULL"},
				},
			},
		},
		"virtual roles": {
			groups: map[string]string{"crew": `["qod:writer"]`}, ana: `"roles":["qod:reader"],"groups":["crew"]`,
			want: wire.Permissions{Grants: []wire.Permission{grant("*", "*", "delete", "insert", "select", "update")}},
		},
		"a virtual administrator is below policies": {
			roles: map[string]string{"eu": euRows}, ana: `"roles":["QOD:Admin","eu"]`,
			want: wire.Permissions{
				Grants: []wire.Permission{grant("*", "*", "all")}, Rows: []wire.RowPolicy{rows("orders", "region = 'EU'")},
			},
		},
		"an administrator is above them": {
			roles: map[string]string{"eu": euRows}, ana: `"roles":["eu"],"admin":true`,
			want: wire.Permissions{Admin: true},
		},
		"a predicate that says for whom": {
			roles:  map[string]string{"own": `"row_policy":[{"table":"*","predicate":"owner = Current_User"}]`},
			groups: map[string]string{"crew": `["qod:reader"]`}, ana: `"roles":["own"],"groups":["crew"]`,
			want: wire.Permissions{
				Grants: []wire.Permission{grant("*", "*", "select")}, Rows: []wire.RowPolicy{rows("*", "owner = Current_User")},
				Principal: &wire.Principal{User: "ana", Tenant: "acme", Roles: []string{"own", "qod:reader"}, Groups: []string{"crew"}},
			},
		},
	}
}

func TestPermissions(t *testing.T) {
	tests := grantCases()
	maps.Copy(tests, policyCases())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := acme(t)
			for role, blocks := range tc.roles {
				w.add("role", "x-"+role, fmt.Sprintf(`{"tenant":"acme","name":%q,%s}`, role, blocks))
			}
			for group, roles := range tc.groups {
				w.add("group", "x-"+group, fmt.Sprintf(`{"tenant":"acme","name":%q,"roles":%s}`, group, roles))
			}
			w.add("user", "x-ana", `{"tenant":"acme","name":"ana"`+strings.Repeat(",", min(1, len(tc.ana)))+tc.ana+`}`)
			d := w.directory()
			if diff := cmp.Diff(tc.want, d.permissionsOf(d.users["x-ana"], "sales")); diff != "" {
				t.Errorf("permissions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolicyNamesPrincipal(t *testing.T) {
	for sql, want := range map[string]bool{
		"owner = current_user": true, "list_contains(CURRENT_ROLES, role)": true, "current_tenant IS NULL": true, "x IN current_groups": true,
		"": false, "owner = 'current_user'": false, `"current_user" = 1`: false, "current_users = 1": false, "a -- current_user": false,
		"'not closed": true,
	} {
		if got := namesPrincipal(sql); got != want {
			t.Errorf("%s: %t", sql, got)
		}
	}
}
