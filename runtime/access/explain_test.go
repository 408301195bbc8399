package access

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/runtime/wire"
)

// shop is acme with finer roles: kay reads the orders of Europe through a group, and lee nothing.
func shop(t *testing.T) *Directory {
	w := acme(t)
	w.add("tenant_db", "d-hr", `{"tenant":"acme","name":"hr","kind":"ducklake","default_schema":"people"}`)
	w.add("role", "r-analyst", `{"tenant":"acme","name":"analyst",
		"permission":[{"catalog":"sales","schema":"main","table":"Orders","privileges":["select"]},{"catalog":"hr","privileges":["all"]}],
		"row_policy":[{"table":"orders","predicate":"region =\n  'EU'"},{"table":"orders","predicate":"owner = current_user"}],
		"column_policy":[{"table":"orders","column":"Card","action":"deny"},{"table":"orders","column":"price","action":"mask","expression":"0"}]}`)
	w.add("group", "g-shop", `{"tenant":"acme","name":"shop","roles":["analyst"]}`)
	w.add("user", "u-kay", `{"tenant":"acme","name":"kay","roles":["qod:reader"],"groups":["shop"]}`)
	w.add("user", "u-lee", `{"tenant":"acme","name":"lee"}`)
	w.add("pool_grant", "9", `{"tenant":"acme","pool":"bi","role":"analyst"}`)
	w.add("pool_grant", "10", `{"tenant":"acme","pool":"*","group":"shop"}`)
	return w.directory()
}

type explainCase struct {
	q    Question
	want string
}

func explained() map[string]explainCase {
	return map[string]explainCase{
		"a table": {Question{User: "Kay", On: `Main."orders"`, Database: "sales"}, `
user.acme/kay

It holds
  qod:reader
  role.acme/analyst (role.analyst, main.qod.hcl:7), through group.acme/shop

It may connect to
  pool.acme/bi, of database sales, by pool_grant.acme/*/group:shop and pool_grant.acme/bi/role:analyst
  pool.acme/dark, of database off, by pool_grant.acme/*/group:shop; but the database of pool acme/dark is disabled
  pool.acme/etl, of database sales, by pool_grant.acme/*/group:shop
  pool.acme/off, of database sales, by pool_grant.acme/*/group:shop; but pool acme/off is disabled
  pool.acme/sleep, of database sales, by pool_grant.acme/*/group:shop; but pool acme/sleep is suspended

On sales.main.orders
  select  yes, by role.acme/analyst (role.analyst, main.qod.hcl:7) and qod:reader
  insert  no, none of its roles allows it
  update  no, none of its roles allows it
  delete  no, none of its roles allows it
  create  no, none of its roles allows it
  alter   no, none of its roles allows it
  drop    no, none of its roles allows it

Policies restrict it, whatever other roles allow
  table orders: rows where owner = current_user, by role.acme/analyst (role.analyst, main.qod.hcl:7)
  table orders: rows where region = 'EU', by role.acme/analyst (role.analyst, main.qod.hcl:7)
  table orders: without column card, by role.acme/analyst (role.analyst, main.qod.hcl:7)
  table orders: column price is 0, by role.acme/analyst (role.analyst, main.qod.hcl:7)
  Of several row policies on a table, one has to hold for a row.
`},
		"a database": {Question{User: "kay", Tenant: "acme", Database: "hr"}, `
Its roles allow
  all on every table in database hr, by role.acme/analyst (role.analyst, main.qod.hcl:7)
  select on every table, by qod:reader
`},
		"a table by its full name": {Question{User: "kay", On: "hr.people.staff"}, `
On hr.people.staff
  select  yes, by role.acme/analyst (role.analyst, main.qod.hcl:7) and qod:reader
  insert  yes, by role.acme/analyst (role.analyst, main.qod.hcl:7)
`},
		"the schema that sessions start in": {Question{User: "kay", Database: "hr", On: "staff"}, "\nOn hr.people.staff\n"},
	}
}

func TestExplain(t *testing.T) {
	d := shop(t)
	tests := explained()
	maps.Copy(tests, map[string]explainCase{
		"nothing": {Question{User: "lee"}, `
user.acme/lee

It holds no role, so it may do nothing on any database.

It may connect to no pool: no pool_grant names it, a group it is in or a role it holds.
`},
		"a disabled user":                {Question{User: "eve"}, "\n  Everything is refused: the user is disabled.\n"},
		"a disabled tenant":              {Question{User: "kim"}, "\n  Everything is refused: tenant shut is disabled.\n"},
		"an administrator":               {Question{User: "boss", On: "x", Database: "sales"}, "\n  drop    yes, as an administrator\n"},
		"an administrator of all":        {Question{User: "root"}, "\nuser.root\n  It administers the whole system: it may do all there, and no policy restricts it.\n"},
		"a user of a system":             {Question{User: "ana", Tenant: "zeta"}, "\nuser.zeta/ana\n"},
		"no such user":                   {Question{User: "kayy"}, `there is no user "kayy". Did you mean "kay"?`},
		"two users":                      {Question{User: "ana"}, "there are user.acme/ana, user.zeta/ana: say of which tenant"},
		"no such database":               {Question{User: "kay", Database: "sale"}, `tenant acme has no database "sale". Did you mean "sales"?`},
		"a table of several databases":   {Question{User: "kay", On: "orders"}, "tenant acme has 3 databases: choose one of hr, off, sales"},
		"a table of another database":    {Question{User: "kay", On: "hr.a.b", Database: "sales"}, "hr.a.b is not in database sales"},
		"no table":                       {Question{User: "kay", On: "a..b"}, `"a..b" names no table: want TABLE, SCHEMA.TABLE or DATABASE.SCHEMA.TABLE`},
		"what is more than a table":      {Question{User: "kay", On: "a.b.c.d"}, `"a.b.c.d" names no table`},
		"what is not even one in quotes": {Question{User: "kay", On: `"a`}, `"\"a" names no table`},
	})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := &strings.Builder{}
			got.WriteString("\n")
			e, err := d.Explain(tc.q)
			if err == nil {
				err = e.Write(got, func(address string) string {
					return map[string]string{"role.acme/analyst": "role.analyst, main.qod.hcl:7"}[address]
				})
			}
			if err != nil {
				got.WriteString(err.Error())
			}
			if !strings.Contains(got.String(), tc.want) {
				t.Errorf("want it to say %s\n%s", tc.want, cmp.Diff(tc.want, got.String()))
			}
		})
	}
}

// What a configuration computes from sensitive values is judged, and not shown.
func TestExplainConcealsWhatIsSensitive(t *testing.T) {
	w := acme(t)
	w.add("role", "r-x", `{"tenant":"acme","name":"x","permission":[{"table":"secret1","privileges":["select"]}],
		"row_policy":[{"table":"secret1","predicate":"secret2"}],"column_policy":[{"table":"secret1","column":"secret3","action":"mask","expression":"secret4"}]}`)
	w.snap.Objects[len(w.snap.Objects)-1].Sensitive = []string{"permission", "row_policy", "column_policy"}
	w.add("user", "u-kay", `{"tenant":"acme","name":"kay","roles":["x"]}`)
	d := w.directory()
	for _, q := range []Question{{User: "kay"}, {User: "kay", Database: "sales", On: "secret1"}} {
		e, err := d.Explain(q)
		if err != nil {
			t.Fatal(err)
		}
		out := &strings.Builder{}
		if err := e.Write(out, func(string) string { return "" }); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.ReplaceAll(out.String()+string(raw), "sales.main.secret1", "") // which was asked
		if strings.Contains(said, "secret") || !strings.Contains(said, concealed) {
			t.Errorf("it says:\n%s", said)
		}
		if q.On != "" && !strings.Contains(said, "select  yes, by role.acme/x") {
			t.Errorf("the permission does not count:\n%s", said)
		}
	}
}

const expected = `
expect "kay" {
  database  = "sales"
  statement = "SELECT 1"
  allow     = true
}
expect "kay" {
  database  = "sales"
  statement = "DROP"
  allow     = true
}
expect "kay" {
  database  = "sales"
  statement = "SELECT 2"
  allow     = false
}
expect "kay" {
  tenant    = "acme"
  database  = "sales"
  statement = "DROP"
  allow     = false
  reason    = "not allowed"
}
expect "kay" {
  database  = "sales"
  statement = "DROP"
  allow     = false
  reason    = "does not exist"
}
expect "kay" {
  database  = "sales"
  statement = "SELCT"
  allow     = false
}
expect "kay" {
  database  = "hr"
  statement = "SELECT 3"
  allow     = false
  reason    = "no pool of the database is granted"
}
expect "nobody" {
  statement = "SELECT 4"
  allow     = false
}
`

func TestExpectations(t *testing.T) {
	d := shop(t)
	list, err := Expectations([]byte(expected), "a.hcl")
	if err != nil {
		t.Fatal(err)
	}
	judge := func(_ context.Context, p wire.Permissions, database, in, statement string) (string, error) {
		if len(p.Grants) == 0 || database == "hr" && in != "people" || database == "sales" && in != "main" {
			t.Errorf("%s is judged with %+v in %s.%s", statement, p, database, in)
		}
		switch statement {
		case "DROP":
			return "it is not allowed", nil
		case "SELCT":
			return "", errors.New("syntax error")
		}
		return "", nil
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Check(t.Context(), d, judge))
	}
	want := []string{
		"",
		"a.hcl:7: kay should be allowed, and is refused: it is not allowed",
		"a.hcl:12: kay should be refused, and is allowed",
		"",
		`a.hcl:24: kay should be refused with "does not exist", and is refused with: it is not allowed`,
		"a.hcl:30: the statement cannot be judged: syntax error",
		"",
		`a.hcl:41: there is no user "nobody".`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checks (-want +got):\n%s", diff)
	}
}

func TestBadExpectations(t *testing.T) {
	for src, want := range map[string]string{
		"":                                  `has no block expect "USER"`,
		"expect {":                          "a.hcl:1",
		"expect \"a\" {\n  allow = true\n}": `The argument "statement" is required`,
		"expect \"a\" {\n  statement = \"x\"\n  allow = true\n  reason = \"y\"\n}": "a.hcl:1: a statement that is allowed has no reason",
		"expect \"a\" {\n  statement = \"x\"\n  allow = true\n  alow = 1\n}":       `"alow" is not expected here`,
	} {
		if _, err := Expectations([]byte(src), "a.hcl"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
