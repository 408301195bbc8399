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

type roleCase struct {
	roles     map[string]string   // the blocks, by name
	holds     map[string][]string // the roles, by user
	groups    map[string][]string // the roles, by group; users are in all
	sensitive []string            // blocks
	unseen    []string            // databases
	want      []string
}

// reading is a permission to read everything.
const reading = `"permission":[{"privileges":["select"]}]`

// namingCases are about what rules name.
func namingCases() map[string]roleCase {
	return map[string]roleCase{
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
			roles: map[string]string{"x": reading + `,"row_policy":[{"schema":"main","table":"ordes","predicate":"true"}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`row_policy.table role.acme/x: table "ordes" does not exist | ` +
				`A row policy names it in schema "main". Until it exists, the row policy means nothing. Did you mean "Orders"?`},
		},
		"a column that does not exist": {
			roles: map[string]string{"x": reading + `,"column_policy":[{"table":"orders","column":"prize","action":"deny"}]`},
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
	}
}

// heldCases are about who holds a role.
func heldCases() map[string]roleCase {
	return map[string]roleCase{
		"nobody holds it": {
			roles: map[string]string{"x": reading}, holds: map[string][]string{"ana": {"qod:reader"}},
			want: []string{` nobody holds role.acme/x | No user has it among its roles, nor is any in a group that has: what it says concerns nobody.`},
		},
		"held by a group without users": {
			roles: map[string]string{"x": reading}, groups: map[string][]string{"empty": {"x"}},
			want: []string{` nobody holds role.acme/x | No user has it among its roles, nor is any in a group that has: what it says concerns nobody.`},
		},
		"held by a group": {
			roles: map[string]string{"x": reading}, groups: map[string][]string{"staff": {"X"}}, holds: map[string][]string{"ana": nil},
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
	}
}

// contradictionCases are about policies that meet in one user.
func contradictionCases() map[string]roleCase {
	return map[string]roleCase{
		"a denial and a mask": {
			roles: map[string]string{
				"x": reading + `,"column_policy":[{"table":"orders","column":"price","action":"deny"}]`,
				"y": `"column_policy":[{"catalog":"sales","table":"Orders","column":"Price","action":"mask","expression":"0"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}, "ben": {"x", "y"}},
			want: []string{`column_policy role.acme/x and role.acme/y have contradicting policies on orders.price | ` +
				`User ana holds both, and the denial counts: write one of them.`},
		},
		"two masks": {
			roles: map[string]string{
				"x": reading + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"1"}]`,
				"y": `"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}},
			want: []string{`column_policy role.acme/x and role.acme/y have contradicting policies on orders.price | ` +
				`User ana holds both. Two masks that differ are a denial: write one of them.`},
		},
		"the same mask, or nobody with both": {
			roles: map[string]string{
				"x": reading + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
				"y": reading + `,"column_policy":[{"table":"orders","column":"price","action":"mask","expression":"0"}]`,
				"z": reading + `,"column_policy":[{"table":"orders","column":"price","action":"deny"}]`,
			},
			holds: map[string][]string{"ana": {"x", "y"}, "ben": {"z"}},
		},
		"within one role": {
			roles: map[string]string{"x": reading + `,"column_policy":[{"table":"orders","column":"price","action":"deny"},
				{"schema":"main","table":"orders","column":"price","action":"mask","expression":"0"}]`},
			holds: map[string][]string{"ana": {"x"}},
			want: []string{`column_policy role.acme/x has contradicting policies on orders.price | ` +
				`User ana holds it, and the denial counts: write one of them.`},
		},
		"what is sensitive is not named": {
			roles: map[string]string{"x": reading + `,"row_policy":[{"table":"ordes","predicate":"true"}],
				"column_policy":[{"table":"orders","column":"price","action":"deny"},{"schema":"main","table":"orders","column":"price","action":"mask","expression":"0"}]`},
			holds: map[string][]string{"ana": {"x"}}, sensitive: []string{"row_policy", "column_policy"},
			want: []string{
				`row_policy role.acme/x: a row policy names a table that does not exist | Its name is sensitive and not shown.`,
				`column_policy role.acme/x has contradicting policies on a column whose name is sensitive | User ana holds it, and the denial counts: write one of them.`,
			},
		},
	}
}

// judged is the world of a case: its roles, groups and users, and the lakes sales and hr.
func (c roleCase) judged(t *testing.T) plan.Roles {
	t.Helper()
	seen := map[string]schema.Contents{
		"sales": {"main": {"Orders": {"id", "Region", "price"}, "totals": nil}, "mart": {"daily": {"day"}}},
		"hr":    {"main": {"people": {"name", "salary"}}},
	}
	r := plan.Roles{Seen: map[string]schema.Contents{}}
	stand := func(id, kind, attrs string) {
		k, v := decoded(t, kind, attrs)
		r.After = append(r.After, plan.Standing{ID: id, Kind: k, Spec: v})
	}
	for _, db := range []string{"sales", "hr"} {
		stand(db, "tenant_db", fmt.Sprintf(`"tenant":"acme","name":%q,"kind":"ducklake"`, db))
		if !slices.Contains(c.unseen, db) {
			r.Seen[db] = seen[db]
		}
	}
	for _, role := range sorted(c.roles) {
		attrs := fmt.Sprintf(`"tenant":"acme","name":%q,%s`, role, c.roles[role])
		stand("r-"+role, "role", attrs)
		k, v := decoded(t, "role", attrs)
		r.Written = append(r.Written, schema.Object{Kind: k, Address: "role." + role, Value: v, Sensitive: c.sensitive})
	}
	for _, group := range sorted(c.groups) {
		stand("g-"+group, "group", fmt.Sprintf(`"tenant":"acme","name":%q,"roles":[%s]`, group, quotedList(c.groups[group])))
	}
	for _, user := range sorted(c.holds) {
		stand("u-"+user, "user", fmt.Sprintf(`"tenant":"acme","name":%q,"roles":[%s],"groups":[%s]`,
			user, quotedList(c.holds[user]), quotedList(sorted(c.groups))))
	}
	stand("other", "user", `"tenant":"zeta","name":"zoe","roles":["x"]`)
	return r
}

func TestRoleWarnings(t *testing.T) {
	for _, cases := range []map[string]roleCase{namingCases(), heldCases(), contradictionCases()} {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				var got []string
				for _, p := range tc.judged(t).Warnings() {
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

// Thousands of roles without holders are told in a few words.
func TestManyRolesWithoutHolders(t *testing.T) {
	role, _ := schema.Lookup("role")
	r := plan.Roles{}
	for i := range 40 {
		v := role.Empty().AsValueMap()
		v["tenant"], v["name"] = cty.StringVal("acme"), cty.StringVal(fmt.Sprintf("r%d", i))
		o := schema.Object{Kind: role, Value: cty.ObjectVal(v), Address: fmt.Sprintf("role.r%d", i)}
		r.Written = append(r.Written, o)
		r.After = append(r.After, plan.Standing{ID: o.Address, Kind: role, Spec: o.Value})
	}
	warnings := r.Warnings()
	if n := len(warnings); n != 6 || warnings[n-1].Summary != "nobody holds 35 more roles" {
		t.Errorf("%d warnings: %+v", n, warnings)
	}
}
