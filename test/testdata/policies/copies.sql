CREATE SCHEMA copies;
CREATE TABLE copies.lineitem AS SELECT * FROM main.lineitem WHERE l_shipmode <> 'AIR' AND l_orderkey % 7 <> 0;
CREATE TABLE copies.orders AS SELECT * FROM main.orders WHERE o_orderpriority <> '1-URGENT' OR o_clerk LIKE '%1';
CREATE TABLE copies.supplier AS SELECT * FROM main.supplier WHERE s_nationkey IN (SELECT n_nationkey FROM main.nation WHERE n_regionkey <> 0);
CREATE TABLE copies.customer AS SELECT * REPLACE (left(c_phone, 6) || '-***' AS c_phone) FROM main.customer WHERE c_mktsegment IN ('BUILDING', 'MACHINERY', 'AUTOMOBILE');
CREATE TABLE copies.part AS SELECT * REPLACE (round(p_retailprice, -2) AS p_retailprice) FROM main.part;
CREATE TABLE copies.partsupp AS SELECT * EXCLUDE (ps_comment) FROM main.partsupp;
CREATE TABLE copies.nation AS SELECT * FROM main.nation;
CREATE TABLE copies.region AS SELECT * FROM main.region
