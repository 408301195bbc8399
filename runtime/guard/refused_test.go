package guard

import (
	"strings"
	"testing"
)

// refusedStatements are statements that must not run, by the code of their refusal. They are what
// DuckDB's own lock leaves open, attacks on authorization, and what a lake has no use for.
func refusedStatements() map[Code][]string {
	return map[Code][]string{
		BadFunction: {
			// Postgres, through the extension that serves the catalog.
			"FROM postgres_query('__ducklake_metadata_lake', 'SELECT 1')",
			"SELECT * FROM postgres_scan('host=10.0.0.5 user=x', 'public', 't')",
			"FROM system.main.postgres_scan('host=10.0.0.5', 'public', 't')",
			"FROM lake.main.postgres_query('x', 'y')",
			"FROM postgres_execute('x', 'DROP TABLE t')",
			`SELECT * FROM "postgres_scan_pushdown"('host=10.0.0.5', 'public', 't')`,
			"SELECT * FROM mysql_query('x', 'y')", "FROM sqlite_scan('x.db', 't')",
			// Files.
			"SELECT * FROM read_text('/proc/self/environ')", "SELECT * FROM read_csv('/etc/passwd')",
			"SELECT * FROM read_blob('/etc/shadow')", "FROM read_parquet('data/*.parquet')", "FROM read_json('x.json')",
			"FROM read_csv_auto('x')", "FROM read_ndjson('x')", "FROM glob('/**')", "FROM sniff_csv('x')",
			`SELECT * FROM "parquet_scan"('s3://b/x/*.parquet')`, "FROM parquet_metadata('x')", "FROM parquet_schema('x')",
			"FROM parquet_file_metadata('x')", "FROM parquet_kv_metadata('x')", "FROM parquet_bloom_probe('x', 'a', 1)",
			"FROM read_duckdb('x.db')", "FROM arrow_scan(1, 2, 3)", "FROM pandas_scan(1)", "FROM seq_scan('t')",
			"FROM arrow_scan_dumb(1, 2, 3)", "FROM python_map_function(1)",
			// SQL and tables given as text.
			"SELECT * FROM query('FROM salaries')", "SELECT * FROM query_table('salaries')",
			"FROM query_table(['a', 'b'])", "FROM json_execute_serialized_sql('{}')", "SELECT json_serialize_plan('FROM t')",
			"SELECT json_serialize_sql('FROM t')", "SELECT json_deserialize_sql('{}')", "FROM histogram('t', a)",
			"FROM histogram_values('__ducklake_metadata_lake.public.x', a)", "FROM duckdb_table_sample('t')",
			"FROM pragma_storage_info('t')", "FROM pragma_table_info('__ducklake_metadata_lake.x')", "FROM pragma_show('t')",
			// What belongs to the process and to others on it.
			"FROM duckdb_secrets()", "FROM duckdb_secrets(redact = false)", "FROM which_secret('s3://x', 's3')", "FROM duckdb_settings()",
			"SELECT path FROM duckdb_databases()", "FROM duckdb_logs()", "FROM duckdb_logs_parsed('x')", "FROM duckdb_tables()",
			"FROM duckdb_columns()", "FROM duckdb_views()", "FROM duckdb_functions()", "FROM duckdb_variables()",
			"FROM duckdb_prepared_statements()", "FROM duckdb_memory()", "FROM duckdb_temporary_files()", "FROM duckdb_extensions()",
			"FROM duckdb_external_file_cache()", "FROM pragma_database_size()", "FROM pragma_user_agent()", "FROM duckdb_dependencies()",
			"FROM enable_logging()", "FROM enable_logging(storage = 'file', storage_config = {'path': '/tmp'})", "FROM disable_logging()",
			"FROM truncate_duckdb_logs()", "FROM checkpoint('lake')", "FROM force_checkpoint()", "FROM enable_profiling()",
			"FROM test_all_types()", "FROM repeat_row(1, num_rows = 9)", "FROM summary((FROM t))",
			"SELECT current_setting('s3_secret_access_key')", "SELECT getenv('HOME')", "SELECT getvariable('x')",
			"SELECT write_log('x')", "SELECT main.current_setting('x')", "SELECT system.main.current_setting('x')",
			`SELECT "Current_Setting"('x')`, "SELECT x.current_setting() FROM t",
			"SELECT get_block_size('lake')", "SELECT pg_get_viewdef(1)", "SELECT pg_get_constraintdef(1)", "SELECT in_search_path('a', 'b')",
			"SELECT current_connection_id()", "SELECT txid_current()", "SELECT stats(a) FROM t", "SELECT current_query()",
			"SELECT pg_sleep(1e9)", "SELECT sleep_ms(1)", "SELECT nextval('s')", "SELECT currval('s')",
			"SELECT finalize(a) FROM t", "SELECT combine(a, b) FROM t", "SELECT __internal_decompress_string(1)", "SELECT make_type('x')",
			// The lake's own maintenance.
			"FROM ducklake_snapshots('lake')", "FROM lake.snapshots()", "FROM lake.table_info()", "FROM lake.set_option('x', 1)",
			"FROM ducklake_expire_snapshots('lake', older_than => now())", "FROM ducklake_cleanup_old_files('lake', cleanup_all => true)",
			"FROM ducklake_add_data_files('lake', 't', '/etc/passwd')", "FROM ducklake_table_changes('lake', 'main', 'salaries', 0, 9)",
			"FROM lake.table_insertions('t', 0, 9)", "FROM ducklake_list_files('lake', 't')", "FROM lake.merge_adjacent_files()",
			// Functions that nobody knows.
			"SELECT no_such_function(1)", "SELECT lake.main.f(1)", "FROM my_macro(1)", "SELECT read_csv('x')", "SELECT glob('x')",
			"SELECT row_number2() OVER ()", "SELECT current_setting('x') OVER ()",
			// In other statements.
			"INSERT INTO t SELECT * FROM read_text('x')", "INSERT INTO t VALUES (current_setting('x'))",
			"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = getenv('x')",
			"INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE getenv('x') DO NOTHING",
			"INSERT INTO t VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 1 WHERE getenv('x')",
			"INSERT INTO t VALUES (1) RETURNING getenv('x')", "INSERT INTO t (a) (FROM glob('x'))", "INSERT INTO t BY NAME FROM glob('x')",
			"WITH a AS (FROM glob('x')) INSERT INTO t FROM a", "WITH a AS (SELECT 1) INSERT INTO t SELECT getenv('x')",
			"UPDATE t SET a = getenv('x')", "UPDATE t SET (a, b) = (1, getenv('x'))", "UPDATE t SET a = 1 WHERE getenv('x')",
			"UPDATE t SET a = 1 FROM glob('x')", "UPDATE t SET a = 1 FROM u, (FROM glob('x'))", "UPDATE t SET a = 1 RETURNING getenv('x')",
			"UPDATE t SET a = 1 = 2 IS DISTINCT FROM getenv('x')", "UPDATE t SET a = CASE WHEN 1 THEN getenv('x') END, b = 2",
			"WITH a AS (FROM glob('x')) UPDATE t SET a = 1", "DELETE FROM t WHERE getenv('x')", "DELETE FROM t USING glob('x')",
			"DELETE FROM t RETURNING getenv('x')", "WITH a AS (FROM glob('x')) DELETE FROM t",
			"MERGE INTO t USING glob('x') AS s ON true WHEN MATCHED THEN DELETE",
			"MERGE INTO t USING s ON getenv('x') WHEN MATCHED THEN DELETE",
			"MERGE INTO t USING s ON true WHEN MATCHED AND getenv('x') THEN DELETE",
			"MERGE INTO t USING s ON true WHEN MATCHED THEN UPDATE SET a = getenv('x')",
			"MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a) VALUES (getenv('x'))",
			"MERGE INTO t USING s ON true WHEN NOT MATCHED BY SOURCE THEN UPDATE SET a = getenv('x')",
			"MERGE INTO t USING s ON true WHEN MATCHED THEN ERROR getenv('x')",
			"MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE RETURNING getenv('x')",
			"WITH a AS (FROM glob('x')) MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
			"CREATE TABLE t AS FROM glob('x')", "CREATE TABLE t AS (FROM glob('x')) WITH NO DATA", "CREATE VIEW v AS FROM glob('x')",
			"CREATE TEMP VIEW v AS SELECT getenv('x')", "CREATE OR REPLACE VIEW v (a) AS SELECT current_setting('x')",
			"CREATE TABLE t (a VARCHAR DEFAULT getenv('x'))", "CREATE TABLE t (a INTEGER CHECK (getenv('x')))",
			"CREATE TABLE t (a INTEGER, CHECK (a > getenv('x')))", "CREATE TABLE t (a INTEGER, b INTEGER AS (getenv('x')))",
			"CREATE TABLE t (a INTEGER) PARTITIONED BY (getenv(a))", "CREATE TABLE t (a INTEGER) SORTED BY (getenv(a))",
			"ALTER TABLE t ALTER a SET DEFAULT getenv('x')",
			"ALTER TABLE t ALTER a TYPE VARCHAR USING getenv('x')", "ALTER TABLE t SET PARTITIONED BY (getenv(a))",
			"EXPLAIN FROM glob('x')", "EXPLAIN ANALYZE INSERT INTO t FROM glob('x')",
		},
		BadName: {
			"SELECT * FROM '/etc/passwd'", `SELECT * FROM "/etc/passwd"`, "SELECT * FROM 'x.csv'", "FROM 's3://b/x'", "FROM 'data/*.parquet'",
			"FROM x.csv", "FROM data.parquet", `FROM "/etc".csv`, "FROM 'file:x'", `FROM lake.main."/etc/passwd"`, "FROM '~'",
			"TABLE '/etc/passwd'", "DESCRIBE '/etc/passwd'", "SUMMARIZE 'x.parquet'", "DESCRIBE FROM 'x.parquet'", "SHOW 'x.parquet'",
			"FROM __ducklake_metadata_lake.public.ducklake_data_file", "FROM __ducklake_metadata_lake.ducklake_data_file",
			`FROM "__DuckLake_Metadata_lake".public.ducklake_table`, "FROM __DUCKLAKE_METADATA_LAKE.x",
			"SELECT __ducklake_metadata_lake.x.y.z FROM t", "FROM lake.__ducklake_metadata_lake.t", "FROM t AS __ducklake_metadata_x",
			"SELECT 1 AS __ducklake_metadata_x", "SELECT NULL::__ducklake_metadata_lake.public.x", "DESCRIBE __ducklake_metadata_lake.x.y",
			"SHOW TABLES FROM __ducklake_metadata_lake", "USE __ducklake_metadata_lake", "USE __ducklake_metadata_lake.public",
			"SET schema = '__ducklake_metadata_lake'", "SET search_path = 'main,__ducklake_metadata_lake.public'",
			"INSERT INTO __ducklake_metadata_lake.public.ducklake_table VALUES (1)", "DELETE FROM __ducklake_metadata_lake.x",
			"UPDATE __ducklake_metadata_lake.x SET a = 1", "DROP TABLE __ducklake_metadata_lake.x", "TRUNCATE __ducklake_metadata_lake.x",
			"MERGE INTO __ducklake_metadata_lake.x USING s ON true WHEN MATCHED THEN DELETE", "ALTER TABLE __ducklake_metadata_lake.x ADD a INT",
			"CREATE TABLE __ducklake_metadata_lake.x (a INT)", "CREATE SCHEMA __ducklake_metadata_lake.x", "DROP SCHEMA __ducklake_metadata_lake.public",
			"CREATE VIEW v AS FROM __ducklake_metadata_lake.x", "SELECT __ducklake_metadata_lake.f(1)",
			"FROM duckdb_tables", "FROM duckdb_databases", "FROM main.duckdb_columns", "FROM DUCKDB_LOGS", `FROM "duckdb_views"`, "FROM system.main.duckdb_tables",
			"FROM sqlite_master", "FROM pragma_database_list", "FROM pg_catalog.pg_class", "FROM pg_class", "FROM pg_settings", "FROM pg_catalog.pg_settings",
			"FROM system.pg_catalog.pg_class", "FROM lake.main.duckdb_tables", "DESCRIBE duckdb_databases", "FROM duckdb_settings",
			"FROM memory.main.t", "FROM memory.t", "FROM system.x", "FROM other.main.t", "INSERT INTO memory.main.t VALUES (1)",
			"CREATE TABLE memory.main.t (a INT)", "DROP TABLE other.main.t", "UPDATE memory.t SET a = 1", "DELETE FROM system.main.t",
			"CREATE VIEW other.main.v AS SELECT 1", "ALTER TABLE memory.main.t RENAME TO u", "CREATE TEMP TABLE memory.x (a INT)",
			"CREATE SCHEMA memory.s", "CREATE SCHEMA other.s", "DROP SCHEMA system.main", "DROP SCHEMA pg_catalog", "DROP SCHEMA information_schema",
			"INSERT INTO information_schema.tables VALUES (1)", "DROP VIEW information_schema.tables", "FROM information_schema.no_such_view",
			"CREATE TABLE information_schema.t (a INT)", "FROM other.information_schema.tables", "FROM memory.information_schema.tables",
			"USE memory", "USE system", "USE other.main", "USE pg_catalog", "USE information_schema", "USE system.main", "SET schema = 'memory'",
			"SET search_path = 'main,memory.main'", "SHOW TABLES FROM memory", "SHOW TABLES FROM system.main", "SHOW TABLES FROM other.s",
			"INSERT INTO t SELECT * FROM '/etc/passwd'", "UPDATE t SET a = (FROM 'x.csv')", "DELETE FROM t USING 'x.csv'",
			"MERGE INTO t USING 'x.csv' AS s ON true WHEN MATCHED THEN DELETE", "CREATE TABLE t AS FROM 'x.csv'",
			"SELECT 1::no_such_type", "SELECT CAST(1 AS lake.main.x)", "CREATE TABLE t (a no_such_type)", "ALTER TABLE t ALTER a TYPE other.main.x",
			`INSERT INTO "x.csv" VALUES (1)`, `CREATE TABLE "/tmp/x" (a INT)`,
		},
		NotAllowed: {
			"ATTACH ':memory:' AS m", "ATTACH 'x.db'", "ATTACH 'ducklake:postgres:host=x' AS y", "ATTACH IF NOT EXISTS 'x'", "DETACH lake",
			"DETACH DATABASE __x", "DETACH memory", "COPY t TO 'x.csv'", "COPY (FROM t) TO 's3://evil/x'", "COPY t FROM '/etc/passwd'",
			"COPY FROM DATABASE lake TO m", "EXPORT DATABASE '/tmp/x'", "IMPORT DATABASE '/tmp/x'", "INSTALL httpfs", "LOAD '/tmp/evil'",
			"FORCE INSTALL x", "UPDATE EXTENSIONS (x)", "CALL postgres_execute('x', 'y')", "CALL lake.set_option('x', 1)",
			"CALL ducklake_expire_snapshots('lake')", "CALL enable_logging()", "CALL force_checkpoint()", "PRAGMA table_info('t')",
			"PRAGMA database_list", "PRAGMA show_tables", "PRAGMA memory_limit = '1TB'", "PRAGMA json_execute_serialized_sql('x')",
			"PRAGMA enable_profiling", "PRAGMA import_database('x')", "pragma version", "CHECKPOINT", "CHECKPOINT lake", "FORCE CHECKPOINT lake",
			"VACUUM", "VACUUM ANALYZE t", "ANALYZE", "ANALYZE t", "CREATE SECRET s (TYPE s3)", "CREATE PERSISTENT SECRET s (TYPE s3)",
			"CREATE OR REPLACE TEMPORARY SECRET s (TYPE postgres)", "DROP SECRET s", "DROP PERSISTENT SECRET s", "CREATE MACRO m() AS 1",
			"CREATE MACRO m() AS TABLE FROM t", "CREATE FUNCTION f(a) AS a + 1", "CREATE TEMP MACRO m() AS 1", "CREATE OR REPLACE MACRO upper(a) AS 1",
			"CREATE TYPE e AS ENUM ('a')", "CREATE SEQUENCE s", "CREATE TEMP SEQUENCE s", "CREATE INDEX i ON t (a)", "CREATE UNIQUE INDEX i ON t (a)",
			"DROP MACRO m", "DROP FUNCTION f", "DROP TYPE e", "DROP SEQUENCE s", "DROP INDEX i", "DROP MACRO TABLE m", "ALTER SEQUENCE s OWNED BY t",
			"ALTER DATABASE lake SET x = 1", "CREATE DATABASE d", "DROP DATABASE lake", "COMMENT ON TABLE t IS 'x'", "COMMENT ON COLUMN t.a IS 'x'",
			"PREPARE p AS SELECT 1", "PREPARE p AS FROM salaries", "EXECUTE p", "EXECUTE p(1)", "DEALLOCATE p", "DEALLOCATE ALL",
			"ALTER TABLE t ADD COLUMN a VARCHAR DEFAULT getenv('x')", "GRANT ALL ON t TO u", "SECRETS", "SELEC 1", "EXPLAIN COPY t TO 'x'", "EXPLAIN CALL f()", "EXPLAIN PRAGMA version", "EXPLAIN ANALYZE COPY t TO 'x'",
			"EXPLAIN (FORMAT json) EXPORT DATABASE 'x'", "EXPLAIN EXPLAIN SELECT 1", "EXPLAIN DROP TABLE t", "EXPLAIN BEGIN", "EXPLAIN CREATE TABLE t (a INT)",
			"EXPLAIN (VERBOSE) SELECT 1", "EXPLAIN", "EXPLAIN VERBOSE SELECT 1", "EXPLAIN (FORMAT json", "WITH a AS (SELECT 1) CREATE TABLE t AS FROM a",
			"WITH a AS (SELECT 1) DROP TABLE t", "WITH a AS (SELECT 1) TRUNCATE t", "WITH a AS (SELECT 1) COPY a TO 'x'", "WITH a AS (SELECT 1) CALL f()",
			"SHOW ALL TABLES", "SHOW DATABASES", "SHOW SCHEMAS", "SHOW VARIABLES", "DESCRIBE", "SHOW", "FROM (SHOW DATABASES)", "FROM (SHOW ALL TABLES)",
			"INSERT INTO t FROM (SHOW DATABASES)", "PIVOT t ON a", "PIVOT t ON a USING sum(b)", "FROM (SELECT 1), (PIVOT t ON a)",
			"CREATE TABLE x AS PIVOT t ON a", "WITH x AS (PIVOT t ON a) FROM x",
			"CREATE TABLE t (a INT) WITH (x = 1)", "CREATE UNLOGGED TABLE t (a INT)", "CREATE RECURSIVE VIEW v (a) AS SELECT 1",
			"CREATE TABLE t (a INT USING COMPRESSION rle)",
			"UPDATE ONLY t SET a = 1", "DELETE FROM ONLY (t)", "DELETE FROM ONLY t", "TRUNCATE ONLY t", "MERGE INTO ONLY t USING s ON true WHEN MATCHED THEN DELETE", "UPDATE t * SET a = 1", "ALTER TABLE ONLY t ADD a INT", "INSERT INTO 't' VALUES (1)",
			"ALTER TABLE t SET (x = 1)",
			"INSERT INTO t OVERRIDING USER VALUE SELECT 1", "ALTER SCHEMA s RENAME TO x",
			"BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN READ ONLY, READ WRITE", "COMMIT AND CHAIN", "ROLLBACK TO SAVEPOINT x", "SAVEPOINT x",
			"RELEASE x", "LOCK TABLE t", "DISCARD ALL", "LISTEN x", "DO 'x'", "CREATE TRIGGER x", "CREATE USER x", "USE",
		},
		BadSetting: {
			"SET enable_external_access = true", "SET GLOBAL memory_limit = '1TB'", "SET threads = 99", "SET lock_configuration = false",
			"SET VARIABLE x = 1", "SET VARIABLE x = (FROM salaries)", "SET LOCAL schema = 'main'", "SET s3_secret_access_key = 'x'", "SET custom_extension_repository = 'x'",
			"SET TimeZone = 'Europe/Berlin'", "SET TIME ZONE 'America/New_York'", "SET client_encoding = 'latin1'", "SET schema = (SELECT 'main')",
			"SET search_path = main, memory", `SET search_path = 'a,"memory"'`, "SET schema = E'mem\\x6fry'", "SET schema = 'a.b.c'", "SET schema = concat('a', 'b')",
			"RESET ALL", "RESET threads", "RESET lock_configuration", "RESET SESSION schema", "SET schema FROM CURRENT", "SET statement_timeout = 1", "SET schema",
			"SET enable_profiling = 'json'", "SET profile_output = '/tmp/x'", "SET SESSION threads = 3", "SET standard_conforming_strings = off",
		},
		Multiple: {
			"", " ", ";", "-- nothing", "/* nothing */;", "SELECT 1; SELECT 2", "SELECT 1; DELETE FROM events", "BEGIN; COMMIT", "SELECT 1;; DROP TABLE t;",
			"SELECT ';' ; DROP TABLE t", "INSERT INTO t VALUES (1); DETACH lake", "SELECT 1; PRAGMA version", "SELECT $$;$$; LOAD x", "SELECT 'a\\'; DROP TABLE t; --'",
			"SELECT 1 /* /* ; */ ; DROP TABLE t; */ ; DROP TABLE u", "SELECT 1--\r; DROP TABLE t", "EXPLAIN SELECT 1; DROP TABLE t",
		},
	}
}

func TestRefused(t *testing.T) {
	g := newGuard(t)
	s := owner()
	s.Permissions.Admin = true // not even an administrator
	s.Prepared = true
	count := 0
	for want, list := range refusedStatements() {
		for _, sql := range list {
			count++
			if _, err := g.Check(t.Context(), sql, s); code(err) != string(want) {
				t.Errorf("%s: got %s (%v), want %s", sql, code(err), err, want)
			}
		}
	}
	t.Logf("%d statements refused", count)
}

func TestSyntaxErrors(t *testing.T) {
	g := newGuard(t)
	tests := map[string]string{ // statement: part of the message
		"SELECT":                   "SELECT clause without selection list",
		"SELECT FROM WHERE":        "syntax error at or near \"WHERE\"",
		"INSERT INTO t VALUES (1":  "syntax error at end of input",
		"INSERT t VALUES (1)":      "syntax error at or near \"t\"",
		"UPDATE t":                 "syntax error at end of input",
		"CREATE TABLE t":           "syntax error at end of input",
		"CREATE TABLE t (a INT,,)": "syntax error at or near \",\"",
		"SELECT 'open":             "string that is not closed",
		"SELECT /* open":           "comment that is not closed",
		"SELECT \"open":            "quoted name that is not closed",
		"SELECT 1)":                "syntax error at or near \")\"",
		"WITH a AS (SELECT 1)":     "syntax error at end of input",
		"WITH a AS (INSERT INTO t VALUES (1)) FROM a": "A CTE needs a SELECT",
		"SELECT 1\x00":      "NUL byte",
		"SELECT '\xff'":     "not UTF-8",
		"1":                 "syntax error",
		"SELECT U&'\\0061'": "U&",
		"SELECT ?, $a":      "Mixing named and positional parameters",
	}
	for sql, want := range tests {
		s := owner()
		s.Prepared = true
		_, err := g.Check(t.Context(), sql, s)
		if code(err) != "syntax" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v (%s), want a syntax error with %q", sql, err, code(err), want)
		}
	}
}
