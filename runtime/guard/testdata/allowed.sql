# What has to run. All of it binds in a database with lake.sql.
SELECT 1
VALUES (1, 'a'), (2, 'b')
FROM orders
TABLE orders
(SELECT 1)
((SELECT 1) UNION ALL (SELECT 2)) ORDER BY 1
/* x */ (SELECT 1) -- ;DROP TABLE events
select * from orders;
;;SELECT 1;;
"SELECT\u00a0*\u2003FROM\u200borders\ufeff"
FROM orders SELECT region, sum(amount) GROUP BY ALL ORDER BY ALL DESC LIMIT 3 OFFSET 1
FROM orders LIMIT 10%
SELECT o.id, "o"."region" AS "a b" FROM lake.main.orders AS o WHERE o.amount > 1.5e2 AND region IN ('EU', 'US')
FROM lake.orders
FROM main.orders
FROM s.events
FROM lake.s.events
FROM temp.mine
FROM temp.main.mine
FROM mine
SELECT * EXCLUDE (card) REPLACE (upper(region) AS region) RENAME (id AS key) FROM orders
SELECT COLUMNS('a.*'), COLUMNS(c -> c LIKE 'r%') FROM orders
SELECT region, count(*) FILTER (WHERE amount > 1), sum(amount) OVER w FROM orders GROUP BY region, amount WINDOW w AS (PARTITION BY region)
SELECT row_number() OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), lag(id, 1, 0) OVER (ORDER BY id) FROM orders
SELECT * FROM orders QUALIFY rank() OVER (PARTITION BY region ORDER BY amount) = 1
SELECT DISTINCT ON (region) * FROM orders
SELECT region, grouping(region) FROM orders GROUP BY GROUPING SETS ((region), ()) HAVING count(*) > 0
SELECT d FROM orders GROUP BY CUBE (d), ROLLUP (d)
WITH salaries AS (SELECT 1 AS a) SELECT * FROM salaries
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) FROM t
WITH a AS MATERIALIZED (FROM orders), b AS NOT MATERIALIZED (FROM a) SELECT * FROM b
WITH RECURSIVE t(k, v) USING KEY (k) AS (SELECT 1, 2 UNION SELECT k, v + 1 FROM t WHERE v < 5) FROM t
SELECT * FROM orders o JOIN events e USING (id) LEFT JOIN s.events x ON x.id = e.id CROSS JOIN one
FROM orders SEMI JOIN events USING (id)
FROM orders NATURAL JOIN events
FROM orders ASOF JOIN events ON orders.id >= events.id
FROM orders POSITIONAL JOIN events
SELECT (SELECT max(n) FROM events WHERE events.id = orders.id), EXISTS (FROM one), id IN (SELECT a FROM one), id = ANY (SELECT a FROM one) FROM orders
FROM orders, LATERAL (SELECT id + 1 AS next)
FROM (VALUES (1, 'a')) AS v(x, y)
FROM range(3) AS r(i), generate_series(1, 2)
FROM unnest([1, 2]) WITH ORDINALITY
SELECT unnest(tags), unnest({'a': 1}), [x + 1 FOR x IN [1, 2] IF x > 1], list_transform([1], lambda x: x + 1), list_reduce([1, 2], lambda a, b: a + b) FROM orders
SELECT {'a': 1}.a, [1, 2][1], [1, 2][1:2], map {'k': 1}['k'], (1, 2), row(1, 2), tags[1:-1] FROM orders
SELECT j->'$.a', j->>'b', json_extract(j, '$.x'), to_json(id) FROM orders
SELECT CASE WHEN id > 1 THEN 'a' ELSE 'b' END, coalesce(card, 'x'), nullif(id, 1), if(id > 1, 2, 3), ifnull(card, ''), greatest(1, 2) FROM orders
SELECT CAST(id AS BIGINT), id::VARCHAR, TRY_CAST(card AS INTEGER), DATE '2024-01-01' + INTERVAL 3 DAY, TIMESTAMP '2024-01-01 00:00:00', TRY(1 / 0) FROM orders
SELECT 'x'::ENUM ('x', 'y'), NULL::STRUCT(a INTEGER, b VARCHAR[]), NULL::MAP(INTEGER, VARCHAR), NULL::UNION(a INTEGER), 1::DECIMAL(5, 2), NULL::INTEGER[3], 'x' COLLATE NOCASE
SELECT extract(year FROM d), date_trunc('month', d), d AT TIME ZONE 'UTC', strftime(d, '%Y'), now(), current_date, today(), age(d), epoch(d) FROM orders
SELECT region LIKE 'a%', region NOT ILIKE 'b', region SIMILAR TO 'c', region ~ 'd', region GLOB 'e', regexp_matches(region, 'f'), substring(region FROM 1 FOR 2), trim(BOTH 'x' FROM region), position('a' IN region) FROM orders
SELECT id BETWEEN 1 AND 2, id IS NULL, id IS NOT DISTINCT FROM 3, NOT true, -id, +id, ~id, id ^ 2, id ** 2, id // 2, id % 2, id & 1, id | 1, id << 1, id <> 1, @id, 4! FROM orders
SELECT string_agg(region, ',' ORDER BY id), array_agg(DISTINCT region), approx_count_distinct(id), quantile_cont(id, 0.5), arg_max(id, amount), median(id), mode(region) FROM orders
SELECT random() < 2, uuid() IS NOT NULL, hash(1), md5('x'), version(), current_user, current_schema(), current_database(), pg_typeof(1), format('{}', 1), printf('%d', 1)
PIVOT orders ON region IN ('EU', 'US') USING sum(amount) GROUP BY d
FROM orders PIVOT (sum(amount) FOR region IN ('EU'))
UNPIVOT events ON id, n INTO NAME k VALUE v
FROM events UNPIVOT INCLUDE NULLS (v FOR k IN (id, n))
FROM orders TABLESAMPLE 10%
FROM orders USING SAMPLE reservoir(5 ROWS) REPEATABLE (1)
SELECT 1 AS a UNION ALL BY NAME SELECT 2 AS a EXCEPT SELECT 3 INTERSECT SELECT 4
"SELECT E'a\\'b', $$it's$$, 'it''s', $t$x$t$, 1_000, .5, 'a'\n'b'"
SELECT error('x') FROM one WHERE false
SELECT o FROM orders o
SELECT 1 a, b: 2
FROM o: orders SELECT o.id
SELECT list_sort(list_distinct([1, 2])), array_length([1])
SELECT id FROM orders ORDER BY (SELECT max(a) FROM one), id NULLS LAST LIMIT (SELECT 3)
DESCRIBE orders
DESC orders
DESCRIBE SELECT 1 AS a
SUMMARIZE orders
SUMMARIZE SELECT 1
SHOW orders
SHOW TABLES
SHOW TABLES FROM lake
SHOW TABLES FROM lake.s
SELECT * FROM information_schema.tables WHERE table_schema = 'main'
FROM information_schema.columns
FROM system.information_schema.schemata
FROM INFORMATION_SCHEMA.TABLES
FROM (SHOW TABLES)
FROM (DESCRIBE orders)
FROM (SUMMARIZE orders)
SELECT '__ducklake_metadata_lake', 'read_csv(''x'')'
SELECT 'ATTACH x; DROP TABLE y'
SELECT 1 AS "read_csv('/etc/passwd')"
SELECT 1 AS glob, 2 AS copy, 3 AS attach
SELECT 1 -- ; DETACH lake
SELECT 1 /* FROM read_text('x') */
WITH duckdb_settings AS (SELECT 1) FROM duckdb_settings
WITH pg_class AS (SELECT 1) FROM pg_class
INSERT INTO events VALUES (1, 2, 'x'), (2, DEFAULT, NULL)
INSERT INTO events (id, n) SELECT id, 1 FROM orders
INSERT INTO lake.main.events BY NAME SELECT 1 AS id, 'x' AS note
INSERT INTO events BY POSITION SELECT 1, 2, 'x'
INSERT INTO events DEFAULT VALUES RETURNING *
INSERT INTO events AS e (id) VALUES (1) RETURNING id + 1 AS next, note
INSERT OR REPLACE INTO events VALUES (1, 2, 'x')
INSERT OR IGNORE INTO events (id) (SELECT 1)
INSERT INTO events (id) (VALUES (1))
INSERT INTO events (FROM events)
INSERT INTO events FROM s.events
INSERT INTO events VALUES (1, 2, 'x') ON CONFLICT DO NOTHING
INSERT INTO events VALUES (1, 2, 'x') ON CONFLICT (id) DO UPDATE SET n = excluded.n + 1, note = 'y' WHERE excluded.n > 1 RETURNING id
WITH x AS (SELECT 1 AS id) INSERT INTO events (id) SELECT id FROM x
INSERT INTO events (id) WITH x AS (SELECT 1 AS id) SELECT id FROM x
INSERT INTO events (id) SELECT id FROM orders JOIN one ON a = id
INSERT INTO mine VALUES (1)
INSERT INTO temp.mine SELECT 1
INSERT INTO events (id, n) SELECT CASE WHEN 1 = 1 THEN 2 END, 3
UPDATE events SET n = n + 1 WHERE id = 1
UPDATE events AS e SET n = DEFAULT, note = 'x' FROM orders o, one WHERE e.id = o.id AND o.card IS DISTINCT FROM 'y' RETURNING e.id
UPDATE events SET n = CASE WHEN id > 1 THEN 2 ELSE 3 END, note = (SELECT max(region) FROM orders)
UPDATE main.events e SET n = 1
WITH x AS (SELECT 1 AS id) UPDATE events SET n = 2 WHERE id IN (FROM x)
UPDATE events SET n = 1, note = note || 'x',
UPDATE events SET n = least(1, 2) WHERE note IS DISTINCT FROM 'a'
DELETE FROM events
DELETE FROM events WHERE id = 1 RETURNING *
DELETE FROM events AS e USING orders o WHERE e.id = o.id
WITH x AS (SELECT 1 AS id) DELETE FROM events WHERE id IN (FROM x)
TRUNCATE events
TRUNCATE TABLE lake.main.events
MERGE INTO events AS t USING (SELECT 1 AS id, 2 AS n) AS s ON t.id = s.id WHEN MATCHED AND s.n > 1 THEN UPDATE SET n = s.n WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)
MERGE INTO events USING s.events AS s USING (id) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED BY TARGET THEN INSERT BY NAME
MERGE INTO events t USING orders o ON CASE WHEN t.id = o.id THEN true END WHEN MATCHED THEN UPDATE SET n = CASE WHEN 1 = 1 THEN 2 END, note = 'x' WHEN NOT MATCHED THEN DO NOTHING RETURNING merge_action, t.id
WITH x AS (SELECT 1 AS id) MERGE INTO events t USING x ON t.id = x.id WHEN MATCHED THEN ERROR concat('no', 'such') WHEN NOT MATCHED THEN INSERT (id) VALUES (x.id)
CREATE TABLE t (a INTEGER PRIMARY KEY, b VARCHAR(20) NOT NULL DEFAULT 'x', c DECIMAL(10, 2) CHECK (c > 0), d TIMESTAMP WITH TIME ZONE DEFAULT now(), e DOUBLE PRECISION UNIQUE, f STRUCT(x INTEGER, y VARCHAR[]), UNIQUE (b, c), CHECK (a < c))
CREATE TABLE IF NOT EXISTS lake.s.t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1) VIRTUAL, c INTEGER AS (a * 2))
CREATE OR REPLACE TABLE one (a INT, b CHARACTER VARYING COLLATE NOCASE, c INTEGER ARRAY, d ENUM ('x', 'y'),)
CREATE TABLE t (id INTEGER REFERENCES orders (id), n INTEGER, FOREIGN KEY (n) REFERENCES events (id), CONSTRAINT p PRIMARY KEY (id))
CREATE TABLE "my table" ("a b" INTEGER DEFAULT (1 + 2), c BOOLEAN DEFAULT true NOT NULL)
CREATE TABLE t AS SELECT * FROM orders
CREATE TABLE t AS FROM orders WITH NO DATA
CREATE OR REPLACE TABLE one AS (SELECT 1) WITH DATA
CREATE TABLE t (x, y) AS SELECT 1, 2
CREATE TABLE t AS VALUES (1)
CREATE TEMP TABLE tt (a INTEGER)
CREATE TEMPORARY TABLE tt AS FROM orders
CREATE OR REPLACE TEMP TABLE mine AS SELECT 1 AS a
CREATE LOCAL TEMP TABLE tt (a INT)
CREATE TEMP TABLE temp.tt (a INT)
CREATE VIEW v AS SELECT * FROM orders
CREATE OR REPLACE VIEW seen (a, b) AS SELECT id, region FROM orders
CREATE VIEW IF NOT EXISTS lake.s.v AS FROM orders
CREATE TEMP VIEW tv AS SELECT 1
CREATE VIEW v AS WITH x AS (SELECT 1) FROM x
CREATE VIEW v AS VALUES (1)
CREATE SCHEMA new
CREATE SCHEMA IF NOT EXISTS lake.new
CREATE OR REPLACE SCHEMA new
ALTER TABLE events ADD COLUMN x INTEGER DEFAULT 3
ALTER TABLE events ADD x VARCHAR
ALTER TABLE events ADD COLUMN IF NOT EXISTS x INTEGER
ALTER TABLE one DROP COLUMN a
ALTER TABLE IF EXISTS one DROP IF EXISTS zz CASCADE
ALTER TABLE one RENAME COLUMN a TO x
ALTER TABLE one RENAME TO two
ALTER TABLE one RENAME a TO x
ALTER TABLE one ALTER a TYPE BIGINT USING a + 1
ALTER TABLE one ALTER COLUMN a SET DATA TYPE VARCHAR
ALTER TABLE one ALTER a SET DEFAULT 1 + 2
ALTER TABLE one ALTER a DROP DEFAULT
ALTER TABLE one ALTER a SET NOT NULL
ALTER TABLE one ALTER COLUMN a DROP NOT NULL
ALTER VIEW other RENAME TO another
ALTER VIEW IF EXISTS other RENAME TO another
ALTER TABLE one ADD COLUMN b.x INTEGER
DROP TABLE s.events
DROP TABLE IF EXISTS lake.main.zz
DROP VIEW other
DROP VIEW IF EXISTS zz RESTRICT
DROP SCHEMA s CASCADE
DROP SCHEMA IF EXISTS lake.empty
DROP TABLE temp.mine
BEGIN
BEGIN TRANSACTION
begin read only
BEGIN TRANSACTION READ WRITE
START TRANSACTION READ ONLY
START
COMMIT
COMMIT WORK
END
END TRANSACTION
ROLLBACK
ABORT
USE lake
USE lake.s
USE s
USE temp
SET schema = 's'
SET SCHEMA 's'
SET SESSION schema = 'lake.s'
SET search_path TO 'main,s'
SET search_path = s
EXPLAIN SELECT * FROM orders
EXPLAIN ANALYZE SELECT 1
EXPLAIN (FORMAT json) FROM orders
EXPLAIN (ANALYZE, FORMAT 'json') SELECT 1
EXPLAIN INSERT INTO events (id) VALUES (1)
EXPLAIN ANALYZE DELETE FROM events
EXPLAIN CREATE TABLE t AS SELECT 1
EXPLAIN WITH x AS (SELECT 1) FROM x
EXPLAIN UPDATE events SET n = 1
