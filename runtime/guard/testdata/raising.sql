# Statements with {} where an expression can stand that fails on column v of table t, if it is computed on hidden rows.
SELECT count(*) FROM t WHERE (CASE WHEN k > 1 THEN {} END) IS NULL
SELECT count(*) FROM t GROUP BY CASE WHEN k > 1 THEN {} END
SELECT max(CASE WHEN k > 1 THEN {} END) AS m FROM t
SELECT k FROM t ORDER BY CASE WHEN k > 1 THEN {} END
SELECT count(*) FROM t JOIN range(5) r(i) ON i = 1 AND (CASE WHEN k > 1 THEN {} END) IS NULL
SELECT k FROM t QUALIFY row_number() OVER () > 0 AND (CASE WHEN k > 1 THEN {} END) IS NULL
SELECT count(*) FROM t WHERE k > 1 AND {} IS NOT NULL
INSERT INTO sink SELECT k FROM t WHERE k > 1 AND {} IS NOT NULL
DELETE FROM t WHERE k > 1 AND {} IS NOT NULL
UPDATE t SET v = 'x' WHERE k > 1 AND {} IS NOT NULL
SELECT count(*) FROM acl.u JOIN t ON u.k < t.k AND {} IS NOT NULL
SELECT count(*) FROM t, acl.u WHERE t.k > u.k AND {} IS NOT NULL
SELECT count(*) FROM acl.u LEFT JOIN t ON t.k > 1 AND {} IS NOT NULL
SELECT count(*) FROM t JOIN t AS b ON t.k = b.k + 1 AND b.k > 0 WHERE CAST(b.v AS INTEGER) > 0
SELECT count(*) FROM acl.u WHERE EXISTS (FROM t WHERE t.k > u.k AND {} IS NOT NULL)
SELECT count(*) FROM acl.u WHERE u.k NOT IN (SELECT t.k FROM t WHERE t.k > 1 AND {} IS NOT NULL)
SELECT (SELECT count(*) FROM t WHERE t.k > u.k AND {} IS NOT NULL) AS n FROM acl.u
SELECT n FROM acl.u, LATERAL (SELECT count(*) AS n FROM t WHERE t.k > u.k AND {} IS NOT NULL) AS l
SELECT count(*) FROM (SELECT k, v FROM t UNION ALL SELECT k, v FROM t) WHERE k > 1 AND {} IS NOT NULL
WITH x AS (FROM t) SELECT count(*) FROM x JOIN x AS y USING (k) WHERE x.k > 1 AND CAST(x.v AS INTEGER) > 0
WITH x AS MATERIALIZED (FROM t) SELECT count(*) FROM x WHERE k > 1 AND {} IS NOT NULL
SELECT DISTINCT ON (k) k FROM t WHERE k > 1 AND {} IS NOT NULL
SELECT count(*) FILTER ({} IS NOT NULL) FROM t WHERE k > 1
SELECT k FROM t WHERE k > 1 AND {} IS NOT NULL ORDER BY v LIMIT 1
SELECT rank() OVER (ORDER BY CASE WHEN k > 1 THEN {} END) AS r FROM t
SELECT count(*) FROM t WHERE k IN (SELECT k FROM acl.u WHERE k > 1) OR k > 1 AND {} IS NOT NULL
SELECT count(*) FROM t SEMI JOIN acl.u ON t.k > u.k AND {} IS NOT NULL
SELECT count(*) FROM acl.u ANTI JOIN t ON t.k > u.k AND {} IS NOT NULL
SELECT count(*) FROM acl.u ASOF JOIN t ON u.k < t.k WHERE {} IS NOT NULL
SELECT count(*) FROM acl.u POSITIONAL JOIN t WHERE t.k > 1 AND {} IS NOT NULL
SELECT count(*) FROM t, unnest([1, 2]) AS r(n) WHERE t.k > n AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k = w AND {} IS NOT NULL
SELECT count(*) FROM t WHERE w = k AND v = x AND {} IS NOT NULL
SELECT count(*) FROM t WHERE v = x AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k = w AND (CASE WHEN w > 0 THEN {} END) IS NOT NULL
SELECT count(*) FROM t JOIN s.r ON t.k = r.k AND t.w = r.k AND {} IS NOT NULL
SELECT count(*) FROM t JOIN t AS b ON t.k = b.w AND t.w = b.k AND CAST(t.v AS INTEGER) > 0
SELECT count(*) FROM t WHERE k = k AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k IS NOT DISTINCT FROM w AND {} IS NOT NULL
SELECT count(*) FROM t WHERE v = x AND regexp_extract('a', x || '(') IS NULL
SELECT count(*) FROM t WHERE k = 1 AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k = 5 AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k <> 1 AND {} IS NOT NULL
SELECT count(*) FROM t WHERE v <> '1' AND {} IS NOT NULL
SELECT count(*) FROM t WHERE (k = 5 OR k = 6) AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k IN (5, 6) AND {} IS NOT NULL
SELECT count(*) FROM t WHERE v LIKE 'CAN%' AND {} IS NOT NULL
SELECT count(*) FROM t WHERE v LIKE '%1' AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k = 5.0 AND {} IS NOT NULL
SELECT count(*) FROM t WHERE k::VARCHAR = v AND {} IS NOT NULL
