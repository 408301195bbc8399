package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// decoded reads an object as a store has it. The attributes are JSON without braces.
func decoded(t *testing.T, kind, attrs string) (*schema.Kind, cty.Value) {
	t.Helper()
	k, ok := schema.Lookup(kind)
	if !ok {
		t.Fatalf("no kind %s", kind)
	}
	v, err := k.Decode([]byte("{" + attrs + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return k, v
}

// Each case has roles of acme, by name, and who holds them; acme has the lakes sales and hr.
func TestRoleWarnings(t *testing.T) {
	seen := map[string]schema.Contents{
		"sales": {"main": {"Orders": {"id", "Region", "price"}, "totals": nil}, "mart": {"daily": {"day"}}},
		"hr":    {"main": {"people": {"name", "salary"}}},
	}
	const read = `"permission":[{"privileges":["select"]}]`
	tests := map[string]struct {
		roles     map[string]string
		holds     map[string][]string // by user
		groups    map[string][]string // roles by group, of which ana is one
		sensitive []string
		unseen    []string
		want      []string
	}{
		"everything exists": {
			roles: map[string]string{"x": `"permission":[{"catalog":"SALES","schema":"Main","table":"orders","privileges":["select"]},
				{"table":"people","privileges":["all"]},{"table":"Totals","privileges":["select"]},{"schema":"mart","privileges":["select"]}],
				"row_policy":[{"table":"orders","predicate":"true"}],"column_policy":[{"table":"ORDERS","column":"region","action":"deny"},
				{"schema":"main","table":"totals","column":"any","action":"deny"}]`},
			holds: map[string][]string{"ana": {"x"}},
		},
		"a database that does not exist": {
			roles: map[string]string{"x": `"permission":[{"catalog":"sale","schema":"nil","privileges":["select"]}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`permission.catalog role.acme/x: database "sale" does not exist | ` +
				`A permission names it. Until it exists, the permission means nothing. Did you mean "sales"?`},
		},
		"a schema that does not exist": {
			roles: map[string]string{"x": `"permission":[{"catalog":"sales","schema":"marts","table":"nil","privileges":["select"]}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`permission.schema role.acme/x: schema "marts" does not exist | ` +
				`A permission names it in database "sales". Until it exists, the permission means nothing. Did you mean "mart"?`},
		},
		"a table that does not exist": {
			roles: map[string]string{"x": read + `,"row_policy":[{"schema":"main","table":"ordes","predicate":"true"}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`row_policy.table role.acme/x: table "ordes" does not exist | ` +
				`A row policy names it in schema "main". Until it exists, the row policy means nothing. Did you mean "Orders"?`},
		},
		"a column that does not exist": {
			roles: map[string]string{"x": read + `,"column_policy":[{"table":"orders","column":"prize","action":"deny"}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`column_policy.column role.acme/x: column "prize" does not exist | ` +
				`A column policy names it in table "orders". Until it exists, the column policy means nothing. Did you mean "price"?`},
		},
		"one of the databases was not seen": {
			roles: map[string]string{"x": `"permission":[{"table":"nil","privileges":["select"]},{"catalog":"sales","table":"nil","privileges":["select"]}]`},
			holds: map[string][]string{"ana": {"x"}}, unseen: []string{"hr"},
			want: []string{`permission.table role.acme/x: table "nil" does not exist | ` +
				`A permission names it in database "sales". Until it exists, the permission means nothing.`},
		},
		"what the role is to create": {
			roles: map[string]string{"x": `"permission":[{"schema":"scratch","privileges":["create","select"]}]`},
			holds: map[string][]string{"ana": {"x"}},
		},
		"nobody holds it": {
			roles: map[string]string{"x": read}, holds: map[string][]string{"ana": {"qod:reader"}},
			want: []string{` nobody holds role.acme/x | No user has it among its roles, nor is any in a group that has: what it says concerns nobody.`},
		},
		"held by a group without users": {
			roles: map[string]string{"x": read}, groups: map[string][]string{"empty": {"x"}},
			want: []string{` nobody holds role.acme/x | No user has it among its roles, nor is any in a group that has: what it says concerns nobody.`},
		},
		"held by a group": {
			roles: map[string]string{"x": read}, groups: map[string][]string{"staff": {"X"}}, holds: map[string][]string{"ana": nil},
		},
		"a policy on what nobody may read": {
			roles: map[string]string{
				"x": `"row_policy":[{"catalog":"sales","schema":"main","table":"orders","predicate":"true"}]`,
				"y": `"permission":[{"catalog":"hr","privileges":["all"]},{"catalog":"sales","schema":"main","table":"orders","privileges":["insert"]}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}},
			want: []string{`row_policy role.acme/x: a row policy on table "orders", which no holder may read | ` +
				`A policy restricts and allows nothing: without a permission to select, the table is closed to them anyway.`},
		},
		"read through another role": {
			roles: map[string]string{"x": `"row_policy":[{"table":"orders","predicate":"true"}]`}, holds: map[string][]string{"ana": {"x"}, "ben": {"x", "qod:reader"}},
		},
		"a denial and a mask": {
			roles: map[string]string{
				"x": read + `,"column_policy":[{"table":"orders","column":"price","action":"deny"}]`,
				"y": `"column_policy":[{"catalog":"sales","table":"Orders","column":"Price","action":"mask","expression":"0"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}, "ben": {"x", "y"}},
			want: []string{`column_policy role.acme/x and role.acme/y have contradicting policies on orders.price | ` +
				`User ana holds both, and the denial counts: write one of them.`},
		},
		"two masks": {
			roles: map[string]string{
				"x": read + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"1"}]`,
				"y": `"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}},
			want: []string{`column_policy role.acme/x and role.acme/y have contradicting policies on orders.price | ` +
				`User ana holds both. Two masks that differ are a denial: write one of them.`},
		},
		"the same mask, or nobody with both": {
			roles: map[string]string{
				"x": read + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
				"y": read + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
				"z": read + `,"column_policy":[{"table":"orders","column":"price","action":"deny"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}, "ben": {"z"}},
		},
		"within one role": {
			roles: map[string]string{"x": read + `,"column_policy":[{"table":"orders","column":"price","action":"deny"},
				{"schema":"main","table":"orders","column":"price","action":"mask","expression":"0"}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`column_policy role.acme/x has contradicting policies on orders.price | ` +
				`User ana holds it, and the denial counts: write one of them.`},
		},
		"what is sensitive is not named": {
			roles: map[string]string{"x": read + `,"row_policy":[{"table":"ordes","predicate":"true"}],
				"column_policy":[{"table":"orders","column":"price","action":"deny"},{"schema":"main","table":"orders","column":"price","action":"mask","expression":"0"}]`},
			holds: map[string][]string{"ana": {"x"}}, sensitive: []string{"row_policy", "column_policy"},
			want: []string{
				`row_policy role.acme/x: a row policy names a table that does not exist | Its name is sensitive and not shown.`,
				`column_policy role.acme/x has contradicting policies on a column whose name is sensitive | User ana holds it, and the denial counts: write one of them.`,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var r plan.Roles
			stand := func(id, kind, attrs string) {
				k, v := decoded(t, kind, attrs)
				r.After = append(r.After, plan.Standing{ID: id, Kind: k, Spec: v})
			}
			r.Seen = map[string]schema.Contents{}
			for _, db := range []string{"sales", "hr"} {
				stand(db, "tenant_db", fmt.Sprintf(`"tenant":"acme","name":%q,"kind":"ducklake"`, db))
				if !slices.Contains(tc.unseen, db) {
					r.Seen[db] = seen[db]
				}
			}
			for _, role := range sorted(tc.roles) {
				attrs := fmt.Sprintf(`"tenant":"acme","name":%q,%s`, role, tc.roles[role])
				stand("r-"+role, "role", attrs)
				k, v := decoded(t, "role", attrs)
				r.Written = append(r.Written, schema.Object{Kind: k, Address: "role." + role, Value: v, Sensitive: tc.sensitive})
			}
			member := ""
			for _, group := range sorted(tc.groups) {
				stand("g-"+group, "group", fmt.Sprintf(`"tenant":"acme","name":%q,"roles":[%s]`, group, quotedList(tc.groups[group])))
				member = group
			}
			for _, user := range sorted(tc.holds) {
				stand("u-"+user, "user", fmt.Sprintf(`"tenant":"acme","name":%q,"roles":[%s],"groups":[%s]`, user, quotedList(tc.holds[user]),
					quotedList(slices.DeleteFunc([]string{member}, func(s string) bool { return s == "" }))))
			}
			stand("other", "user", `"tenant":"zeta","name":"zoe","roles":["x"]`)
			var got []string
			for _, p := range r.Warnings() {
				if !p.Warning || !strings.HasPrefix(p.Address, "role.") {
					t.Errorf("not a warning about a role: %+v", p)
				}
				got = append(got, fmt.Sprintf("%s %s | %s", pathOf(p.Path), p.Summary, p.Detail))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func sorted[V any](m map[string]V) []string {
	var list []string
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func quotedList(words []string) string {
	var out []string
	for _, w := range words {
		out = append(out, fmt.Sprintf("%q", w))
	}
	return strings.Join(out, ",")
}

// pathOf prints the attributes of a path.
func pathOf(path cty.Path) string {
	var out []string
	for _, step := range path {
		if attr, ok := step.(cty.GetAttrStep); ok {
			out = append(out, attr.Name)
		}
	}
	return strings.Join(out, ".")
}

// Only what is named has to be looked at.
func TestSpecificDatabases(t *testing.T) {
	var databases []plan.Standing
	for _, at := range []string{"acme/sales", "acme/hr", "zeta/sales"} {
		tenant, name, _ := strings.Cut(at, "/")
		k, v := decoded(t, "tenant_db", fmt.Sprintf(`"tenant":%q,"name":%q,"kind":"ducklake"`, tenant, name))
		databases = append(databases, plan.Standing{ID: at, Kind: k, Spec: v})
	}
	for blocks, want := range map[string][]string{
		`"permission":[{"privileges":["all"]},{"catalog":"sales","privileges":["all"]}]`:                       nil,
		`"permission":[{"catalog":"sales","table":"t","privileges":["all"]}]`:                                  {"acme/sales"},
		`"row_policy":[{"table":"t","predicate":"true"}],"permission":[{"catalog":"hr","privileges":["all"]}]`: {"acme/hr", "acme/sales"},
		`"row_policy":[{"catalog":"nil","table":"t","predicate":"true"}]`:                                      nil,
	} {
		k, v := decoded(t, "role", `"tenant":"acme","name":"r",`+blocks)
		if diff := cmp.Diff(want, plan.Specific(schema.Object{Kind: k, Value: v}, databases)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", blocks, diff)
		}
	}
}
