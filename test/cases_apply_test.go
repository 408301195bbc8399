package test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What plans and applies do to objects, and what is said about it.
func TestPublicCasesOfPlans(t *testing.T) {
	i := install(t, "")
	runCases(t, i, []publicCase{
		{"I-12 a saved plan is applied once", caseOnce},
		{"I-15 a target destroys nobody's dependency", caseTarget},
		{"I-16 protection outlives its block", caseProtected},
		{"I-17 a rename is proposed", caseRename},
		{"I-19 keys are known", caseKeys},
		{"I-21 one apply frees and destroys", caseOrder},
		{"I-23 protections come before the first change", caseProtectionFirst},
		{"I-24 what is planned is what is stored", casePlanned},
		{"I-25 imports only read", caseImport},
		{"I-25 what is found plans clean", caseFound},
		{"I-26 a typo in a file of variables", caseTypo},
	})
}

func caseOnce(t *testing.T, i *installation) {
	i.stack(t, "role \"r\" {\n  tenant = tenant.i12\n}\n")
	i.must(t, "init")
	file := filepath.Join(i.dir, "p.qodplan")
	i.must(t, "plan", "--out", file) // the stack has nothing yet
	i.must(t, "apply", file)
	before := i.versions(t)
	if out := i.expect(t, 1, []string{"applied already"}, "apply", file); strings.Contains(out, "will be created") {
		t.Errorf("a plan that was applied already is told at length:\n%s", out)
	}
	if after := i.versions(t); after != before {
		t.Error("a plan that was applied already wrote rows")
	}
	i.must(t, "destroy", "--auto-approve")
	i.expect(t, 1, []string{"applied already"}, "apply", file)
	i.must(t, "plan", "--out", file)
	i.must(t, "apply", "--auto-approve")
	if out := i.expect(t, 1, []string{"nothing was changed", "tenant.i12"}, "apply", file); strings.Contains(out, "will be created") {
		t.Errorf("a plan that cannot be applied any more is told at length:\n%s", out)
	}
	nowhere := i.with("QOD_STATE_DIR="+filepath.Join(i.root, "nowhere"), "QOD_RUN_DIR="+filepath.Join(i.root, "nowhere-run"))
	nowhere.expect(t, 1, []string{"run qod init first"}, "plan", "--out", file)
}

func caseTarget(t *testing.T, i *installation) {
	i.stack(t, `
variable "v" {
  type = string
}
role "r" {
  for_each = toset([var.v])
  tenant   = tenant.i15
}
user "u" {
  for_each = toset([var.v])
  tenant   = tenant.i15
  roles    = [role.r[each.key]]
}
`)
	i.settled(t, "--var", "v=a")
	out := i.expect(t, 2, []string{"2 to add, 0 to change, 0 to destroy", "The plan is partial"},
		"plan", "--detailed-exitcode", "--var", "v=b", "--target", `user.u["b"]`)
	i.lacks(t, out, "will be destroyed")
	i.must(t, "apply", "--auto-approve", "--var", "v=b", "--target", `user.u["b"]`)
	i.expect(t, 2, []string{`user.i15/a will be destroyed`, `role.i15/a will be destroyed`, "0 to add, 0 to change, 2 to destroy"},
		"plan", "--detailed-exitcode", "--var", "v=b", "--target", `role.r["a"]`)
	i.expect(t, 1, []string{`Did you mean "role.r"?`}, "plan", "--var", "v=b", "--target", "role.s")
	i.settled(t, "--var", "v=b")
}

func caseProtected(t *testing.T, i *installation) {
	const other = "role \"other\" {\n  tenant = tenant.i16\n}\n"
	const block = `
role "kept" {
  tenant = tenant.i16
  lifecycle {
    prevent_destroy = true
  }
}
`
	i.stack(t, block)
	i.settled(t)
	i.stack(t, other)
	i.expect(t, 1, []string{"role.i16/kept will be destroyed", "role.i16/other will be created", "is protected and may not be destroyed"}, "plan")
	before := i.versions(t)
	i.expect(t, 1, []string{"is protected and may not be destroyed"}, "apply", "--auto-approve")
	i.expect(t, 1, []string{"is protected and may not be destroyed"}, "destroy", "--auto-approve")
	i.stack(t, strings.Replace(block, `"kept" {`, `"kept" {`+"\n  name = \"renamed\"", 1))
	i.expect(t, 1, []string{"role.i16/renamed must be replaced", "is protected and may not be replaced"}, "plan", "--replace", "role.kept")
	if after := i.versions(t); after != before {
		t.Error("a refused plan wrote rows")
	}
	i.stack(t, other+"removed {\n  from = role.kept\n  lifecycle {\n    destroy = true\n  }\n}\n")
	i.expect(t, 0, []string{"1 added, 0 changed, 1 destroyed"}, "apply", "--auto-approve")
}

func caseRename(t *testing.T, i *installation) {
	database := func(label string) string {
		return fmt.Sprintf("tenant_db %q {\n  tenant = tenant.i17\n  kind = \"ducklake\"\n  allow_destroy = true\n}\n", label)
	}
	i.stack(t, strings.Replace(database("sales"), "allow_destroy = true", "", 1))
	i.settled(t)
	id := i.psql(t, "SELECT id::text FROM qodstate_object WHERE kind = 'tenant_db' AND key = 'i17/sales'")
	i.stack(t, strings.Replace(database("revenue"), "allow_destroy = true", "", 1))
	moved := "moved {\n  from = tenant_db.sales\n  to   = tenant_db.revenue\n}\n"
	out := i.expect(t, 1, []string{"allow_destroy", "moved {", "from = tenant_db.sales", "to   = tenant_db.revenue"}, "apply", "--auto-approve")
	i.lacks(t, out, "Committed")
	i.expect(t, 1, []string{`from = tenant_db.sales`}, "plan", "--json") // on every path
	i.stack(t, database("revenue")+moved)
	i.expect(t, 2, []string{"tenant_db.i17/revenue will be renamed from tenant_db.i17/sales", "0 to add, 1 to change, 0 to destroy"}, "plan", "--detailed-exitcode")
	i.settled(t)
	if got := i.psql(t, "SELECT id::text FROM qodstate_object WHERE kind = 'tenant_db' AND key = 'i17/revenue'"); got != id {
		t.Error("a rename made another database")
	}
	i.stack(t, database("revenue")+database("costs")+"moved {\n  from = tenant_db.revenu\n  to   = tenant_db.costs\n}\n")
	i.expect(t, 2, []string{"The move from tenant_db.revenu to tenant_db.costs matched nothing", `Did you mean "tenant_db.revenue"?`}, "plan", "--detailed-exitcode")
	i.stack(t, database("turnover")) // may be destroyed now, and still it is said
	i.expect(t, 2, []string{"looks like tenant_db.i17/revenue under a new name", "from = tenant_db.revenue"}, "plan", "--detailed-exitcode")
	i.must(t, "destroy", "--auto-approve")
}

func caseKeys(t *testing.T, i *installation) {
	i.stack(t, `
role "r" {
  tenant   = tenant.i19
  for_each = toset(["${tenant.i19.name}-one", "two"])
}
user "u" {
  tenant   = tenant.i19
  for_each = { for key, r in role.r : key => r.name }
  roles    = [each.value]
}
`)
	i.expect(t, 2, []string{"5 to add"}, "plan", "--detailed-exitcode")
	i.settled(t)
	i.stack(t, "variable \"keys\" {\n  type = set(string)\n  sensitive = true\n}\nrole \"r\" {\n  for_each = var.keys\n  tenant = tenant.i19\n}\n")
	out := i.expect(t, 1, []string{"for_each", "sensitive", "var.keys"}, "plan", "--var", `keys=["`+weak+`"]`)
	i.lacks(t, out, weak)
}

func caseOrder(t *testing.T, i *installation) {
	both := `
role "etl" {
  tenant = tenant.i21
}
role "owner" {
  tenant = tenant.i21
}
user "u" {
  tenant = tenant.i21
  roles  = [role.etl]
}
tenant_db "d" {
  tenant        = tenant.i21
  kind          = "ducklake"
  allow_destroy = true
}
`
	i.stack(t, both)
	i.settled(t)
	i.cut(t, `role "etl"`)
	i.edit(t, "role.etl", "role.owner")
	i.expect(t, 2, []string{"0 to add, 1 to change, 1 to destroy"}, "plan", "--detailed-exitcode")
	i.settled(t)

	other := i.beside(t, "i21-other")
	other.stack(t, "user \"x\" {\n  tenant = \"i21\"\n  roles = [\"owner\"]\n}\n")
	other.settled(t)
	i.expect(t, 1, []string{"role.i21/owner is still in use", `user.i21/x (stack "i21-other")`, "Remove those first"}, "destroy", "--auto-approve")
	other.must(t, "destroy", "--auto-approve")

	// The lake's role has got rights, and things, in databases that are not the lake's.
	role := i.database(t, "i21/d")
	i.execute(t, "qod", `CREATE SCHEMA theirs; CREATE TABLE theirs.t (x int); GRANT SELECT ON theirs.t TO "`+role+`"`)
	i.execute(t, "qod", `ALTER DEFAULT PRIVILEGES IN SCHEMA theirs GRANT SELECT ON TABLES TO "`+role+`"`)
	i.execute(t, "postgres", `CREATE TABLE theirs (x int); ALTER TABLE theirs OWNER TO "`+role+`"; GRANT CREATE ON DATABASE postgres TO "`+role+`"`)
	i.expect(t, 0, []string{"Destroy complete"}, "destroy", "--auto-approve")
	i.clean(t, "--destroy")
	i.execute(t, "qod", "DROP SCHEMA theirs CASCADE")
	i.execute(t, "postgres", "DROP TABLE theirs") // it is still there
}

func caseProtectionFirst(t *testing.T, i *installation) {
	i.stack(t, `
role "a" {
  tenant = tenant.i23
}
user "u" {
  tenant = tenant.i23
  roles  = [role.kept]
}
role "kept" {
  tenant = tenant.i23
  lifecycle {
    prevent_destroy = true
  }
}
tenant_db "d" {
  tenant = tenant.i23
  kind   = "ducklake"
}
pool "p" {
  tenant_db = tenant_db.d
  nodes {
    dual = 0
  }
}
`)
	i.settled(t)
	before := i.endState(t)
	file := filepath.Join(i.dir, "p.qodplan")
	i.expect(t, 1, []string{"role.i23/kept is protected", "tenant_db.i23/d", "allow_destroy"}, "destroy", "--auto-approve")
	i.expect(t, 1, []string{"role.i23/kept is protected", "tenant_db.i23/d"}, "plan", "--destroy", "--out", file)
	if _, err := os.Stat(file); err == nil {
		t.Error("a plan that may not be applied was saved")
	}
	i.stack(t, "")
	i.expect(t, 1, []string{"role.i23/kept is protected", "allow_destroy"}, "apply", "--auto-approve")
	if diff := cmp.Diff(before, i.endState(t)); diff != "" {
		t.Errorf("a refused plan changed something:\n%s", diff)
	}
}

// specs are the stored objects of the case's tenant.
func (i *installation) specs(t testing.TB) string {
	t.Helper()
	return i.psql(t, "SELECT coalesce(string_agg(kind || key || spec::text, ' ' ORDER BY kind, key), '') FROM qodstate_object WHERE key ~ '^"+i.name+"(/|$)'")
}

func casePlanned(t *testing.T, i *installation) {
	i.stack(t, `
variable "pw" {
  type    = string
  default = "correct horse"
}
role "r" {
  tenant      = tenant.i24
  description = "of ${tenant.i24.name}"
}
user "u" {
  tenant   = tenant.i24
  password = var.pw
  roles    = [role.r]
}
output "all" {
  value = { user = user.u.name, role = role.r.description, version = user.u.password_version }
}
`)
	i.must(t, "init")
	file := filepath.Join(i.dir, "p.qodplan")
	i.must(t, "plan", "--out", file)
	type document struct {
		Changes []struct {
			Address string `json:"address"`
			Change  struct {
				After map[string]any `json:"after"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	var d document
	if err := json.Unmarshal([]byte(i.must(t, "show", "--json", file)), &d); err != nil {
		t.Fatal(err)
	}
	i.must(t, "apply", file)
	if len(d.Changes) != 3 {
		t.Errorf("there are %d changes", len(d.Changes))
	}
	for _, c := range d.Changes {
		raw := i.psql(t, fmt.Sprintf("SELECT spec::text FROM qodstate_object WHERE stack = 'i24' AND address = '%s'", c.Address))
		var stored map[string]any
		if err := json.Unmarshal([]byte(raw), &stored); err != nil {
			t.Fatal(err)
		}
		delete(stored, "password") // its fingerprint
		for name, v := range stored {
			if diff := cmp.Diff(c.Change.After[name], v); diff != "" {
				t.Errorf("%s of %s (-planned +stored):\n%s", name, c.Address, diff)
			}
		}
	}
	i.clean(t)
}

func caseImport(t *testing.T, i *installation) {
	i.stack(t, `
role "r" {
  tenant      = tenant.i25
  description = "kept"
}
role "q" {
  tenant = tenant.i25
}
`)
	i.settled(t)
	i.must(t, "state", "rm", "--auto-approve", "role.r")
	i.edit(t, "  description = \"kept\"\n", "")
	i.edit(t, `role "q"`, `import {
  to = role.r
  id = "i25/r"
}
user "each" {
  for_each = toset(["a", "b"])
  tenant   = tenant.i25
}
role "q"`)
	before := i.specs(t)
	i.expect(t, 2, []string{"1 to import, 0 to add, 0 to change"}, "plan", "--detailed-exitcode", "--target", "role.r")
	i.must(t, "apply", "--auto-approve", "--target", "role.r")
	if after := i.specs(t); after != before {
		t.Errorf("an import changed\n%s\nto\n%s", before, after)
	}
	i.settled(t)
}

func caseFound(t *testing.T, i *installation) {
	const name = "i25"
	i.name = name + "-all"
	i.write(t, `
qod {
  stack = "i25-all"
}
tenant "found" {
  display_name = "Found ${"$"}{tenant}"
}
tenant_db "d" {
  tenant         = tenant.found
  kind           = "ducklake"
  default_schema = "raw"
  allow_destroy  = true
}
pool "p" {
  tenant_db         = tenant_db.d
  memory            = "2GiB"
  statement_timeout = "5m"
  nodes {
    dual = 0
  }
}
role "r" {
  tenant = tenant.found
  permission {
    catalog    = "d"
    privileges = ["all"]
  }
}
group "g" {
  tenant = tenant.found
  roles  = [role.r]
}
user "u" {
  tenant   = tenant.found
  name     = "ann.o'neil@corp.com"
  groups   = [group.g]
  roles    = []
  password = "correct horse"
}
user "sys" {
  system = true
}
pool_grant "g" {
  pool  = "*"
  group = group.g
}
`)
	i.settled(t)
	i.must(t, "state", "rm", "--auto-approve", "tenant.found", "tenant_db.d", "pool.p", "role.r", "group.g", "user.u", "user.sys", "pool_grant.g")
	before := i.endState(t)
	i.write(t, "qod {\n  stack = \"i25-all\"\n}\n")
	i.must(t, "export", "--unowned", "-o", filepath.Join(i.dir, "found.qod.hcl"))
	out := i.expect(t, 2, []string{"8 to import, 0 to add, 0 to change, 0 to destroy"}, "plan", "--detailed-exitcode")
	i.settled(t)
	if diff := cmp.Diff(before, i.endState(t)); diff != "" {
		t.Errorf("an import changed something:\n%s\n%s", diff, out)
	}
	i.must(t, "destroy", "--auto-approve")
}

func caseTypo(t *testing.T, i *installation) {
	i.stack(t, "variable \"description\" {\n  default = \"none\"\n}\nrole \"r\" {\n  tenant = tenant.i26\n  description = var.description\n}\n")
	i.writeFile(t, "given.hcl", "descripton = \"one\"\n")
	i.expect(t, 1, []string{"descripton", `Did you mean "description"?`, "given.hcl"}, "plan", "--var-file", filepath.Join(i.dir, "given.hcl"))
	i.expect(t, 1, []string{"descripton", `Did you mean "description"?`}, "apply", "--auto-approve", "--var", "descripton=one")
	i.writeFile(t, "more.auto.qodvars.hcl", "descripton = \"one\"\n")
	i.expect(t, 1, []string{"descripton", `Did you mean "description"?`, "more.auto.qodvars.hcl"}, "validate")
}
