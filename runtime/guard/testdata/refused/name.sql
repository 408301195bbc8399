# Names: files, DuckLake's metadata, system views, other databases.
SELECT * FROM '/etc/passwd'
SELECT * FROM "/etc/passwd"
SELECT * FROM 'x.csv'
FROM 's3://b/x'
FROM 'data/*.parquet'
FROM x.csv
FROM data.parquet
FROM "/etc".csv
FROM 'file:x'
FROM lake.main."/etc/passwd"
FROM '~'
TABLE '/etc/passwd'
DESCRIBE '/etc/passwd'
SUMMARIZE 'x.parquet'
DESCRIBE FROM 'x.parquet'
SHOW 'x.parquet'
FROM __ducklake_metadata_lake.public.ducklake_data_file
FROM __ducklake_metadata_lake.ducklake_data_file
FROM "__DuckLake_Metadata_lake".public.ducklake_table
FROM __DUCKLAKE_METADATA_LAKE.x
SELECT __ducklake_metadata_lake.x.y.z FROM t
FROM lake.__ducklake_metadata_lake.t
FROM t AS __ducklake_metadata_x
SELECT 1 AS __ducklake_metadata_x
SELECT NULL::__ducklake_metadata_lake.public.x
DESCRIBE __ducklake_metadata_lake.x.y
SHOW TABLES FROM __ducklake_metadata_lake
USE __ducklake_metadata_lake
USE __ducklake_metadata_lake.public
SET schema = '__ducklake_metadata_lake'
SET search_path = 'main,__ducklake_metadata_lake.public'
INSERT INTO __ducklake_metadata_lake.public.ducklake_table VALUES (1)
DELETE FROM __ducklake_metadata_lake.x
UPDATE __ducklake_metadata_lake.x SET a = 1
DROP TABLE __ducklake_metadata_lake.x
TRUNCATE __ducklake_metadata_lake.x
MERGE INTO __ducklake_metadata_lake.x USING s ON true WHEN MATCHED THEN DELETE
ALTER TABLE __ducklake_metadata_lake.x ADD a INT
CREATE TABLE __ducklake_metadata_lake.x (a INT)
CREATE SCHEMA __ducklake_metadata_lake.x
DROP SCHEMA __ducklake_metadata_lake.public
CREATE VIEW v AS FROM __ducklake_metadata_lake.x
SELECT __ducklake_metadata_lake.f(1)
FROM duckdb_tables
FROM duckdb_databases
FROM main.duckdb_columns
FROM DUCKDB_LOGS
FROM "duckdb_views"
FROM system.main.duckdb_tables
FROM sqlite_master
FROM pragma_database_list
FROM pg_catalog.pg_class
FROM pg_class
FROM pg_settings
FROM pg_catalog.pg_settings
FROM system.pg_catalog.pg_class
FROM lake.main.duckdb_tables
DESCRIBE duckdb_databases
FROM duckdb_settings
FROM memory.main.t
FROM memory.t
FROM system.x
FROM other.main.t
INSERT INTO memory.main.t VALUES (1)
CREATE TABLE memory.main.t (a INT)
DROP TABLE other.main.t
UPDATE memory.t SET a = 1
DELETE FROM system.main.t
CREATE VIEW other.main.v AS SELECT 1
ALTER TABLE memory.main.t RENAME TO u
CREATE TEMP TABLE memory.x (a INT)
CREATE SCHEMA memory.s
CREATE SCHEMA other.s
DROP SCHEMA system.main
DROP SCHEMA pg_catalog
DROP SCHEMA information_schema
INSERT INTO information_schema.tables VALUES (1)
DROP VIEW information_schema.tables
FROM information_schema.no_such_view
CREATE TABLE information_schema.t (a INT)
FROM other.information_schema.tables
FROM memory.information_schema.tables
USE memory
USE system
USE other.main
USE pg_catalog
USE information_schema
USE system.main
SET schema = 'memory'
SET search_path = 'main,memory.main'
SHOW TABLES FROM memory
SHOW TABLES FROM system.main
SHOW TABLES FROM other.s
INSERT INTO t SELECT * FROM '/etc/passwd'
UPDATE t SET a = (FROM 'x.csv')
DELETE FROM t USING 'x.csv'
MERGE INTO t USING 'x.csv' AS s ON true WHEN MATCHED THEN DELETE
CREATE TABLE t AS FROM 'x.csv'
SELECT 1::no_such_type
SELECT CAST(1 AS lake.main.x)
CREATE TABLE t (a no_such_type)
ALTER TABLE t ALTER a TYPE other.main.x
INSERT INTO "x.csv" VALUES (1)
CREATE TABLE "/tmp/x" (a INT)
CREATE SCHEMA lake
CREATE SCHEMA temp
CREATE SCHEMA lake.system
ALTER TABLE t RENAME TO "../x"
ALTER TABLE t RENAME TO "x.csv"
ALTER VIEW v RENAME TO "/etc/passwd"
