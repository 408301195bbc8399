package test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// atOnce is how long a revocation may take to reach every serve.
	atOnce = time.Second
	// endless runs until somebody ends it.
	endless = "SELECT count(*) FROM range(400000) a, range(400000) b WHERE a.range * b.range = 7"
)

// enter logs in with a password of the caller's choice.
func (i *installation) enter(t testing.TB, address, user, password string) *client {
	t.Helper()
	c := i.dial(t, address)
	ctx, err := c.Client.Client.AuthenticateBasicToken(t.Context(), user, password)
	if err != nil {
		t.Fatal(err)
	}
	c.ctx = ctx
	return c
}

// refused waits until the session is refused with that code.
func (c *client) refused(t testing.TB, code codes.Code, limit time.Duration) {
	t.Helper()
	eventually(t, limit, "the session is refused", func() bool {
		_, _, err := c.query("SELECT 42")
		return status.Code(err) == code
	})
}

// start runs the endless statement, and returns when a node works on it.
func (c *client) start(t testing.TB, i *installation) <-chan error {
	t.Helper()
	before := i.inFlight(t)
	failed := make(chan error, 1)
	go func() {
		_, _, err := c.query(endless)
		failed <- err
	}()
	eventually(t, 20*time.Second, "the statement is at work", func() bool { return i.inFlight(t) > before })
	return failed
}

// cancelled waits for the end of what start began, and shows that nothing is left of it in the nodes.
func cancelled(t testing.TB, i *installation, failed <-chan error, word string) {
	t.Helper()
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "the statement was cancelled: "+word) {
			t.Errorf("the statement ended with %v, want %q", err, word)
		}
	case <-time.After(atOnce):
		t.Errorf("the statement still runs %s after its user was turned away", atOnce)
	}
	eventually(t, 5*time.Second, "the node is free", func() bool { return i.inFlight(t) == 0 })
}

// Tokens, sessions and the audit, through two serves as users meet them.
func TestIdentity(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	w := identity{i, i.serve(t), i.with("QOD_STALE_GRANTS_SEC=2").serve(t)}
	admin := i.enter(t, w.leader.Flight, "admin@acme/bi", secrets["admin"])
	admin.run(t, "CREATE TABLE notes (n INTEGER)")
	t.Run("token", func(t *testing.T) { w.token(t, admin) })
	t.Run("session", func(t *testing.T) { w.session(t) })
	t.Run("disabled user", func(t *testing.T) { w.disabled(t, admin) })
	t.Run("audit", func(t *testing.T) { w.audit(t) })
	t.Run("follower without a store", func(t *testing.T) { w.stale(t) })
}

type identity struct {
	*installation
	leader, follower serving
}

func (w identity) token(t *testing.T, admin *client) {
	out := w.must(t, "token", "create", "acme/analyst", "--name", "laptop", "--expires", "1d")
	at := strings.Index(out, "qodp_")
	if at < 0 {
		t.Fatal(out)
	}
	token := strings.TrimSpace(out[at:])
	id := strings.Split(token, "_")[1]
	w.expect(t, 0, []string{id, "acme/analyst", "laptop", "good"}, "token", "list")
	first := w.enter(t, w.leader.Flight, "analyst@acme/bi", token)
	first.run(t, "BEGIN")
	first.run(t, "INSERT INTO notes VALUES (1)")
	second := w.dial(t, w.follower.Flight)
	second.ctx = metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token, "tenant", "acme", "pool", "bi")
	if got := second.value(t, "SELECT count(*) FROM notes"); got != "0" {
		t.Errorf("%s rows of an open transaction", got)
	}
	running := w.enter(t, w.follower.Flight, "whoever@acme/bi", token)
	failed := running.start(t, w.installation)

	w.expect(t, 0, []string{"Revoked token " + id}, "token", "revoke", id)
	cancelled(t, w.installation, failed, "the token that began the session was revoked")
	for _, c := range []*client{first, second, running} {
		c.refused(t, codes.Unauthenticated, atOnce)
	}
	if got := admin.value(t, "SELECT count(*) FROM notes"); got != "0" {
		t.Errorf("%s rows of a transaction that was rolled back", got)
	}
	eventually(t, 5*time.Second, "the open transaction is rolled back", func() bool { return w.sessions(t) == 0 })
	w.expect(t, 0, []string{"revoked"}, "token", "list", "analyst", "--json")
	w.expect(t, 1, []string{"there is no token"}, "token", "revoke", "nothing")
	w.expect(t, 1, []string{"up to 365 days"}, "token", "create", "acme/analyst", "--expires", "366d")
	logs, err := os.ReadFile(w.state("serve.log"))
	if err != nil {
		t.Fatal(err)
	}
	silent(t, strings.Split(token, "_")[2], map[string][]byte{
		"the store": w.allRows(t, "qod"), "serve's log": logs, "audit": []byte(w.must(t, "audit", "--json", "--limit", "0")),
	})
}

// sessions asks the nodes' status for sessions with state.
func (w identity) sessions(t testing.TB) int {
	t.Helper()
	total := 0
	for _, line := range strings.Split(w.must(t, "status"), "\n") {
		if fields := strings.Fields(line); len(fields) > 6 && fields[1] == "dual" {
			n, _ := strconv.Atoi(fields[6])
			total += n
		}
	}
	return total
}

func (w identity) session(t *testing.T) {
	one := w.enter(t, w.leader.Flight, "analyst@acme/bi", secrets["analyst_password"])
	other := w.enter(t, w.leader.Flight, "loader@acme/bi", secrets["loader_password"])
	one.run(t, "SELECT 1")
	id := ""
	eventually(t, 5*time.Second, "the login is in the audit", func() bool {
		for _, e := range w.events(t, "--user", "acme/analyst", "--action", "auth.login") {
			if e.Realm == "password" {
				id = strings.TrimPrefix(e.Object, "session ")
			}
		}
		return id != ""
	})
	failed := one.start(t, w.installation)
	w.must(t, "session", "revoke", id)
	cancelled(t, w.installation, failed, "the session was revoked")
	one.refused(t, codes.Unauthenticated, atOnce)
	one.as(t, w.installation, w.follower.Flight).refused(t, codes.Unauthenticated, atOnce)
	other.run(t, "SELECT 1")
	w.must(t, "session", "revoke", "--user", "loader", "--tenant", "acme")
	other.refused(t, codes.Unauthenticated, atOnce)
	other.as(t, w.installation, w.follower.Flight).refused(t, codes.Unauthenticated, atOnce)
	w.enter(t, w.follower.Flight, "loader@acme/bi", secrets["loader_password"]).run(t, "SELECT 1")
}

// event is what the tests look at of an event.
type event struct{ User, Tenant, Realm, From, Action, Object, Code, SQL string }

func (w identity) events(t testing.TB, filter ...string) []event {
	t.Helper()
	var log struct{ Events []event }
	out := w.must(t, append([]string{"audit", "--limit", "0", "--json"}, filter...)...)
	if err := json.Unmarshal([]byte(out), &log); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return log.Events
}

func (w identity) disabled(t *testing.T, admin *client) {
	idle := w.enter(t, w.leader.Flight, "analyst@acme/bi", secrets["analyst_password"])
	idle.run(t, "BEGIN")
	idle.run(t, "INSERT INTO notes VALUES (2)")
	busy := w.enter(t, w.follower.Flight, "analyst@acme/bi", secrets["analyst_password"])
	failed := busy.start(t, w.installation)
	w.edit(t, "password = var.analyst_password", "password = var.analyst_password\n  disabled = true")
	w.must(t, "apply", "--auto-approve")
	cancelled(t, w.installation, failed, "user analyst is disabled")
	for _, c := range []*client{idle, busy} {
		c.refused(t, codes.PermissionDenied, atOnce)
	}
	eventually(t, 5*time.Second, "the open transaction is rolled back", func() bool { return w.sessions(t) == 0 })
	w.edit(t, "\n  disabled = true", "")
	w.must(t, "apply", "--auto-approve")
	// What the session had is gone, so it must not go on as if nothing had been.
	idle.refused(t, codes.Unauthenticated, atOnce)
	_, _, err := idle.query("INSERT INTO notes VALUES (3)")
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("the session goes on with %v", err)
	}
	if got := admin.value(t, "SELECT count(*) FROM notes"); got != "0" {
		t.Errorf("%s rows of a user that was disabled", got)
	}
}

func (w identity) audit(t *testing.T) {
	c := w.enter(t, w.leader.Flight, "loader@acme/bi", secrets["loader_password"])
	if _, _, err := c.query("SELECT * FROM read_csv('/etc/canary-4711')"); err == nil {
		t.Error("a file was read")
	}
	anybody := w.dial(t, w.leader.Flight)
	for n := range 5 {
		if _, err := anybody.Client.Client.AuthenticateBasicToken(t.Context(), "loader@acme/bi", fmt.Sprint("guess-", n)); err == nil {
			t.Error("a guess was right")
		}
	}
	want := map[string]bool{
		"auth.login session": true, "auth.login.failure password": true, "auth.lockout failures": true, "sql.denied function": true,
		"sql.cancelled token_revoked": true, "sql.cancelled session_revoked": true, "sql.cancelled disabled": true,
		"token.create token": true, "token.revoke token": true, "session.revoke session": true, "session.revoke user": true,
		"auth.session.refused session_revoked": true,
	}
	eventually(t, 5*time.Second, "all of it is in the audit", func() bool {
		for _, e := range w.events(t) {
			object, _, _ := strings.Cut(e.Object, " ")
			delete(want, e.Action+" "+e.Code)
			delete(want, e.Action+" "+object)
		}
		return len(want) == 0
	})
	for word := range want {
		t.Errorf("the audit has no %s", word)
	}
	denied := w.events(t, "--action", "sql.denied", "--user", "LOADER", "--tenant", "acme", "--since", "1h")
	if len(denied) != 1 || denied[0].From != "127.0.0.1" || denied[0].SQL != "SELECT * FROM read_csv(?)" {
		t.Errorf("audit %+v", denied)
	}
	w.expect(t, 0, []string{"WHEN", "acme/loader", "sql.denied", "read_csv(?)"}, "audit", "--action", "sql")
	w.expect(t, 0, []string{"Nothing like that"}, "audit", "--tenant", "globex")
	silent(t, "canary-4711", map[string][]byte{"the store": w.allRows(t, "qod")})
}

// stale stops every process of the private Postgres, which is as good as a cut cable.
func (w identity) stale(t *testing.T) {
	admin := w.enter(t, w.follower.Flight, "admin@acme/bi", secrets["admin"])
	c := w.enter(t, w.follower.Flight, "analyst@acme/bi", secrets["analyst_password"])
	c.run(t, "SELECT 42")
	stop := w.postgresProcesses(t)
	signal := func(s syscall.Signal) {
		for _, pid := range stop {
			_ = syscall.Kill(pid, s) // some end by themselves
		}
	}
	signal(syscall.SIGSTOP)
	defer signal(syscall.SIGCONT)
	c.refused(t, codes.Unavailable, 10*time.Second)
	_, _, err := c.query("SELECT 42")
	if err == nil || !strings.Contains(err.Error(), "QOD_STALE_GRANTS_SEC is 2") {
		t.Errorf("the refusal says %v", err)
	}
	admin.run(t, "SELECT 42")
	c.as(t, w.installation, w.leader.Flight).run(t, "SELECT 42")
	signal(syscall.SIGCONT)
	eventually(t, 20*time.Second, "the follower serves again", func() bool {
		_, _, err := c.query("SELECT 42")
		return err == nil
	})
}

// postgresProcesses lists the postmaster and its children, in this order.
func (w identity) postgresProcesses(t testing.TB) []int {
	t.Helper()
	c := w.connect(t, "qod")
	var file string
	if err := c.QueryRow(t.Context(), "SELECT current_setting('data_directory') || '/postmaster.pid'").Scan(&file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	postmaster, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	all := []int{postmaster}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(raw), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == line {
			all = append(all, pid)
		}
	}
	return all
}
