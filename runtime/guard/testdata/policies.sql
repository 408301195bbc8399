# Queries over tables with policies: they give what the same query gives over tables in which the policies
# have been carried out by hand.
SELECT * FROM orders
FROM orders
FROM "ORDERS" o
TABLE orders
(TABLE orders) UNION ALL (TABLE orders)
FROM lake.main.orders
FROM lake.orders
FROM main.orders
FROM orders AS o
FROM orders AS "a b" (x, y)
FROM o: orders
FROM o: orders SELECT o.id, o.card
/* x */ FROM/**/orders /* y */ SELECT /* z */ id
SELECT 'é', count(*) FROM orders
SELECT count(*) FROM orders
SELECT orders.id, orders.card FROM orders
SELECT main.orders.id, lake.main.orders.card, lake.orders.region FROM orders
SELECT main.orders.id + 1, upper(main.orders.card) FROM main.orders
SELECT orders.* FROM orders
SELECT o.* FROM orders o, events e WHERE o.id = e.id
SELECT * EXCLUDE (card) FROM orders
SELECT * REPLACE (upper(card) AS card) FROM orders
SELECT * RENAME (card AS number) FROM orders
SELECT COLUMNS('c.*'), COLUMNS(x -> x LIKE 'r%') FROM orders
SELECT COLUMNS(*)::VARCHAR FROM customers
SELECT min(COLUMNS(orders.*)) FROM orders
SELECT o FROM orders o
SELECT orders FROM orders
SELECT st.a, st.b, orders.st.a, main.orders.st.b FROM orders
SELECT unnest(st) FROM orders
SELECT to_json(o) FROM orders o
SELECT * FROM orders JOIN customers ON orders.customer = customers.id
SELECT * FROM orders JOIN customers USING (region)
SELECT * FROM orders NATURAL JOIN customers
SELECT * FROM orders o LEFT JOIN customers c ON o.customer = c.id AND c.name LIKE '%a%'
SELECT * FROM events e RIGHT JOIN orders o USING (id)
SELECT * FROM orders FULL JOIN customers USING (id)
SELECT * FROM orders SEMI JOIN customers USING (region)
SELECT * FROM orders ANTI JOIN customers USING (region)
SELECT o.id, e.n FROM orders o ASOF JOIN events e ON o.id >= e.id
SELECT count(*) FROM orders POSITIONAL JOIN events
SELECT count(*) FROM orders a, orders b
SELECT * FROM (FROM orders) x
SELECT * FROM (SELECT id, card FROM orders WHERE amount > 1) x WHERE id > 0
SELECT (SELECT max(id) FROM orders) AS top, (SELECT count(*) FROM customers) AS n
SELECT (SELECT max(id) FROM orders), 1 + (SELECT count(*) FROM customers)
SELECT EXISTS (FROM orders WHERE region = 'US')
SELECT e.id, EXISTS (FROM orders o WHERE o.id = e.id) AS there FROM events e
SELECT e.id FROM events e WHERE e.id IN (SELECT id FROM orders)
SELECT e.id FROM events e WHERE e.id NOT IN (SELECT id FROM orders)
SELECT e.id FROM events e WHERE e.id = ANY (SELECT customer FROM orders)
SELECT e.id FROM events e WHERE e.id >= ALL (SELECT id FROM orders)
SELECT c.id FROM customers c WHERE EXISTS (FROM orders WHERE orders.customer = c.id AND orders.amount > 1)
SELECT ARRAY (SELECT id FROM orders ORDER BY id) AS list
SELECT c.name, (SELECT sum(o.amount) FROM orders o WHERE o.customer = c.id) AS total FROM customers c
SELECT id FROM orders UNION SELECT id FROM customers
SELECT id FROM events EXCEPT SELECT id FROM orders
SELECT id FROM events INTERSECT ALL SELECT id FROM orders
SELECT id, card FROM orders UNION ALL BY NAME SELECT id, name FROM customers
WITH x AS (FROM orders) FROM x
WITH x AS (FROM orders), y AS (SELECT id, card FROM x) FROM y, x
WITH x AS MATERIALIZED (SELECT id FROM orders) SELECT count(*) FROM x a, x b
WITH orders AS (FROM orders) SELECT * FROM orders
WITH orders AS (SELECT 1 AS one) FROM orders
WITH orders AS (SELECT 1 AS one) FROM main.orders
WITH ORDERS AS (SELECT 1 AS one) SELECT (SELECT one FROM orders) AS a, (SELECT count(*) FROM main.orders) AS b
WITH x AS (SELECT 1 AS a) SELECT (WITH orders AS (SELECT 2 AS b) SELECT b FROM orders) AS c, (SELECT count(*) FROM orders) AS d FROM x
WITH RECURSIVE x(n) AS (SELECT min(id) FROM orders UNION ALL SELECT n + 1 FROM x WHERE n < (SELECT max(id) FROM orders)) FROM x
WITH RECURSIVE orders(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM orders WHERE n < 3) FROM orders
FROM orders SELECT region, count(*) AS n GROUP BY ALL ORDER BY ALL
SELECT region, sum(amount) FROM orders GROUP BY region HAVING sum(amount) > (SELECT avg(amount) FROM orders)
SELECT region, customer, count(*) FROM orders GROUP BY GROUPING SETS ((region), (customer), ())
SELECT id FROM orders ORDER BY card DESC, (SELECT max(id) FROM customers) LIMIT 3
SELECT id FROM events ORDER BY id LIMIT (SELECT count(*) FROM orders)
SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY region ORDER BY id) = 1
SELECT id, sum(amount) OVER (PARTITION BY region ORDER BY id) AS s, lag(card) OVER (ORDER BY id) AS l FROM orders
SELECT id, rank() OVER w AS r FROM orders WINDOW w AS (ORDER BY amount)
SELECT DISTINCT ON (region) region, customer FROM orders ORDER BY region, customer
SELECT CASE WHEN id IN (SELECT id FROM customers) THEN card END AS x FROM orders
SELECT list_transform([1, 2], lambda y: y + id) AS l FROM orders
SELECT [x FOR x IN [1, 2] IF x > 1] AS l, id FROM orders
SELECT string_agg(card, ',' ORDER BY id) FROM orders
SELECT count(*) FILTER (WHERE id > (SELECT min(id) FROM orders)) AS n FROM events
VALUES ((SELECT count(*) FROM orders))
PIVOT orders ON region IN ('EU', 'US') USING sum(amount) GROUP BY customer
PIVOT orders o ON region IN ('EU', 'US')
FROM orders PIVOT (sum(amount) FOR region IN ('EU', 'US'))
FROM orders PIVOT (sum(amount) AS s FOR region IN ('EU', 'US') GROUP BY customer) AS p
UNPIVOT events ON id, n
UNPIVOT (SELECT id, customer FROM orders) ON id, customer INTO NAME k VALUE v
FROM customers UNPIVOT (v FOR k IN (name, region))
FROM orders TABLESAMPLE 100%
SELECT count(*) FROM orders TABLESAMPLE reservoir(1000 ROWS)
FROM orders USING SAMPLE 100%
SELECT e.id, x.id FROM events e, LATERAL (SELECT id FROM orders o WHERE o.id <= e.id) x
SELECT e.id, x.* FROM events e JOIN LATERAL (FROM orders o WHERE o.id = e.id) x ON true
SELECT * FROM range((SELECT max(id) FROM orders)) r(i)
SELECT * FROM unnest((SELECT list(id ORDER BY id) FROM orders)) u(i)
FROM (VALUES (1)) v(i), orders WHERE i = id
FROM (SELECT 'EU' AS region) x, orders
SUMMARIZE orders
SUMMARIZE main.orders
SUMMARIZE FROM customers
FROM (SUMMARIZE customers)
FROM s.items JOIN orders USING (id)
FROM customers
FROM customers c WHERE c.name > 'a'
SELECT c.name FROM customers c JOIN customers d USING (id)
FROM events WHERE id IN (SELECT customer FROM orders WHERE card LIKE '%1')
FROM (FROM (FROM (FROM orders)))
SELECT id AS card, card AS id FROM orders WHERE card LIKE '*%'
SELECT card FROM orders GROUP BY card HAVING count(*) > 1
SELECT max(card), min(card) FROM orders WHERE card > '4'
