-- Run by the owner of the lake before the attacks. What the analyst may not see has CANARY in it, in
-- values and in names, or is a number that begins with 731731.
CREATE TABLE orders (id INTEGER, region VARCHAR, amount BIGINT, card VARCHAR, ssn VARCHAR, note VARCHAR, tags VARCHAR[], doc STRUCT(a VARCHAR, b BIGINT));
INSERT INTO orders VALUES
  (1, 'EU', 100, '4111CANARYCARD1', 'CANARYSSN1', 'first', ['a', 'b'], {'a': 'x', 'b': 1}),
  (2, 'EU', 200, '4222CANARYCARD2', 'CANARYSSN2', 'second', ['b'], {'a': 'y', 'b': 2}),
  (3, 'EU', 300, '4333CANARYCARD3', 'CANARYSSN3', 'third', [], NULL),
  (11, 'US', 7317310011, '5511CANARYCARD11', 'CANARYSSN11', 'CANARYNOTE11', ['CANARYTAG11'], {'a': 'CANARYDOC11', 'b': 7317310111}),
  (12, 'US', 7317310012, '5512CANARYCARD12', 'CANARYSSN12', 'CANARYNOTE12', ['CANARYTAG12'], {'a': 'CANARYDOC12', 'b': 7317310112}),
  (13, NULL, 7317310013, '5513CANARYCARD13', 'CANARYSSN13', 'CANARYNOTE13', NULL, NULL);
CREATE TABLE events (id INTEGER, what VARCHAR);
INSERT INTO events VALUES (1, 'login'), (2, 'logout');
CREATE TABLE regions (region VARCHAR, name VARCHAR);
INSERT INTO regions VALUES ('EU', 'Europe'), ('US', 'America');
CREATE SCHEMA hidden;
CREATE TABLE hidden.members (name VARCHAR, login VARCHAR);
INSERT INTO hidden.members VALUES ('mine', 'analyst'), ('CANARYMEMBER', 'CANARYLOGIN');
CREATE TABLE accounts (owner VARCHAR, balance BIGINT, pin VARCHAR);
INSERT INTO accounts VALUES ('mine', 50, '1234'), ('CANARYOWNER', 7317310099, 'CANARYPIN');
CREATE TABLE salaries (name VARCHAR, salary BIGINT);
INSERT INTO salaries VALUES ('CANARYNAME1', 7317310001), ('CANARYNAME2', 7317310002);
CREATE TABLE canary_table (canary_column VARCHAR);
INSERT INTO canary_table VALUES ('CANARYVALUE');
CREATE SCHEMA canary_schema;
CREATE TABLE canary_schema.canary_inner (canary_inner_column VARCHAR);
CREATE VIEW open_view AS SELECT id, region FROM lake.main.orders WHERE id < 10;
CREATE VIEW canary_view AS SELECT name, salary FROM lake.main.salaries;
CREATE SCHEMA desk;
