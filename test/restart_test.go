package test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A restart replaces every node once, also where the serve that took it dies, and where none runs. What is open on an old
// node ends there.
func TestRestart(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	i.fixPort(s)
	old := i.nodePIDs(t)
	held, other := i.login(t, s.Flight, "loader"), i.login(t, s.Flight, "analyst")
	other.run(t, "CREATE TABLE kept (n BIGINT)")
	held.run(t, "BEGIN")
	held.run(t, "INSERT INTO kept VALUES (1)")

	const path = "/v1/pool/acme/bi"
	body := fmt.Sprintf(`{"id":%q}`, uuid.NewString())
	r := i.rest(t, s, "https")
	if phase := phaseOf(r.must(t, 200, "POST", path+"/restart", body)); phase != "provisioning" {
		t.Errorf("a pool that is to be restarted is %v", phase)
	}
	kill(t, s)
	s = i.serve(t)
	r = i.rest(t, s, "https")
	eventually(t, 30*time.Second, "statements are answered again", func() bool {
		_, first, err := other.query("SELECT 42")
		return err == nil && first == "42"
	})
	held.run(t, "COMMIT")
	eventually(t, 2*time.Minute, "all nodes are new", func() bool { return phaseOf(r.must(t, 200, "GET", path, "")) == "ready" })
	if got := other.value(t, "SELECT count(*) FROM kept"); got != "1" {
		t.Errorf("the transaction left %s rows, want 1", got)
	}
	second := i.replaced(t, old)

	// The same request again is the same request.
	if phase := phaseOf(r.must(t, 200, "POST", path+"/restart", body)); phase != "ready" {
		t.Errorf("a request that is repeated leaves the pool %v", phase)
	}
	kill(t, s)
	i.expect(t, 1, []string{"tenant.acme has no nodes"}, "restart", "tenant.acme")
	i.expect(t, 0, []string{"All nodes are new."}, "restart", "pool.acme/bi")
	i.replaced(t, second)
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	i.expect(t, 0, []string{"pool.acme/bi"}, "audit", "--action", "pool.restart")
}

// replaced shows that none of the nodes runs any more, and as many others do, which it returns.
func (i *installation) replaced(t *testing.T, old []string) []string {
	t.Helper()
	now := i.nodePIDs(t)
	if len(now) != len(old) || slices.ContainsFunc(now, func(node string) bool { return slices.Contains(old, node) }) {
		t.Errorf("nodes were %v and are %v", old, now)
	}
	return now
}
