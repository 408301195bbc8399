# What has to run and only DuckLake can bind, or nobody runs.
CREATE TABLE t (a INTEGER, d DATE) PARTITIONED BY (year(d), a)
CREATE TABLE t PARTITIONED BY (a) AS SELECT 1 AS a
ALTER TABLE events SET PARTITIONED BY (n)
ALTER TABLE events RESET PARTITIONED BY
ALTER TABLE events SET SORTED BY (n DESC, id)
ALTER TABLE events RESET SORTED BY
FROM orders AT (VERSION => 3)
SELECT * FROM orders AT (TIMESTAMP => now() - INTERVAL 1 DAY) WHERE id > 1
SET TimeZone = 'UTC'
SET application_name = 'psql'
SET TIME ZONE 'UTC'
SET datestyle = 'ISO'
SET client_encoding TO 'UTF8'
