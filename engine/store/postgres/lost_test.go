package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/test/pgtest"
)

// lostAt is what a store that was just opened says stack s has lost, as addresses.
func lostAt(t *testing.T, url string) string {
	t.Helper()
	snap, err := openAt(t, url).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range snap.Lost["s"] {
		out = append(out, l.Addr.String()+" at "+l.Address)
	}
	return strings.Join(out, ", ")
}

// Whoever deletes rows by hand, and however: the stack that owned the objects has lost them.
func TestRowsDeletedByHand(t *testing.T) {
	const both = "tenant.acme at tenant.acme, tenant.beta at tenant.beta"
	for name, tt := range map[string]struct{ statement, want string }{
		"nothing":        {`DELETE FROM qodstate_object WHERE false`, ""},
		"one":            {`DELETE FROM qodstate_object WHERE key = 'acme'`, "tenant.acme at tenant.acme"},
		"all":            {`DELETE FROM qodstate_object`, both},
		"buried":         {`UPDATE qodstate_object SET tombstone = now() WHERE key = 'acme'`, "tenant.acme at tenant.acme"},
		"truncated":      {`TRUNCATE qodstate_object CASCADE`, both},
		"another path":   {`SET search_path = pg_catalog; DELETE FROM public.qodstate_object WHERE key = 'acme'`, "tenant.acme at tenant.acme"},
		"another login":  {`SET ROLE janitor; DELETE FROM qodstate_object WHERE key = 'acme'`, "tenant.acme at tenant.acme"},
		"changed":        {`UPDATE qodstate_object SET spec = '{"name":"acme","disabled":true}' WHERE key = 'acme'`, ""},
		"rolled back":    {`BEGIN; DELETE FROM qodstate_object; ROLLBACK`, ""},
		"put back":       {`CREATE TEMP TABLE kept AS TABLE qodstate_object; DELETE FROM qodstate_object; INSERT INTO qodstate_object TABLE kept`, ""},
		"deleted, again": {`DELETE FROM qodstate_object; DELETE FROM qodstate_object`, both},
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.Database(t)
			s, conn := openAt(t, url), session(t, url)
			janitor := newRole(t, conn)
			c := store.Change{Stack: store.Stack{Name: "s", Lineage: uuid.NewString()}}
			c.Writes = []store.Write{storetest.New(t, "tenant", `{"name":"acme"}`), storetest.New(t, "tenant", `{"name":"beta"}`)}
			if _, err := s.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			sql(t, conn, strings.ReplaceAll(tt.statement, "janitor", janitor), pgx.QueryExecModeSimpleProtocol)
			if diff := cmp.Diff(tt.want, lostAt(t, url)); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

// newRole makes a login that may only read and delete objects.
func newRole(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	name := "janitor_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	sql(t, conn, `CREATE ROLE `+name)
	sql(t, conn, `GRANT SELECT, DELETE ON qodstate_object TO `+name)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, statement := range []string{`RESET ROLE`, `RESET search_path`, `DROP OWNED BY ` + name, `DROP ROLE ` + name} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return name
}
