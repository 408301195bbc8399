package test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestRevocation takes a permission, and then a role, away from a user who keeps asking, at the serve that
// acts and at a follower: both refuse within a second of the end of the apply.
func TestRevocation(t *testing.T) {
	i := install(t, "")
	i.writePolicies(t)
	i.must(t, "apply", "--auto-approve")
	acting, follower := i.serve(t), i.serve(t)
	i.login(t, acting.Flight, "loader").run(t, "CREATE TABLE supplier AS SELECT 1 AS s_nationkey")
	i.login(t, acting.Flight, "loader").run(t, "CREATE TABLE nation AS SELECT 1 AS n_nationkey, 1 AS n_regionkey")
	clients := map[string]*client{
		"acting": i.login(t, acting.Flight, "analyst"), "follower": i.login(t, follower.Flight, "analyst"),
	}
	for name, c := range clients {
		if _, _, err := c.query("SELECT * FROM supplier"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	i.edit(t, "privileges = [\"select\"]", "privileges = [\"insert\"]")
	i.must(t, "apply", "--auto-approve")
	for name, c := range clients {
		c.refusedWithin(t, time.Second, name, "SELECT * FROM supplier")
	}
	i.edit(t, "privileges = [\"insert\"]", "privileges = [\"select\"]")
	i.must(t, "apply", "--auto-approve")
	for name, c := range clients {
		eventually(t, time.Second, name+" reads again", func() bool {
			_, _, err := c.query("SELECT * FROM supplier")
			return err == nil
		})
	}
	i.edit(t, "roles    = [role.reader, role.restricted]", "disabled = true")
	i.must(t, "apply", "--auto-approve")
	for name, c := range clients {
		c.refusedWithin(t, time.Second, name, "SELECT 1")
	}
}

// refusedWithin asks until the answer is a refusal.
func (c *client) refusedWithin(t *testing.T, limit time.Duration, who, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for ctx.Err() == nil {
		_, _, err := c.query(sql)
		if status.Code(err) == codes.PermissionDenied {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
	}
	t.Errorf("%s answers %s after the apply", who, limit)
}
