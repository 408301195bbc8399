CREATE SCHEMA shop;
CREATE SCHEMA sh_p;
CREATE SCHEMA hr;
CREATE SCHEMA canary_schema;
CREATE TABLE shop.orders (id BIGINT NOT NULL, region VARCHAR, amount DECIMAL(12,2), card VARCHAR NOT NULL, canary_note VARCHAR DEFAULT 'canary of a default');
INSERT INTO shop.orders SELECT range, CASE WHEN range < 4 THEN 'EU' ELSE 'canary of a row' END, range * 1.5, 'canary4000', 'canary of a column' FROM range(8);
CREATE TABLE shop.order_lines (id BIGINT, order_id BIGINT, name VARCHAR, cost VARCHAR);
INSERT INTO shop.order_lines SELECT range, range % 4, 'line ' || range, 'canary of a cost' FROM range(10);
CREATE TABLE shop.orderxlines (id BIGINT, tags VARCHAR[], moment TIMESTAMPTZ);
CREATE VIEW shop.long_lines AS SELECT id, name FROM shop.order_lines WHERE id > 5 AND cost = 'canary of a cost';
CREATE TABLE shop.payroll AS SELECT 'canary of a pay' AS canary_pay;
CREATE TABLE shop.canary_table (id BIGINT);
CREATE VIEW shop.canary_view AS SELECT id AS canary_id FROM shop.orders;
CREATE TABLE sh_p.notes (id INTEGER);
CREATE TABLE hr.staff AS SELECT 'canary of a name' AS canary_name;
CREATE TABLE canary_schema.orders AS SELECT 'canary of an order' AS card
