package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// beforeModules is what examples/modules was before there was a module.
const beforeModules = `qod {
  stack = "modules"
}

tenant "acme" {
  display_name = "Acme"
}

tenant_db "lake" {
  tenant = tenant.acme
  kind   = "ducklake"
}

pool "bi" {
  tenant_db = tenant_db.lake
  memory    = "512MiB"
  threads   = 1

  nodes {
    dual = 0
  }
}
`

// What was written without a module moves into one: objects stay what they are, and nothing is made twice.
func TestModulesExample(t *testing.T) {
	i := install(t, "modules")
	main := filepath.Join(i.dir, "main.qod.hcl")
	example, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	aside := map[string]string{}
	for _, name := range []string{"moved.qod.hcl", "tenants.auto.qodvars.hcl"} {
		from := filepath.Join(i.dir, name)
		aside[from] = filepath.Join(i.root, name)
		if err := os.Rename(from, aside[from]); err != nil {
			t.Fatal(err)
		}
	}
	i.writeFile(t, "main.qod.hcl", beforeModules)
	i.must(t, "apply", "--auto-approve")
	ids := i.must(t, "state", "list", "--id")

	i.writeFile(t, "main.qod.hcl", string(example))
	for from, to := range aside {
		if err := os.Rename(to, from); err != nil {
			t.Fatal(err)
		}
	}
	out := i.expect(t, 0, []string{"pool.acme/bi has moved from pool.bi to", "Apply complete: 14 added,", "0 destroyed.",
		`logins = { acme = ["acme/bi"], globex = ["globex/bi", "globex/etl"] }`}, "apply", "--auto-approve")
	if strings.Contains(out, "Warning") {
		t.Errorf("the apply warns:\n%s", out)
	}
	after := i.must(t, "state", "list", "--id")
	for line := range strings.Lines(ids) {
		if id := strings.Fields(line)[1]; !strings.Contains(after, id) {
			t.Errorf("%s has become another object", strings.Fields(line)[0])
		}
	}
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	i.expect(t, 2, []string{"Warning: Check failed", "All pools together have 20 threads", "Plan: 0 to add, 1 to change, 0 to destroy."}, "plan",
		"--detailed-exitcode", "--var", `tenants={acme={title="Acme", staff=["ana", "bob"]}, globex={staff=["ann@globex.example"], `+
			`pools={bi={nodes=1}, etl={threads=18}}}}`)
	i.expect(t, 0, []string{"Destroy complete: 0 added, 0 changed, 17 destroyed."}, "destroy", "--auto-approve")
}

// A configuration in JSON goes the whole way, and comes back as JSON.
func TestJSONExample(t *testing.T) {
	i := install(t, "json")
	if _, err := os.Stat(filepath.Join(i.dir, "main.qod.hcl")); err == nil {
		t.Error("init writes a configuration beside the one in JSON")
	}
	i.expect(t, 0, nil, "fmt", "--check")
	i.expect(t, 0, []string{"is valid: 8 objects."}, "validate")
	i.expect(t, 2, []string{"Plan: 8 to add, 0 to change, 0 to destroy."}, "plan", "--detailed-exitcode")
	i.expect(t, 0, []string{`pools = ["bi", "etl"]`}, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	if err := os.Remove(filepath.Join(i.dir, "main.qod.json")); err != nil {
		t.Fatal(err)
	}
	i.must(t, "export", "--stack", "json", "--json", "-o", filepath.Join(i.dir, "main.qod.json"))
	i.expect(t, 0, nil, "fmt", "--check")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	i.must(t, "destroy", "--auto-approve")
}

// Fine roles are applied, warned of while their tables are missing, explained, and held against expectations.
func TestRBACExample(t *testing.T) {
	i := install(t, "rbac")
	i.expect(t, 0, nil, "fmt", "--check")
	i.expect(t, 0, []string{"Apply complete: 16 added,"}, "apply", "--auto-approve")
	out := i.expect(t, 0, []string{
		"No changes.", `Warning: role.shop/analyst: table "orders" does not exist`, `A permission names it in schema "main".`,
	}, "plan", "--detailed-exitcode")
	if n := strings.Count(out, "Warning: role.shop/analyst"); n != 1 {
		t.Errorf("a table that is missing is missed %d times:\n%s", n, out)
	}
	i.expect(t, 0, []string{`"summary": "role.shop/analyst: table \"orders\" does not exist"`, `"path"`, `main.qod.hcl"`}, "plan", "--json")
	i.expect(t, 0, []string{
		"select  yes, by role.shop/analyst (role.analyst, ", `through group.shop/eu (group.region["eu"], `, "main.qod.hcl:21)",
		"insert  no, none of its roles allows it", "without column card", "rows where list_contains(current_groups, region)",
	}, "access", "ana", "--on", "orders")
	i.expect(t, 0, []string{"qod:reader", `"privilege": "select"`}, "access", "user.shop/auditor", "--on", "main.orders", "--json")
	i.expect(t, 0, []string{"7 statements as expected, 0 not."}, "access", "test", filepath.Join(i.dir, "expectations.hcl"))
	i.writeFile(t, "wrong.hcl", "expect \"auditor\" {\n  statement = \"DROP TABLE sales.main.orders\"\n  allow = true\n}\n")
	i.expect(t, 1, []string{"wrong.hcl:1: auditor should be allowed, and is refused: "}, "access", "test", filepath.Join(i.dir, "wrong.hcl"))
	i.expect(t, 0, []string{"Destroy complete"}, "destroy", "--auto-approve")
}
