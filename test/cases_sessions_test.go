package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const sessionsConfig = `
qod {
  stack = "sessions"
}
variable "password" {
  type      = string
  sensitive = true
}
variable "version" {
  type    = number
  default = 1
}
tenant "acme" {}
tenant_db "d" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}
pool "bi" {
  tenant_db = tenant_db.d
  memory    = "512MiB"
}
role "owner" {
  tenant = tenant.acme
  permission {
    privileges = ["all"]
  }
}
user "loader" {
  tenant           = tenant.acme
  roles            = [role.owner]
  password         = var.password
  password_version = var.version
}
user "odd" {
  for_each = toset(["ann.o'neil@corp.com", "o\"neil two@corp.com"])
  tenant   = tenant.acme
  roles    = [role.owner]
  password = var.password
}
pool_grant "owner" {
  pool = pool.bi
  role = role.owner
}
`

// What users of running pools notice.
func TestPublicCasesOfSessions(t *testing.T) {
	i := install(t, "").with("QOD_VAR_password="+secrets["loader_password"], "QOD_DRAIN_TIMEOUT_SEC=1")
	i.write(t, sessionsConfig)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	for _, c := range []publicCase{
		{"I-07 odd names log in", caseOddLogins},
		{"I-10b a revoked role ends at once", func(t *testing.T, i *installation) { caseRevoked(t, i, s) }},
		{"I-35 a password is read once", casePassword},
		{"I-20 live sessions are shown and drained", func(t *testing.T, i *installation) { caseDrain(t, i, s) }},
		{"I-34 a killed serve leaves no stale state", func(t *testing.T, i *installation) { caseKilledServe(t, i, s) }},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, i) })
	}
}

// login1 runs SELECT 1 as a user, and returns what is said and the exit code.
func (i *installation) login1(t testing.TB, user, password string) (string, int) {
	t.Helper()
	file := filepath.Join(i.root, "given-password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	return i.qod(t, "sql", "--user", user+"@acme/bi", "--password-file", file, "--format", "csv", "SELECT 40 + 2")
}

func (i *installation) comesIn(t testing.TB, user, password string) {
	t.Helper()
	if out, code := i.login1(t, user, password); code != 0 || !strings.Contains(out, "42") {
		t.Errorf("%s does not get in: exit code %d\n%s", user, code, out)
	}
}

func (i *installation) staysOut(t testing.TB, user, password string) {
	t.Helper()
	if out, code := i.login1(t, user, password); code == 0 {
		t.Errorf("%s gets in:\n%s", user, out)
	}
}

func caseOddLogins(t *testing.T, i *installation) {
	for _, name := range []string{"ann.o'neil@corp.com", `o"neil two@corp.com`, "ANN.O'Neil@Corp.com"} {
		i.comesIn(t, name, secrets["loader_password"])
	}
	i.staysOut(t, "ann.o@corp.com", secrets["loader_password"])
}

func caseRevoked(t *testing.T, i *installation, s serving) {
	inside := i.login(t, s.Flight, "loader")
	inside.run(t, "SELECT 1")
	i.edit(t, "  roles            = [role.owner]\n", "")
	i.expect(t, 2, []string{`- roles`, "takes effect at once"}, "plan", "--detailed-exitcode")
	i.must(t, "apply", "--auto-approve")
	eventually(t, 5*time.Second, "the role is revoked", func() bool {
		_, _, err := inside.query("SELECT 1")
		return err != nil
	})
	i.staysOut(t, "loader", secrets["loader_password"])
	i.comesIn(t, "ann.o'neil@corp.com", secrets["loader_password"])
	i.edit(t, "  tenant           = tenant.acme\n", "  tenant           = tenant.acme\n  roles            = [role.owner]\n")
	i.must(t, "apply", "--auto-approve")
	eventually(t, 5*time.Second, "the role is back", func() bool {
		_, code := i.login1(t, "loader", secrets["loader_password"])
		return code == 0
	})
}

func casePassword(t *testing.T, i *installation) {
	i.clean(t) // a verifier is no password: there is nothing to compare, and nothing to do
	const next = "next-S3cret-0c1d"
	changed := i.with("QOD_VAR_password=" + next)
	changed.clean(t) // not read before its version rises
	out := changed.expect(t, 2, []string{"password_version = 1 -> 2", "0 to add, 1 to change"}, "plan", "--detailed-exitcode", "--var", "version=2")
	out += changed.must(t, "apply", "--auto-approve", "--var", "version=2")
	changed.clean(t, "--var", "version=2")
	changed.comesIn(t, "loader", next)
	changed.staysOut(t, "loader", secrets["loader_password"])
	i.expect(t, 0, []string{"1 changed"}, "apply", "--auto-approve", "--var", "version=3") // back, for the cases to come
	i.edit(t, "default = 1", "default = 3")
	i.clean(t)
	stored := i.psql(t, "SELECT count(*)::text FROM qodstate_secret")
	if stored == "0" {
		t.Error("no verifier is kept")
	}
	silent(t, next, map[string][]byte{"output": []byte(out), "the store": i.allRows(t, "qod"), "the log of serve": i.read(t, i.state("serve.log"))})
}

func (i *installation) read(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func caseDrain(t *testing.T, i *installation, s serving) {
	c := i.login(t, s.Flight, "loader")
	c.run(t, "BEGIN")
	c.run(t, "CREATE TABLE t (x BIGINT)")
	i.edit(t, "allow_destroy = true", "allow_destroy = false")
	i.must(t, "apply", "--auto-approve")
	i.expect(t, 1, []string{"tenant_db.acme/d", "allow_destroy"}, "destroy", "--auto-approve", "--target", "tenant_db.d")
	c.run(t, "INSERT INTO t VALUES (1)") // nobody's session ended
	i.edit(t, "allow_destroy = false", "allow_destroy = true")
	i.must(t, "apply", "--auto-approve")
	const shown = "1 session (1 in a transaction): they have up to 1s to end"
	i.expect(t, 0, []string{"before pool.acme/bi goes: " + shown, "before tenant_db.acme/d goes: " + shown}, "plan", "--destroy", "--target", "tenant_db.d")
	i.expect(t, 0, []string{shown, "Destroy complete"}, "destroy", "--auto-approve", "--target", "tenant_db.d")
	if _, _, err := c.query("INSERT INTO t VALUES (2)"); err == nil {
		t.Error("a session outlives its pool")
	}
	i.must(t, "apply", "--auto-approve")
	i.clean(t)
}

func caseKilledServe(t *testing.T, i *installation, s serving) {
	i.edit(t, `tenant_db "d" {`, "tenant_db \"second\" {\n  tenant        = tenant.acme\n  kind          = \"ducklake\"\n  allow_destroy = true\n}\ntenant_db \"d\" {")
	release := i.stall(t)
	apply := i.start(t, "apply", "--auto-approve", "--lock-timeout", "20s")
	apply.until(t, "Committed.")
	i.stalled(t) // serve or apply makes the database
	kill(t, s)
	if err := apply.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	apply.ends(t)
	i.expect(t, 0, []string{"no serve runs", "pool.acme/bi: 1 of 1 nodes serving"}, "status")
	i.expect(t, 2, []string{"tenant_db.acme/second: not provisioned yet"}, "plan", "--detailed-exitcode")
	i.serve(t)
	release()
	i.must(t, "wait", "--timeout", "30s")
	i.expect(t, 0, []string{"tenant_db.acme/second: ready"}, "status")
	i.clean(t)
	i.comesIn(t, "loader", secrets["loader_password"])
}
