package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Grants, privileges, names and secrets.
func TestPublicCasesOfGrants(t *testing.T) {
	i := install(t, "")
	runCases(t, i, []publicCase{
		{"I-01 all converges", caseAll},
		{"I-04 a validation does not print the secret", caseValidation},
		{"I-05 plans carry no secret", casePlansCarryNoSecret},
		{"I-06 case folding", caseFolding},
		{"I-07 separators and quoting", caseQuoting},
		{"I-08 two applies with many databases", caseParallel},
		{"I-10 what is undone is reported", caseLoop},
		{"I-10b shrinking revokes", caseShrinking},
		{"I-10c adoption leaves alone what is not written", caseAdoption},
	})
}

func caseAll(t *testing.T, i *installation) {
	i.stack(t, `
role "rw" {
  tenant = tenant.i01
  permission {
    privileges = ["all"]
  }
}
`)
	i.settled(t)
	i.execute(t, "qod", `UPDATE qodstate_object SET spec = jsonb_set(spec, '{permission}', '[]') WHERE kind = 'role' AND key = 'i01/rw'`)
	i.expect(t, 2, []string{`"all"`, "Changed outside"}, "drift")
	i.settled(t)
}

const weak = "hunter3-S3cret"

func caseValidation(t *testing.T, i *installation) {
	i.stack(t, `
variable "pw" {
  type      = string
  sensitive = true
  validation {
    condition     = length(var.pw) > 23
    error_message = "The password is too short."
  }
}
user "u" {
  tenant   = tenant.i04
  password = var.pw
}
`)
	weakly := i.with("QOD_VAR_pw=" + weak)
	out := weakly.expect(t, 1, []string{"too short"}, "plan") + weakly.expect(t, 1, nil, "validate", "--json") +
		i.expect(t, 1, []string{"too short"}, "apply", "--auto-approve", "--var", "pw="+weak)
	i.edit(t, "The password is too short.", "Too short: ${var.pw}")
	out += weakly.expect(t, 1, []string{"pw"}, "plan")
	i.edit(t, "Too short: ${var.pw}", "The password is too short.")
	i.edit(t, "length(var.pw) > 23", "var.pw + 1 > 2")
	out += weakly.expect(t, 1, nil, "plan")
	silent(t, weak, map[string][]byte{"output": []byte(out), "the store": i.allRows(t, "qod")})
}

func casePlansCarryNoSecret(t *testing.T, i *installation) {
	i.stack(t, `
variable "pw" {
  type      = string
  sensitive = true
}
user "u" {
  tenant   = tenant.i05
  password = var.pw
  email    = "${var.pw}@corp.com"
}
output "pw" {
  value     = var.pw
  sensitive = true
}
`)
	i = i.with("QOD_VAR_pw=" + weak)
	i.must(t, "init")
	file := filepath.Join(i.dir, "p.qodplan")
	places := map[string][]byte{
		"plan":        []byte(i.must(t, "plan", "--out", file)),
		"plan --json": []byte(i.expect(t, 0, []string{`"sensitive"`}, "plan", "--json")),
		"show":        []byte(i.must(t, "show", file) + i.must(t, "show", "--json", file)),
		"apply":       []byte(i.must(t, "apply", "--json", file)),
		"state":       []byte(i.must(t, "show") + i.must(t, "show", "--json") + i.must(t, "state", "show", "user.u") + i.must(t, "output") + i.must(t, "history") + i.must(t, "export")),
		"the changed": []byte(i.with("QOD_VAR_pw="+weak+"2").must(t, "plan") + i.with("QOD_VAR_pw="+weak+"2").must(t, "plan", "--json")),
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	places["the plan's file"] = raw
	silent(t, weak, places)
	i.expect(t, 0, []string{weak}, "output", "pw") // asked for by name
}

func caseFolding(t *testing.T, i *installation) {
	user := func(label, name string) string {
		return fmt.Sprintf("user %q {\n  tenant = tenant.i06\n  name = %q\n}\n", label, name)
	}
	i.stack(t, user("ann", "Ann@Corp.com"))
	i.settled(t)
	if got := i.psql(t, "SELECT name FROM qodstate_user WHERE tenant = 'i06'"); got != "Ann@Corp.com" {
		t.Errorf("the name is stored as %q", got)
	}
	i.stack(t, user("ann", "ANN@corp.com"))
	i.clean(t)
	i.stack(t, user("ann", "Ann@Corp.com")+user("other", "aNN@CORP.com"))
	i.expect(t, 1, []string{"user.i06/ann@corp.com", "user.ann", "user.other"}, "plan")
	i.stack(t, user("ann", "Ann@Corp.com")+"role \"Analyst\" {\n  tenant = tenant.i06\n}\n")
	i.expect(t, 1, []string{`"analyst" would do`}, "validate")
}

// odd are legal names that break what forgets to quote.
var odd = []string{
	`ann.o'neil@corp.com`, `o"neil@corp.com`, `two words@corp.com`, `ünï@corp.com`, `50%@corp.com`, `$(id)@corp.com`, `a\b@corp.com`,
	`--x@corp.com`, `${y}@corp.com`, `%{if}@corp.com`, `a;b@corp.com`, `[0]@corp.com`, `a%2Fb@corp.com`, `x,y=z@corp.com`, `1@corp.com`,
}

const oddUsers = `
variable "names" {
  type = set(string)
}
user "odd" {
  for_each = var.names
  tenant   = tenant.i07
}
`

func caseQuoting(t *testing.T, i *installation) {
	i.stack(t, "role \""+strings.Repeat("a", 64)+"\" {\n  tenant = tenant.i07\n}\n")
	i.expect(t, 1, []string{"at most 62"}, "validate")
	i.stack(t, oddUsers)
	names, keys := quoted(odd), []string{}
	i.writeFile(t, "names.auto.qodvars.hcl", "names = ["+strings.Join(names, ", ")+"]\n")
	i.settled(t)
	for n, name := range odd {
		address := "user.odd[" + names[n] + "]"
		i.must(t, "state", "show", address)
		i.expect(t, 0, []string{"1 to add, 0 to change, 1 to destroy"}, "plan", "--replace", address)
		keys = append(keys, i.psql(t, "SELECT key FROM qodstate_object WHERE kind = 'user' AND spec->>'name' = '"+strings.ReplaceAll(name, "'", "''")+"'"))
	}
	i.exported(t)
	i.must(t, append([]string{"state", "rm", "--auto-approve"}, "user.odd")...)
	source := oddUsers
	for n, key := range keys {
		source += fmt.Sprintf("import {\n  to = user.odd[%s]\n  id = %s\n}\n", names[n], quoted([]string{key})[0])
	}
	i.stack(t, source)
	i.expect(t, 2, []string{fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy.", len(odd))}, "plan", "--detailed-exitcode")
	i.settled(t)
}

// quoted writes texts as HCL strings.
func quoted(texts []string) []string {
	var out []string
	r := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{")
	for _, s := range texts {
		out = append(out, `"`+r.Replace(s)+`"`)
	}
	return out
}

// exported shows that what is exported plans clean.
func (i *installation) exported(t testing.TB) {
	t.Helper()
	e := i.beside(t, i.name+"-exported")
	lock, err := os.ReadFile(filepath.Join(i.dir, ".qod.lock.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	e.writeFile(t, ".qod.lock.hcl", string(lock))
	e.must(t, "export", "--stack", i.name, "-o", filepath.Join(e.dir, "main.qod.hcl"))
	e.clean(t)
}

func caseParallel(t *testing.T, i *installation) {
	var both [2]*installation
	for n := range both {
		both[n] = i.beside(t, fmt.Sprintf("i08-%d", n))
		both[n].stack(t, fmt.Sprintf(`
tenant_db "d" {
  for_each      = toset(["a", "b", "c", "d", "e", "f", "g", "h"])
  tenant        = tenant.i08-%d
  name          = "d-${each.key}"
  kind          = "ducklake"
  allow_destroy = true
}
`, n))
	}
	atOnce := func(args ...string) {
		var wg sync.WaitGroup
		for _, one := range both {
			wg.Go(func() {
				if out, code := one.qod(t, append(args, "--auto-approve", "--parallelism", "16")...); code != 0 {
					t.Errorf("exit code %d\n%s", code, out)
				}
			})
		}
		wg.Wait()
	}
	atOnce("apply")
	if got := i.psql(t, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'qod\\_%'"); got != "16" {
		t.Errorf("there are %s databases", got)
	}
	both[0].clean(t)
	both[1].clean(t)
	atOnce("destroy")
	if got := i.psql(t, "SELECT (count(*) + (SELECT count(*) FROM pg_roles WHERE rolname LIKE 'qod\\_%'))::text FROM pg_database WHERE datname LIKE 'qod\\_%'"); got != "0" {
		t.Errorf("%s databases and roles are left", got)
	}
}

func caseLoop(t *testing.T, i *installation) {
	i.stack(t, "role \"r\" {\n  tenant = tenant.i10\n  description = \"one\"\n}\n")
	i.settled(t)
	i.execute(t, "qod", `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN NEW.spec := jsonb_set(NEW.spec, '{description}', '"theirs"'); RETURN NEW; END $$`)
	i.execute(t, "qod", `CREATE TRIGGER keep BEFORE UPDATE ON qodstate_object FOR EACH ROW WHEN (NEW.key = 'i10/r') EXECUTE FUNCTION keep()`)
	i.edit(t, `"one"`, `"two"`)
	i.expect(t, 1, []string{"not converging: role.i10/r: description", "reappears"}, "apply", "--auto-approve")
	i.execute(t, "qod", "DROP FUNCTION keep CASCADE")
	i.settled(t)
}

func caseShrinking(t *testing.T, i *installation) {
	permission := func(catalogs ...string) string {
		out := "role \"r\" {\n  tenant = tenant.i10b\n"
		for _, c := range catalogs {
			out += fmt.Sprintf("  permission {\n    catalog = %q\n    privileges = [\"all\"]\n  }\n", c)
		}
		return out + "}\nrole \"s\" {\n  tenant = tenant.i10b\n}\n"
	}
	user := func(roles string) string {
		return "user \"u\" {\n  tenant = tenant.i10b\n  roles = " + roles + "\n}\n"
	}
	held := func(want string) {
		t.Helper()
		if got := i.psql(t, `SELECT jsonb_array_length(r.spec->'permission') || ' ' || (u.spec->>'roles')
			FROM qodstate_object r, qodstate_object u WHERE r.key = 'i10b/r' AND u.key = 'i10b/u'`); got != want {
			t.Errorf("permissions and roles are %s, want %s", got, want)
		}
	}
	i.stack(t, permission("*", "sales")+user("[role.r, role.s]"))
	i.settled(t)
	held(`2 ["r", "s"]`)
	i.stack(t, permission("sales")+user("[role.s]"))
	i.expect(t, 2, []string{"- permission", `"r"`, "2 to change"}, "plan", "--detailed-exitcode")
	i.settled(t)
	held(`1 ["s"]`)
	i.stack(t, permission("sales", "*")+user("[role.s, role.r]"))
	i.settled(t)
	held(`2 ["r", "s"]`)
	i.execute(t, "qod", `UPDATE qodstate_object SET spec = jsonb_set(spec, '{permission}', spec->'permission' || '[{"catalog": "more", "privileges": ["all"]}]') WHERE key = 'i10b/r'`)
	i.expect(t, 2, []string{`"more"`}, "plan", "--detailed-exitcode")
	i.settled(t)
	held(`2 ["r", "s"]`)
}

func caseAdoption(t *testing.T, i *installation) {
	full := `
role "r" {
  tenant      = tenant.i10c
  description = "kept"
  permission {
    privileges = ["all"]
  }
}
user "u" {
  tenant = tenant.i10c
  email  = "u@corp.com"
  admin  = true
  roles  = [role.r]
}
`
	i.stack(t, full)
	i.settled(t)
	before := i.psql(t, "SELECT string_agg(spec::text, ' ' ORDER BY key) FROM qodstate_object WHERE key LIKE 'i10c/%'")
	i.must(t, "state", "rm", "--auto-approve", "role.r", "user.u")
	i.stack(t, `
role "r" {
  tenant = tenant.i10c
  permission {
    privileges = ["all"]
  }
}
user "u" {
  tenant = tenant.i10c
  roles  = [role.r]
}
import {
  to = role.r
  id = "i10c/r"
}
import {
  to = user.u
  id = "i10c/u"
}
`)
	i.expect(t, 2, []string{"Plan: 2 to import, 0 to add, 0 to change, 0 to destroy."}, "plan", "--detailed-exitcode")
	i.edit(t, "  roles  = [role.r]\n", "") // sets are the configuration's: the plan says what is revoked
	i.expect(t, 2, []string{"Plan: 2 to import, 0 to add, 1 to change", `- roles = ["r"]`}, "plan", "--detailed-exitcode")
	i.edit(t, "  tenant = tenant.i10c\n}\nimport", "  tenant = tenant.i10c\n  roles  = [role.r]\n}\nimport")
	i.settled(t)
	if after := i.psql(t, "SELECT string_agg(spec::text, ' ' ORDER BY key) FROM qodstate_object WHERE key LIKE 'i10c/%'"); after != before {
		t.Errorf("an import changed\n%s\nto\n%s", before, after)
	}
	i.stack(t, "user \"root\" {\n  name = \"admin\"\n  system = true\n}\nimport {\n  to = user.root\n  id = \"admin\"\n}\n")
	i.expect(t, 1, []string{"belongs to qod itself"}, "plan")
}
