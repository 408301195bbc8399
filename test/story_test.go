package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The main job, as the README tells it.
func TestQuickstart(t *testing.T) {
	i := install(t, "quickstart")
	i.expect(t, 2, []string{"tenant.acme will be created", "Plan: 7 to add, 0 to change, 0 to destroy."}, "plan", "--detailed-exitcode")
	i.expect(t, 0, []string{"Apply complete: 7 added"}, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	i.expect(t, 0, []string{"No changes."}, "apply", "--auto-approve")
	i.serve(t)
	i.expect(t, 0, []string{"lineitem", "600572"}, "load", "tpch", "--sf", "0.1", "acme/tpch")
	i.expect(t, 0, []string{"loaded already"}, "load", "tpch", "--sf", "0.1", "acme/tpch")
	q1, err := os.ReadFile(filepath.Join(i.dir, "q1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	out := i.ask(t, "analyst", string(q1))
	for _, want := range []string{"A,F,3774200.00", "N,F,95257.00", "N,O,7459297.00", "R,F,3785523.00"} {
		if !strings.Contains(out, want) {
			t.Errorf("Q1 lacks %q:\n%s", want, out)
		}
	}
	i.expect(t, 0, []string{"pool.acme/bi", "serving"}, "status")

	i.edit(t, `memory    = var.memory`, `memory    = "768MiB"`)
	i.expect(t, 2, []string{`~ memory = "1GiB" -> "768MiB"`, "rolls: new nodes"}, "plan", "--detailed-exitcode")
	i.expect(t, 0, []string{"Apply complete: 0 added, 1 changed, 0 destroyed."}, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")

	i.expect(t, 0, []string{"Destroy complete: 0 added, 0 changed, 7 destroyed."}, "destroy", "--auto-approve")
	i.nothingLeft(t)
}

// nothingLeft shows that a destroyed stack has no row, database, role, node or data file.
func (i *installation) nothingLeft(t testing.TB) {
	t.Helper()
	for what, query := range map[string]string{
		"object":   "SELECT count(*) FROM qodstate_object WHERE stack <> 'system'",
		"node":     "SELECT count(*) FROM qodstate_node",
		"secret":   "SELECT count(*) FROM qodstate_secret s JOIN qodstate_object o ON o.id = s.object_id WHERE o.stack <> 'system'",
		"database": "SELECT count(*) FROM pg_database WHERE datname LIKE 'qod\\_%'",
		"role":     "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'qod\\_%'",
	} {
		if got := i.psql(t, query); got != "0" {
			t.Errorf("%s %s is left", got, what)
		}
	}
	for _, dir := range []string{"data", "nodes"} {
		entries, err := os.ReadDir(i.state(dir))
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		for _, e := range entries {
			if e.IsDir() {
				t.Errorf("%s/%s is left", dir, e.Name())
			}
		}
	}
}

// Names are of one tenant: the same user name in two tenants are two users, and neither sees the
// other's tables.
func TestTwoTenants(t *testing.T) {
	i := install(t, "two-tenants")
	i.must(t, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	i.serve(t)
	acme := func(sql string) []string {
		return []string{"sql", "--user", "ana@acme/bi", "--password-file", i.secretFile(t, "loader_password"), "--format", "csv", sql}
	}
	globex := func(sql string) []string {
		return []string{"sql", "--user", "ana@globex/bi", "--password-file", i.secretFile(t, "analyst_password"), "--format", "csv", sql}
	}
	i.must(t, acme("CREATE TABLE notes (id INTEGER, body VARCHAR)")...)
	i.must(t, acme("INSERT INTO notes VALUES (1, 'hello')")...)
	i.expect(t, 0, []string{"hello"}, acme("SELECT body FROM notes WHERE id = 1")...)
	i.expect(t, 1, []string{"Table with name notes does not exist"}, globex("SELECT body FROM notes")...)
	i.expect(t, 1, []string{"unauthenticated"}, "sql", "--user", "ana@globex/bi", "--password-file", i.secretFile(t, "loader_password"), "SELECT 1")
	i.must(t, "destroy", "--auto-approve")
	i.nothingLeft(t)
}

// secretFile writes a password where a command can read it.
func (i *installation) secretFile(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(i.root, name)
	if err := os.WriteFile(file, []byte(secrets[name]), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// ask runs a statement as a user of the quickstart.
func (i *installation) ask(t testing.TB, user, sql string) string {
	t.Helper()
	return i.must(t, "sql", "--user", user+"@acme/bi", "--password-file", i.secretFile(t, user+"_password"), "--format", "csv", sql)
}

// A store without its master key is an error that says so, not an empty world.
func TestLostMasterKey(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	kept := i.state("master.key") + ".apart"
	if err := os.Rename(i.state("master.key"), kept); err != nil {
		t.Fatal(err)
	}
	i.expect(t, 1, []string{"the master key they are sealed with is not in"}, "apply", "--auto-approve")
	if err := os.Rename(kept, i.state("master.key")); err != nil {
		t.Fatal(err)
	}
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
}
