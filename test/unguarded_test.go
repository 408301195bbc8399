package test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
)

// TestAttacksWithoutGuard runs every statement as it is sent: what is behind the guard has to hold back
// other tenants' data, the host's files, rights of Postgres's superuser and qod's secrets by itself.
func TestAttacksWithoutGuard(t *testing.T) {
	i, s := besieged(t, buildOnce(t, "qod-noguard", "duckdb_arrow,noguard"))
	neighbour := i.loginAs(t, s.Flight, "neighbour@globex/vault", secrets["loader_password"])
	neighbour.run(t, "CREATE TABLE inlined AS SELECT 'NEIGHBOURCANARY' AS secret")
	neighbour.run(t, "CREATE TABLE filed AS SELECT 'NEIGHBOURCANARY' || i AS secret FROM range(20000) r(i)")
	w := i.surroundings(t)
	if got := i.login(t, s.Flight, "analyst").value(t, "SELECT count(*) FROM salaries"); got != "2" {
		t.Fatalf("the guard is on: %s", got)
	}
	if got := i.login(t, s.Flight, "analyst").value(t, "FROM postgres_query('"+lakeCatalog+"', 'SELECT 7 AS a')"); got != "7" {
		t.Fatalf("Postgres is not asked: %s", got)
	}
	for _, session := range append(unguarded(t), w.hostFiles(), w.otherFiles(), w.superuser(), w.databases()) {
		ear := &listener{}
		c := i.login(t, s.Flight, "analyst", grpc.WithStatsHandler(ear))
		ear.take() // the bearer is the client's own
		for _, a := range session {
			_, err := c.within(10*time.Second, a.sql)
			if err == nil && a.fails {
				t.Errorf("%s\nruns", a.sql)
			}
			w.judge(t, a.sql, ear.take())
		}
		if _, err := i.login(t, s.Flight, "analyst").within(10*time.Second, "SELECT 1"); err != nil {
			t.Fatalf("the node answers nothing any more: %v; after %v", err, session)
		}
	}
	if got := neighbour.value(t, "SELECT count(*) FROM filed"); got != "20000" {
		t.Errorf("the neighbour has %s rows", got)
	}
	if got := i.psql(t, "SELECT string_agg(rolname, ',') FROM pg_roles WHERE rolsuper OR rolcreatedb OR rolcreaterole"); got != "qod" {
		t.Errorf("Postgres's mighty roles are %s", got)
	}
}

// attempt is a statement, and whether it must not run, since it would have reached something then.
type attempt struct {
	sql   string
	fails bool
}

func failing(statements ...string) []attempt {
	var all []attempt
	for _, sql := range statements {
		all = append(all, attempt{sql, true})
	}
	return all
}

// unguarded is the statements of attacks that mean to leave the lake, but for those that only break the
// tenant's own node or lake, after which nothing could be seen any more.
func unguarded(t *testing.T) [][]attempt {
	t.Helper()
	hostFile := regexp.MustCompile(`/etc/|/proc/`)
	stops := regexp.MustCompile(`^DETACH |txid_current|storage = 'file'|(DELETE FROM|DROP TABLE) .*ducklake_table`)
	var all [][]attempt
	for _, section := range sections(t) {
		if !strings.HasPrefix(section.Name, "escapes/") {
			continue
		}
		for _, session := range section.Sessions {
			var list []attempt
			for _, a := range session {
				if !stops.MatchString(a.SQL) {
					list = append(list, attempt{a.SQL, hostFile.MatchString(a.SQL)})
				}
			}
			all = append(all, list)
		}
	}
	return all
}

// surroundings is what lies around the analyst's node and is out of its reach.
type surroundings struct {
	state, socket string
	own, other    place
	file          string            // of the neighbour's table
	manager       int               // the process that serves
	secrets       map[string]string // of the control plane, by the file that holds them
}

// place is where a tenant's data lies: a database of Postgres, whose owner has its name, and a directory.
type place struct{ database, data string }

func (i *installation) surroundings(t *testing.T) surroundings {
	t.Helper()
	w := surroundings{
		state: i.state(), socket: filepath.Join(i.root, "run", "pg"), manager: i.serves(t)[0].PID,
		own: i.place(t, "acme/lake"), other: i.place(t, "globex/vault"), secrets: map[string]string{},
	}
	for _, name := range []string{"master.key", "postgres.password", "tls/edge.key"} {
		w.secrets[name] = strings.TrimSpace(readFile(t, i.state(name)))
	}
	found, err := filepath.Glob(filepath.Join(w.other.data, "main", "filed", "*.parquet"))
	if err != nil || len(found) == 0 {
		t.Fatalf("the neighbour has no file: %v", err)
	}
	w.file = found[0]
	if _, err := os.Stat(filepath.Join(w.socket, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	return w
}

func (i *installation) place(t *testing.T, key string) place {
	t.Helper()
	id := i.psql(t, "SELECT id::text FROM qodstate_object WHERE kind = 'tenant_db' AND key = '"+key+"'")
	return place{
		database: i.psql(t, "SELECT datname::text FROM pg_database WHERE shobj_description(oid, 'pg_database') LIKE '%"+id+"%'"),
		data:     i.state("data", id, "files"),
	}
}

// outOfReach is in no answer, whatever the statement: the neighbour's data, lines of /etc/passwd and
// /etc/shadow, verifiers of passwords, keys, environments, and what a program on the host would print.
var outOfReach = regexp.MustCompile(`NEIGHBOURCANARY\d*|root:[^:\s]*:\d+:|SCRAM-SHA-256\$\d+:|\$argon2id\$v|PRIVATE KEY|uid=\d+\(|QOD_NODE_ID=|QOD_VAR_`)

// judge looks for what is out of reach in what a statement brought.
func (w surroundings) judge(t *testing.T, sql, received string) {
	t.Helper()
	if found := outOfReach.FindString(received); found != "" {
		t.Errorf("%s\nshows %q", sql, found)
	}
	for name, secret := range w.secrets {
		if strings.Contains(received, secret) {
			t.Errorf("%s\nshows what is in %s", sql, name)
		}
	}
}

// lakeCatalog is the catalog of the analyst's lake in its node.
const lakeCatalog = "__ducklake_metadata_lake"

// hostFiles asks for files of the host and of the control plane, straight and round corners.
func (w surroundings) hostFiles() []attempt {
	all := failing("FROM '/etc/passwd'", "FROM glob('/etc/*')", "SELECT getenv('QOD_NODE_ID')", "COPY (SELECT 1) TO '/etc/qod-was-here'",
		"ATTACH '/etc/passwd' AS etc", "LOAD '/etc/passwd'", "FROM sniff_csv('/etc/passwd')",
		fmt.Sprintf("COPY (SELECT 1) TO '%s/../out.csv'", w.own.data))
	for _, file := range []string{
		"/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/1/environ", fmt.Sprintf("/proc/%d/environ", w.manager), "/proc/self/maps",
		w.state + "/master.key", w.state + "/data/../master.key", w.own.data + "/../../../master.key", w.state + "/tls/edge.key",
	} {
		all = append(all, failing("SELECT content FROM read_text('"+file+"')", "SELECT content FROM read_blob('"+file+"')",
			"FROM read_csv('"+file+"', header = false, columns = {'a': 'VARCHAR'}, delim = '|')")...)
	}
	return all
}

// otherFiles asks for the neighbour's files, also by what the analyst's own lake says of its files.
func (w surroundings) otherFiles() []attempt {
	all := failing(
		fmt.Sprintf("FROM glob('%s/**')", w.other.data), fmt.Sprintf("FROM read_parquet('%s')", w.file), fmt.Sprintf("FROM read_blob('%s')", w.file),
		fmt.Sprintf("FROM read_parquet('%s/../../%s')", w.own.data, strings.TrimPrefix(w.file, w.state+"/data/")),
		fmt.Sprintf("COPY (SELECT 1) TO '%s/x.parquet'", w.other.data), fmt.Sprintf("ATTACH '%s/x.db' AS x", w.other.data))
	for _, sql := range []string{
		fmt.Sprintf("ATTACH 'ducklake:%s/m.ducklake' AS mine (DATA_PATH '%s/')", w.own.data, w.other.data),
		"CREATE TABLE mine.filed (secret VARCHAR)", "CREATE TABLE mine.written AS FROM range(20000)",
		fmt.Sprintf("CALL ducklake_add_data_files('mine', 'filed', '%s')", w.file), "FROM mine.filed",
		"CREATE TABLE lake.main.filed AS SELECT i::VARCHAR AS secret FROM range(20000) r(i)",
		fmt.Sprintf("CALL ducklake_add_data_files('lake', 'filed', '%s')", w.file),
		fmt.Sprintf("CALL postgres_execute('%s', 'UPDATE ducklake_data_file SET path = ''%s'', path_is_relative = false')", lakeCatalog, w.file),
		"SELECT min(secret) FROM lake.main.filed", "FROM lake.main.filed WHERE secret LIKE 'N%'",
		fmt.Sprintf("UPDATE %s.public.ducklake_metadata SET value = '%s/' WHERE key = 'data_path'", lakeCatalog, w.other.data),
		"CREATE TABLE lake.main.written AS FROM range(20000)",
		fmt.Sprintf("UPDATE %s.public.ducklake_metadata SET value = '%s/' WHERE key = 'data_path'", lakeCatalog, w.own.data),
	} {
		all = append(all, attempt{sql: sql})
	}
	return all
}

// superuser asks Postgres, as the role of the lake, for what only its superuser may do.
func (w surroundings) superuser() []attempt {
	var all []attempt
	for _, sql := range []string{
		"SELECT pg_read_file(''/etc/passwd'')", "SELECT pg_read_binary_file(''/etc/shadow'')", "SELECT pg_ls_dir(''/etc/'')", "SELECT lo_import(''/etc/passwd'')",
		"SELECT pg_stat_file(''/etc/passwd'')", "SELECT rolpassword FROM pg_authid", "SELECT passwd FROM pg_shadow", "SELECT current_setting(''data_directory'')",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ''qod''", "SELECT set_config(''session_authorization'', ''qod'', false)",
	} {
		all = append(all, failing("FROM postgres_query('"+lakeCatalog+"', '"+sql+"')")...)
	}
	for _, sql := range []string{
		"COPY (SELECT 1) TO PROGRAM ''id''", "CREATE TABLE got (line text); COPY got FROM PROGRAM ''id''", "CREATE TABLE got (line text); COPY got FROM ''/etc/passwd''",
		"COPY (SELECT 1) TO ''/etc/qod-was-here''", "ALTER ROLE CURRENT_USER SUPERUSER", "COMMIT; ALTER ROLE CURRENT_USER SUPERUSER", "COMMIT; CREATE DATABASE evil",
		"CREATE ROLE evil SUPERUSER", "COMMIT; CREATE ROLE evil", "SET ROLE qod", "SET SESSION AUTHORIZATION qod", "GRANT qod TO CURRENT_USER",
		"GRANT pg_execute_server_program TO CURRENT_USER", "CREATE EXTENSION dblink", "CREATE EXTENSION postgres_fdw", "CREATE EXTENSION file_fdw",
		"CREATE FUNCTION run(text) RETURNS int LANGUAGE c AS ''libc.so.6'', ''system''", "CREATE FUNCTION run() RETURNS int LANGUAGE internal AS ''pg_reload_conf''",
		"LOAD ''/etc/passwd''", "COMMIT; ALTER SYSTEM SET archive_command = ''id''", "COMMIT; DROP DATABASE " + w.other.database,
		"ALTER ROLE " + w.other.database + " PASSWORD ''known''", "SELECT lo_export(lo_creat(-1), ''/etc/qod-was-here'')",
	} {
		all = append(all, failing("CALL postgres_execute('"+lakeCatalog+"', '"+sql+"')")...)
	}
	return all
}

// databases asks for the other databases of the same Postgres, at last with a password that is known: the
// role of a lake can give itself one.
func (w surroundings) databases() []attempt {
	var all []attempt
	ask := func(login string) {
		for _, table := range []string{"'public', 'inlined'", "'public', 'qodstate_secret'", "'public', 'ducklake_metadata'", "'pg_catalog', 'pg_class'"} {
			all = append(all, failing("FROM postgres_scan('"+login+"', "+table+")")...)
		}
		all = append(all, failing("CALL postgres_attach('"+login+"')", "ATTACH '"+login+"' AS p (TYPE postgres)",
			"ATTACH 'ducklake:postgres:"+login+"' AS d (DATA_PATH '"+w.other.data+"/')")...)
	}
	host := "host=" + w.socket + " "
	for _, database := range []string{"qod", w.other.database} {
		for _, user := range []string{"qod", "postgres", w.own.database, w.other.database} {
			ask(host + "user=" + user + " dbname=" + database)
		}
		ask("dbname=" + database)
	}
	ask(host + "user=qod dbname=qod passfile=" + w.state + "/postgres.password")
	known := host + "password=known user=" + w.own.database + " dbname="
	all = append(all, attempt{sql: "CALL postgres_execute('" + lakeCatalog + "', 'ALTER ROLE CURRENT_USER PASSWORD ''known''')"},
		attempt{sql: "FROM postgres_scan('" + known + w.own.database + "', 'public', 'ducklake_metadata')"})
	for _, database := range []string{"qod", "postgres", "template1", w.other.database} {
		ask(known + database)
	}
	return all
}
