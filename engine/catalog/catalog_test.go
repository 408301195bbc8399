package catalog_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/test/pgtest"
)

func TestCreateMakesRoleDatabaseAndLake(t *testing.T) {
	l := newLake(t)
	l.create()
	l.create() // finds nothing to do
	if got := l.host.inits.Load(); got != 1 {
		t.Errorf("InitLake was called %d times", got)
	}
	if got := l.missing(); got != nil {
		t.Errorf("missing: %v", got)
	}
	want := `{"qod_id":"` + l.object.ID + `","name":"acme/sales"}`
	for what, query := range map[string]string{
		"database": "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1",
		"role":     "SELECT shobj_description(oid, 'pg_authid') FROM pg_authid WHERE rolname = $1",
	} {
		if got := ask[string](t, l.admin, query, l.name()); got != want {
			t.Errorf("comment on %s = %s, want %s", what, got, want)
		}
	}
	if got := ask[string](t, l.admin, "SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = $1", l.name()); got != l.name() {
		t.Errorf("owner = %s", got)
	}
	plain := ask[bool](t, l.admin, `SELECT rolcanlogin AND NOT (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)
		AND rolconnlimit > 0 AND rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = $1`, l.name())
	if !plain {
		t.Error("the role has rights or no verifier")
	}
	owner := ask[string](t, lakeURL(l.of()), "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = 'public'")
	if owner != l.name() {
		t.Errorf("public belongs to %s", owner)
	}
}

func TestOnlyTheLakesRoleGetsIn(t *testing.T) {
	mine, other := newLake(t), newLake(t)
	mine.create()
	other.create()
	for _, database := range []string{mine.name(), "postgres", "qod", "template1"} {
		intruder := other.of()
		intruder.Database = database
		conn, err := pgx.Connect(t.Context(), lakeURL(intruder))
		if err == nil {
			conn.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "permission denied for database") {
			t.Errorf("%s connects to %s: %v", other.name(), database, err)
		}
	}
	wrong := mine.of()
	wrong.Password = string(other.password)
	if _, err := pgx.Connect(t.Context(), lakeURL(wrong)); err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Errorf("the wrong password: %v", err)
	}
	// A superuser's grants aside, nobody but the owner has a right on database or schema.
	sql(t, mine.admin, "CREATE ROLE bystander")
	t.Cleanup(func() { sql(t, mine.admin, "DROP ROLE bystander") })
	in := connect(t, pgtest.Server(t).URL(mine.name()))
	var rights bool
	err := in.QueryRow(t.Context(), `SELECT has_database_privilege('bystander', current_database(), 'CONNECT,TEMP,CREATE')
		OR has_schema_privilege('bystander', 'public', 'USAGE,CREATE')`).Scan(&rights)
	if err != nil || rights {
		t.Errorf("a bystander has rights: %v, %v", rights, err)
	}
}

// TestNoSecretInLogOrError makes the server log every statement with its parameters: none has the secret.
func TestNoSecretInLogOrError(t *testing.T) {
	l := newLake(t)
	sql(t, l.admin, "ALTER ROLE qod SET log_statement = 'all'", "ALTER ROLE qod SET log_parameter_max_length = -1",
		"ALTER ROLE qod SET log_error_verbosity = 'default'")
	t.Cleanup(func() { sql(t, l.admin, "ALTER ROLE qod RESET ALL") })
	l.create()
	sql(t, l.admin, "ALTER ROLE "+l.name()+" PASSWORD 'other'")
	l.create()
	log, err := os.ReadFile(pgtest.LogFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `CREATE ROLE "`+l.name()) || !strings.Contains(string(log), "$1 = '"+l.name()) {
		t.Errorf("the log lacks statements or parameters: %s", log)
	}
	if strings.Contains(string(log), string(l.password)) {
		t.Error("the log has the secret")
	}
	_, err = catalog.New(catalog.Config{Admin: "postgres://qod:hidden@host:notaport/x"})
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("New = %v", err)
	}
}

func TestForeignIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct{ make, undo func(name string) string }{
		"database without a comment": {
			make: func(name string) string { return "CREATE DATABASE " + name + " TEMPLATE template0" },
			undo: func(name string) string { return "DROP DATABASE " + name },
		},
		"role without a comment": {
			make: func(name string) string { return "CREATE ROLE " + name },
			undo: func(name string) string { return "DROP ROLE " + name },
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			sql(t, l.admin, test.make(l.name()))
			count := "SELECT count(*) FROM (SELECT datname FROM pg_database UNION ALL SELECT rolname FROM pg_roles) AS n(name) WHERE name = $1"
			if err := l.tryCreate(); !errors.Is(err, catalog.ErrForeign) {
				t.Errorf("Create = %v", err)
			}
			if err := l.catalog().Delete(t.Context(), l.object); !errors.Is(err, catalog.ErrForeign) {
				t.Errorf("Delete = %v", err)
			}
			if got := ask[int](t, l.admin, count, l.name()); got == 0 {
				t.Error("it is gone")
			}
			if got := strings.Join(l.missing(), "; "); !strings.Contains(got, "is not ours") {
				t.Errorf("missing = %s", got)
			}
			sql(t, l.admin, test.undo(l.name()))
		})
	}
}

// TestCreateFinishesWhatIsHalfDone starts from what a process leaves that dies in between, and from
// damage.
func TestCreateFinishesWhatIsHalfDone(t *testing.T) {
	for name, damage := range map[string]func(l *lake){
		"draft of a database": func(l *lake) {
			sql(l.t, l.admin, "DROP DATABASE "+l.name(), "CREATE DATABASE "+l.name()+"_new OWNER "+l.name()+" TEMPLATE template0 ALLOW_CONNECTIONS false")
		},
		"closed and public database": func(l *lake) {
			sql(l.t, l.admin, "ALTER DATABASE "+l.name()+" ALLOW_CONNECTIONS false", "GRANT ALL ON DATABASE "+l.name()+" TO PUBLIC",
				"ALTER DATABASE "+l.name()+" OWNER TO CURRENT_USER")
		},
		"no database":         func(l *lake) { sql(l.t, l.admin, "DROP DATABASE "+l.name()) },
		"no role or database": func(l *lake) { sql(l.t, l.admin, "DROP DATABASE "+l.name(), "DROP ROLE "+l.name()) },
		"role shut out and raised": func(l *lake) {
			sql(l.t, l.admin, "ALTER ROLE "+l.name()+" NOLOGIN SUPERUSER CREATEDB CONNECTION LIMIT -1")
		},
		"other password": func(l *lake) { sql(l.t, l.admin, "ALTER ROLE "+l.name()+" PASSWORD 'other'") },
		"open schema": func(l *lake) {
			sql(l.t, pgtest.Server(l.t).URL(l.name()), "GRANT ALL ON SCHEMA public TO PUBLIC", "ALTER SCHEMA public OWNER TO pg_database_owner")
		},
		"no metadata": func(l *lake) { sql(l.t, lakeURL(l.of()), "DROP TABLE ducklake_metadata") },
		"no data": func(l *lake) {
			if err := l.host.RemoveData(l.t.Context(), l.object.ID); err != nil {
				l.t.Fatal(err)
			}
		},
		"other default schema": func(l *lake) { l.object = object(l.t, l.object.ID, "sales", "mart") },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			l.create()
			damage(l)
			l.create()
			if got := l.missing(); got != nil {
				t.Errorf("missing: %v", got)
			}
			intact := ask[bool](t, l.admin, `SELECT pg_get_userbyid(datdba) = datname AND datallowconn AND rolconnlimit > 0
					AND datacl::text NOT LIKE '%{=%' AND datacl::text NOT LIKE '%,=%' AND rolcanlogin AND NOT (rolsuper OR rolcreatedb)
				FROM pg_database JOIN pg_roles ON rolname = datname WHERE datname = $1`, l.name())
			if !intact {
				t.Error("role or database is not as it was made")
			}
			closed := ask[bool](t, lakeURL(l.of()), `SELECT pg_get_userbyid(nspowner) = CURRENT_USER AND nspacl::text NOT LIKE '%{=%' AND nspacl::text NOT LIKE '%,=%'
					AND EXISTS (SELECT FROM ducklake_schema WHERE schema_name = $1) AND to_regclass('ducklake_metadata') IS NOT NULL
				FROM pg_namespace WHERE nspname = 'public'`, l.of().DefaultSchema)
			if !closed {
				t.Error("schema or lake is not as it was made")
			}
		})
	}
}

func TestFailedLakeIsMadeAgain(t *testing.T) {
	l := newLake(t)
	l.host.fail = errors.New("no space left")
	if err := l.tryCreate(); !errors.Is(err, l.host.fail) {
		t.Fatalf("Create = %v", err)
	}
	l.host.fail = nil
	l.create()
	if got := l.host.inits.Load(); got != 2 {
		t.Errorf("InitLake was called %d times", got)
	}
}

func TestWhatWasClosedIsOpenedAgain(t *testing.T) {
	l := newLake(t)
	l.create()
	sql(t, l.admin, "ALTER ROLE "+l.name()+" NOLOGIN", "ALTER DATABASE "+l.name()+" ALLOW_CONNECTIONS false")
	want := []string{"Postgres database " + l.name() + " takes no connections", "Postgres role " + l.name() + " may not log in"}
	if diff := cmp.Diff(want, l.missing()); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	l.create()
	if got := l.missing(); got != nil {
		t.Errorf("missing: %v", got)
	}
}

// A database that was ready and is gone is not replaced by an empty one.
func TestLostDatabase(t *testing.T) {
	l := newLake(t)
	l.create()
	l.object.Status = store.Status{Phase: store.Ready}
	sql(t, l.admin, "DROP DATABASE "+l.name())
	if err := l.tryCreate(); !errors.Is(err, catalog.ErrLost) {
		t.Errorf("Create = %v", err)
	}
	if got := l.missing(); len(got) != 1 {
		t.Errorf("missing: %v", got)
	}
}

func TestRenameReachesTheComments(t *testing.T) {
	l := newLake(t)
	l.create()
	l.object = object(t, l.object.ID, "revenue", "main")
	want := []string{
		"the comment on Postgres database " + l.name() + " does not name it acme/revenue yet",
		"the comment on Postgres role " + l.name() + " does not name it acme/revenue yet",
	}
	if diff := cmp.Diff(want, l.missing()); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	l.create()
	if got := l.missing(); got != nil {
		t.Errorf("missing: %v", got)
	}
}

func TestObserveSaysWhatIsMissing(t *testing.T) {
	l, whole := newLake(t), newLake(t)
	whole.create()
	whole.host.root = l.host.root
	if err := os.Mkdir(l.host.DataPath(whole.object.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := l.catalog().Observe(t.Context(), []store.Object{l.object, whole.object})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{l.object.ID: {
		"Postgres database " + l.name() + " is missing",
		"Postgres role " + l.name() + " is missing",
		"its data directory " + l.host.DataPath(l.object.ID) + " is missing",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestConcurrentCreates(t *testing.T) {
	l := newLake(t)
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = l.tryCreate() })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := l.host.inits.Load(); got != 1 {
		t.Errorf("InitLake was called %d times", got)
	}
}

func TestDelete(t *testing.T) {
	l := newLake(t)
	l.delete() // nothing there
	l.create()
	session := connect(t, lakeURL(l.of()))
	if _, err := session.Exec(t.Context(), "BEGIN; LOCK TABLE ducklake_metadata"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l.delete()
	}
	if got := len(l.missing()); got != 3 {
		t.Errorf("missing: %v", l.missing())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := session.Ping(ctx); err == nil {
		t.Error("the session lives on")
	}
	l.create() // and again
}

func TestDeleteFinishesWhatIsHalfDone(t *testing.T) {
	for name, damage := range map[string]func(l *lake){
		"draft of a database": func(l *lake) {
			sql(l.t, l.admin, "DROP DATABASE "+l.name(), "CREATE DATABASE "+l.name()+"_new OWNER "+l.name()+" TEMPLATE template0 ALLOW_CONNECTIONS false")
		},
		"role shut out": func(l *lake) { sql(l.t, l.admin, "ALTER ROLE "+l.name()+" NOLOGIN") },
		"only the role": func(l *lake) { sql(l.t, l.admin, "DROP DATABASE "+l.name()) },
		"only the data": func(l *lake) { sql(l.t, l.admin, "DROP DATABASE "+l.name(), "DROP ROLE "+l.name()) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t)
			l.create()
			damage(l)
			l.delete()
			if got := l.missing(); len(got) != 3 {
				t.Errorf("missing: %v", got)
			}
			left := ask[int](t, l.admin, "SELECT count(*) FROM pg_database WHERE datname LIKE $1", l.name()+"%")
			if left != 0 {
				t.Errorf("%d databases are left", left)
			}
		})
	}
}

// What somebody gave the role elsewhere does not keep it.
func TestDeleteReleasesWhatTheRoleHasElsewhere(t *testing.T) {
	l := newLake(t)
	l.create()
	server := pgtest.Server(t)
	other, role := server.URL("elsewhere"), l.name()
	sql(t, l.admin, "CREATE DATABASE elsewhere", "GRANT CREATE ON DATABASE elsewhere TO "+role)
	t.Cleanup(func() { sql(t, l.admin, "DROP DATABASE elsewhere WITH (FORCE)") })
	sql(t, other, "CREATE TABLE granted (y int)", "GRANT SELECT ON granted TO "+role,
		"CREATE TABLE owned AS SELECT 42 AS x", "ALTER TABLE owned OWNER TO "+role,
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO "+role)
	l.delete()
	if left := ask[int](t, l.admin, "SELECT count(*) FROM pg_roles WHERE rolname = $1", role); left != 0 {
		t.Error("the role is left")
	}
	if got := ask[int](t, other, "SELECT x FROM owned"); got != 42 {
		t.Errorf("the table has %d", got)
	}
}

// TestOrdinaryAdministrator works as a role that may make databases and roles and is no superuser.
func TestOrdinaryAdministrator(t *testing.T) {
	super := pgtest.Server(t)
	sql(t, super.URL("postgres"), "CREATE ROLE keeper LOGIN CREATEDB CREATEROLE PASSWORD 'keeper'", "GRANT CONNECT ON DATABASE postgres TO keeper")
	t.Cleanup(func() {
		sql(t, super.URL("postgres"), "REVOKE CONNECT ON DATABASE postgres FROM keeper", "DROP ROLE keeper")
	})
	keeper := super
	keeper.User, keeper.Password = "keeper", "keeper"
	t.Run("story", func(t *testing.T) {
		l := lakeBy(t, keeper.URL("postgres"))
		l.create()
		l.object = object(t, l.object.ID, "revenue", "mart")
		sql(t, super.URL("postgres"), "ALTER ROLE "+l.name()+" NOLOGIN PASSWORD 'other'")
		l.create()
		if got := l.missing(); got != nil {
			t.Errorf("missing: %v", got)
		}
		connect(t, lakeURL(l.of()))
		l.delete()
		if got := l.missing(); len(got) != 3 {
			t.Errorf("missing: %v", got)
		}
	})
}
