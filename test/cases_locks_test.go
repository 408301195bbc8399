package test

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/qod-io/qod/engine/catalog"
)

// Absence, locks and processes that die.
func TestPublicCasesOfLocks(t *testing.T) {
	i := install(t, "")
	runCases(t, i, []publicCase{
		{"I-29 deleted outside", caseDeleted},
		{"I-29 refused is not missing", caseRefused},
		{"I-30 a lock dies with its process", caseLock},
		{"I-32 a plan takes no lock", casePlanLocks},
		{"I-33 a killed plan leaves nothing", caseKilledPlan},
		{"I-35 a lake's login is mended", caseLakeLogin},
		{"I-37 two stacks and one object", caseTwoStacks},
	})
}

// stall has Postgres make or remove no database until the returned function is called, so that an outside
// step hangs in its middle.
func (i *installation) stall(t testing.TB) (release func()) {
	t.Helper()
	c := i.connect(t, "postgres")
	for _, statement := range []string{"BEGIN", "LOCK TABLE pg_catalog.pg_database IN SHARE ROW EXCLUSIVE MODE"} {
		if _, err := c.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		if _, err := c.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}

// stalled waits until a step hangs.
func (i *installation) stalled(t testing.TB) {
	t.Helper()
	eventually(t, 20*time.Second, "an outside step hangs", func() bool {
		return i.psql(t, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'DATABASE'") != "0"
	})
}

const lake = `
tenant_db "d" {
  tenant        = tenant.NAME
  kind          = "ducklake"
  allow_destroy = true
}
`

func (i *installation) lake(t testing.TB, more string) {
	t.Helper()
	i.stack(t, strings.ReplaceAll(lake, "NAME", i.name)+more)
}

// database is the name of a lake's database and role.
func (i *installation) database(t testing.TB, key string) string {
	t.Helper()
	name, err := catalog.NameOf(i.psql(t, "SELECT id::text FROM qodstate_object WHERE kind = 'tenant_db' AND key = '"+key+"'"))
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func caseDeleted(t *testing.T, i *installation) {
	i.lake(t, "role \"r\" {\n  tenant = tenant.i29\n}\n")
	i.settled(t)
	i.execute(t, "qod", "DELETE FROM qodstate_object WHERE kind = 'role' AND key = 'i29/r'")
	i.expect(t, 2, []string{"role.i29/r will be created", "1 to add, 0 to change, 0 to destroy"}, "plan", "--detailed-exitcode")
	i.settled(t)

	// A lake without its database has lost data, and nothing makes an empty one in its place.
	database := i.database(t, "i29/d")
	i.execute(t, "qod", "ALTER DATABASE \""+database+"\" RENAME TO apart")
	i.expect(t, 2, []string{"tenant_db.i29/d: Postgres database " + database + " is missing"}, "plan", "--detailed-exitcode")
	i.expect(t, 2, []string{"is missing"}, "drift")
	i.execute(t, "qod", "ALTER DATABASE apart RENAME TO \""+database+"\"")
	i.clean(t)
	i.must(t, "destroy", "--auto-approve")
}

func caseRefused(t *testing.T, i *installation) {
	i.stack(t, "role \"r\" {\n  tenant = tenant.i29\n}\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	server := i.connect(t, "qod").Config()
	i.execute(t, "qod", "CREATE ROLE nobody LOGIN PASSWORD 'nobody-knows'")
	absent := url.URL{
		Scheme: "postgres", User: url.UserPassword(server.User, server.Password), Path: "/absent",
		RawQuery: "host=" + filepath.Join(i.root, "run", "pg"),
	}
	for name, place := range map[string]string{
		"no database":    absent.String(),
		"nobody listens": "postgres://qod@" + closed + "/qod",
		"no right":       "postgres://nobody:nobody-knows@/qod?host=" + filepath.Join(i.root, "run", "pg"),
		"wrong password": "postgres://" + server.User + ":wrong@/qod?host=" + filepath.Join(i.root, "run", "pg"),
	} {
		t.Run(name, func(t *testing.T) {
			away := i.with("QOD_DATABASE_URL=" + place)
			for _, command := range [][]string{{"plan"}, {"drift"}, {"plan", "--destroy"}, {"state", "list"}} {
				out := away.expect(t, 1, []string{"Error"}, command...)
				away.lacks(t, out, "created", "no state", "wrong@", "nobody-knows", server.Password)
			}
		})
	}
	i.execute(t, "qod", "DROP ROLE nobody")
}

func caseLock(t *testing.T, i *installation) {
	i.lake(t, "")
	release := i.stall(t)
	first := i.start(t, "apply", "--auto-approve")
	i.stalled(t)
	second := i.beside(t, "i30-second")
	second.lake(t, "")
	second.expect(t, 1, []string{"Waiting for process ", " on ", "committed, not converged", "tenant_db.i30-second/d"},
		"apply", "--auto-approve", "--lock-timeout", "0s")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.ends(t)
	release()
	out := i.must(t, "apply", "--auto-approve", "--lock-timeout", "0s")
	i.lacks(t, out, "Waiting for")
	i.clean(t)
	second.settled(t)
	if got := i.psql(t, "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'qod\\_%'"); got != "2" {
		t.Errorf("there are %s databases for two lakes", got)
	}
	second.must(t, "destroy", "--auto-approve")
	i.must(t, "destroy", "--auto-approve")
}

func casePlanLocks(t *testing.T, i *installation) {
	i.lake(t, "")
	i.must(t, "init")
	release := i.stall(t)
	apply := i.start(t, "apply", "--auto-approve")
	i.stalled(t)
	i.expect(t, 2, []string{"tenant_db.i32/d", "not provisioned yet"}, "plan", "--detailed-exitcode")
	i.edit(t, "allow_destroy = true", "allow_destroy = false")
	file := filepath.Join(i.dir, "p.qodplan")
	i.must(t, "plan", "--out", file)
	release()
	if code, out := apply.ends(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	i.expect(t, 0, []string{"1 changed"}, "apply", file) // nothing that it saw has moved
	i.edit(t, "allow_destroy = false", "allow_destroy = true")
	i.must(t, "apply", "--auto-approve")
	i.must(t, "destroy", "--auto-approve")
}

func caseKilledPlan(t *testing.T, i *installation) {
	i.lake(t, "")
	i.settled(t)
	before := i.versions(t) + i.psql(t, "SELECT count(*)::text FROM qodstate_apply")
	for _, after := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond} {
		i.signalAfter(t, syscall.SIGKILL, after, "plan", "--destroy")
	}
	i.clean(t)
	if now := i.versions(t) + i.psql(t, "SELECT count(*)::text FROM qodstate_apply"); now != before {
		t.Errorf("a killed plan wrote rows:\n%s\n%s", before, now)
	}
	i.must(t, "apply", "--auto-approve", "--lock-timeout", "0s")
	// What an apply left undone is named by plans, and the next apply does it.
	i.edit(t, `tenant_db "d"`, `tenant_db "e"`)
	release := i.stall(t)
	apply := i.start(t, "apply", "--auto-approve")
	i.stalled(t)
	if err := apply.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	apply.ends(t)
	i.expect(t, 2, []string{"tenant_db.i33/e: not provisioned yet", "tenant_db.i33/d: still being destroyed"}, "plan", "--detailed-exitcode")
	release()
	i.settled(t)
	i.must(t, "destroy", "--auto-approve")
}

func caseLakeLogin(t *testing.T, i *installation) {
	i.lake(t, "")
	i.settled(t)
	role := i.database(t, "i35/d")
	i.execute(t, "qod", `ALTER ROLE "`+role+`" NOLOGIN PASSWORD 'theirs'`)
	i.expect(t, 2, []string{"tenant_db.i35/d: Postgres role " + role + " may not log in"}, "drift")
	i.settled(t) // looking into the lake proves that the password is the kept one again
	i.must(t, "destroy", "--auto-approve")
}

func caseTwoStacks(t *testing.T, i *installation) {
	i.stack(t, "role \"r\" {\n  tenant = tenant.i37\n  description = \"one\"\n}\n")
	i.settled(t)
	other := i.beside(t, "i37-other")
	const theirs = "role \"r\" {\n  tenant = \"i37\"\n  description = \"two\"\n}\n"
	other.stack(t, theirs)
	other.expect(t, 1, []string{`role.i37/r belongs to stack "i37"`, `written by role.r of stack "i37"`}, "apply", "--auto-approve")
	other.stack(t, theirs+"import {\n  to = role.r\n  id = \"i37/r\"\n}\n")
	other.expect(t, 0, []string{`(imported from stack "i37")`, "Plan: 1 to import, 1 to add, 1 to change"}, "apply", "--auto-approve")
	i.expect(t, 1, []string{`role.i37/r belongs to stack "i37-other"`}, "apply", "--auto-approve")
	other.clean(t)

	// One stack from two directories: the second is told, before it changes anything.
	twin := i.beside(t, "i37-twin")
	twin.name = i.name
	twin.stack(t, "")
	for _, command := range [][]string{{"init"}, {"apply", "--auto-approve"}, {"destroy", "--auto-approve"}} {
		twin.expect(t, 1, []string{`stack "i37" is known`, "apply --adopt-stack"}, command...)
	}
}
