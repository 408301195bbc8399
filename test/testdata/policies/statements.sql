-- Beside the 22 of TPC-H: each syntax in which a table can be read. One statement a line.
SELECT * FROM customer
FROM orders
TABLE supplier
SELECT c.* FROM customer AS c WHERE c.c_custkey < 100
SELECT * FROM k: customer WHERE k.c_acctbal > 0
SELECT c_name, c_phone FROM customer ORDER BY c_phone, c_name LIMIT 20
SELECT * EXCLUDE (c_comment) REPLACE (lower(c_name) AS c_name) FROM customer
SELECT COLUMNS('c_.*key') FROM customer
SELECT max(COLUMNS(* EXCLUDE (c_comment))) FROM customer
SELECT orders FROM orders WHERE o_orderkey < 100
SELECT count(*), sum(o_totalprice), min(o_orderdate) FROM orders
SELECT o_orderpriority, count(*) FROM orders GROUP BY ALL
SELECT o_orderstatus, o_orderpriority, count(*) FROM orders GROUP BY GROUPING SETS ((o_orderstatus), (o_orderpriority), ())
SELECT o_orderstatus, count(*) FROM orders GROUP BY CUBE (o_orderstatus, o_orderpriority) HAVING count(*) > 10
SELECT c_name, o_orderkey FROM customer JOIN orders ON c_custkey = o_custkey
SELECT n_name, count(s_suppkey) FROM nation LEFT JOIN supplier ON s_nationkey = n_nationkey GROUP BY n_name
SELECT * FROM (SELECT n_nationkey AS c_nationkey, n_name FROM nation) n JOIN customer USING (c_nationkey)
SELECT count(*) FROM (SELECT o_custkey AS c_custkey, o_orderkey FROM orders) NATURAL JOIN customer
SELECT n_name, q.n FROM nation, LATERAL (SELECT count(*) AS n FROM supplier WHERE s_nationkey = n_nationkey) q
SELECT c_name FROM customer SEMI JOIN orders ON c_custkey = o_custkey
SELECT c_name FROM customer ANTI JOIN orders ON c_custkey = o_custkey
SELECT o.o_orderkey, d.d FROM orders o ASOF JOIN (VALUES (DATE '1993-01-01'), (DATE '1995-06-01')) d(d) ON o.o_orderdate >= d.d
SELECT (SELECT count(*) FROM customer)
SELECT (SELECT max(o_totalprice) FROM main_or_copy.orders) AS m, 1 + (SELECT count(*) FROM supplier) AS n
SELECT n_name, (SELECT sum(s_acctbal) FROM supplier WHERE s_nationkey = n_nationkey) FROM nation
SELECT * FROM nation WHERE EXISTS (SELECT 1 FROM supplier WHERE s_nationkey = n_nationkey)
SELECT * FROM nation WHERE n_nationkey NOT IN (SELECT s_nationkey FROM supplier)
SELECT o_orderkey FROM orders WHERE o_totalprice >= ALL (SELECT o_totalprice FROM orders WHERE o_orderstatus = 'P')
SELECT c_phone FROM customer UNION SELECT s_phone FROM supplier
SELECT o_custkey FROM orders EXCEPT ALL SELECT c_custkey FROM customer
SELECT c_custkey AS k FROM customer UNION ALL BY NAME SELECT s_name AS n, s_suppkey AS k FROM supplier
WITH customer AS (SELECT * FROM customer WHERE c_custkey < 50), q AS MATERIALIZED (FROM customer) SELECT * FROM q
WITH RECURSIVE r(k) AS (SELECT min(o_orderkey) FROM orders UNION SELECT (SELECT min(o_orderkey) FROM orders WHERE o_orderkey > k) AS k FROM r WHERE k < 200) SELECT * FROM r
PIVOT (SELECT o_orderstatus, o_orderpriority, o_totalprice FROM orders) ON o_orderstatus IN ('F', 'O', 'P') USING sum(o_totalprice)
UNPIVOT (SELECT p_partkey, p_size, p_retailprice::INTEGER AS p_price FROM part) ON p_size, p_price INTO NAME what VALUE v
SELECT * FROM orders QUALIFY row_number() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC, o_orderkey) = 1
SELECT o_orderkey, sum(o_totalprice) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS running FROM orders
SELECT list_filter(list(p_retailprice ORDER BY p_partkey), lambda x: x > 1500) FROM part
SELECT ps_partkey, struct_pack(p := partsupp).p.ps_availqty FROM partsupp WHERE ps_partkey < 20
DESCRIBE SELECT c_name, c_nationkey FROM customer
SUMMARIZE supplier
SELECT main_or_copy.customer.c_phone, main_or_copy.customer.c_acctbal + 1 AS n FROM main_or_copy.customer
