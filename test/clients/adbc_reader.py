"""What a Python user of adbc-driver-flightsql sees who may see a part of a database.

It runs as the user of testdata/clients/reader.qod.hcl over the tables of testdata/clients/shop.sql. Whoever
runs it looks for what is hidden in all that was received, so nothing here may send such a word itself.
"""

import decimal

import adbc
from adbc import connect, rows, table

COLUMNS = {
    "sh_p.notes": ["id INTEGER"],
    "shop.long_lines": ["id BIGINT", "name VARCHAR"],
    "shop.order_lines": ["id BIGINT", "order_id BIGINT", "name VARCHAR"],
    "shop.orders": ["id BIGINT", "region VARCHAR", "amount DECIMAL(12,2)", "card BIGINT"],
    "shop.orderxlines": ["id BIGINT", "tags VARCHAR[]", "moment TIMESTAMP WITH TIME ZONE"],
}
VIEWS = ["shop.long_lines"]
TABLES = [name for name in COLUMNS if name not in VIEWS]


def objects(connection, **filters):
    """The catalogs, schemas, tables and columns of adbc_get_objects; None for a level that was not asked for."""
    catalogs, schemas, tables, columns = [], None, None, None
    for catalog in connection.adbc_get_objects(**filters).read_all().to_pylist():
        catalogs.append(catalog["catalog_name"])
        for schema in catalog["catalog_db_schemas"] or []:
            schemas = (schemas or []) + [schema["db_schema_name"]]
            for t in schema["db_schema_tables"] or []:
                name = f"{schema['db_schema_name']}.{t['table_name']}"
                tables = (tables or []) + [name]
                assert (t["table_type"] == "VIEW") == (name in VIEWS), t
                if t["table_columns"] is not None:
                    columns = columns or {}
                    columns[name] = [f"{c['column_name']} {c['xdbc_type_name']}" for c in t["table_columns"]]
    return catalogs, schemas, tables, columns


def failure(action, *args, **kwargs):
    """The error that an action raises, as a client can take it apart."""
    try:
        got = action(*args, **kwargs)
    except Exception as e:
        return type(e), *(getattr(e, part, None) for part in ("status_code", "vendor_code", "sqlstate")), str(e)
    raise AssertionError(f"{args} {kwargs}: no error, got {got}")


def test_objects_at_every_depth():
    everything = ["tpch"], ["sh_p", "shop"], list(COLUMNS), COLUMNS
    with connect() as c:
        assert objects(c, depth="catalogs") == everything[:1] + (None, None, None)
        assert objects(c, depth="db_schemas") == everything[:2] + (None, None)
        assert objects(c, depth="tables") == everything[:3] + (None,)
        for depth in "all", "columns":
            assert objects(c, depth=depth) == everything, objects(c, depth=depth)


def test_filters_are_like_patterns():
    both = ["order_lines", "orderxlines"]
    with connect() as c:
        for pattern, want in {"%": ["tpch"], "tpch": ["tpch"], "t_c%": ["tpch"], "": [], "temp": [], "x%": []}.items():
            got = objects(c, depth="tables", catalog_filter=pattern)
            assert got[0] == want and got[2] == (list(COLUMNS) if want else None), (pattern, got)
        for pattern, want in {"%": ["sh_p", "shop"], "sh_p": ["sh_p", "shop"], r"sh\_p": ["sh_p"], "%o_": ["shop"],
                              "": None, "hr": None, "main": None, "%schema": None}.items():
            for depth in "db_schemas", "tables":
                got = objects(c, depth=depth, db_schema_filter=pattern)[1]
                assert got == want, (pattern, got)
        for pattern, want in {"%": [t[5:] for t in COLUMNS], "order_lines": both, r"order\_lines": both[:1],
                              "order%": [both[0], "orders", both[1]], r"order\%": None,
                              "%table": None, "payroll": None, "pay%": None, "": None}.items():
            got = objects(c, depth="tables", table_name_filter=pattern)[2]
            assert (got and [t[5:] for t in got]) == want, (pattern, got)
        # Catalogs and columns are filtered by the driver itself, which knows no escape.
        for pattern, want in {"%": COLUMNS["shop.order_lines"], "_d": ["id BIGINT"], "order_id": ["order_id BIGINT"],
                              "%d%": ["id BIGINT", "order_id BIGINT"], "cost": [], "c%": []}.items():
            got = objects(c, table_name_filter=r"order\_lines", column_name_filter=pattern)[3]
            assert got == {"shop.order_lines": want}, (pattern, got)


def test_table_types():
    with connect() as c:
        assert c.adbc_get_table_types() == ["LOCAL TEMPORARY", "TABLE", "VIEW"], c.adbc_get_table_types()
        for types, want in ((["TABLE"], TABLES), (["VIEW"], VIEWS), (["VIEW", "TABLE"], list(COLUMNS)),
                            (["LOCAL TEMPORARY"], None), (["SEQUENCE"], None)):
            got = objects(c, depth="tables", table_types_filter=types)[2]
            assert got == want, (types, got)


def test_schemas_of_tables():
    with connect() as c:
        for name in COLUMNS:
            schema, _, rest = name.partition(".")
            told = c.adbc_get_table_schema(rest, db_schema_filter=schema)
            read = table(c, f"SELECT * FROM {name}").schema
            assert told.names == read.names and [f.type for f in told] == [f.type for f in read], (told, read)
        absent = failure(c.adbc_get_table_schema, "absent", db_schema_filter="shop")
        for name, schema in (("payroll", "shop"), ("payroll", None), ("staff", "hr"), ("staff", "absent"), ("nation", "main"),
                             ("orders", "main")):
            got = failure(c.adbc_get_table_schema, name, db_schema_filter=schema)
            assert got == absent, (name, got)


def test_what_is_read():
    want = [(i, "EU", decimal.Decimal(i) * 3 / 2, 4) for i in range(4)]
    with connect() as c, c.cursor() as cursor:
        cursor.execute("SELECT * FROM shop.orders ORDER BY id")
        assert [d[0] for d in cursor.description] == ["id", "region", "amount", "card"], cursor.description
        assert cursor.fetchall() == want
        for statement, parameters, got in (
                ("SELECT * FROM shop.orders WHERE id = ?", (2,), want[2:3]),
                ("SELECT * FROM shop.orders WHERE id >= $1 ORDER BY id", (3,), want[3:]),
                ("SELECT name FROM shop.order_lines WHERE name = ?", ("line 7",), [("line 7",)]),
                ("SELECT count(*) FROM shop.orders WHERE region = ?", ("US",), [(0,)])):
            cursor.execute(statement, parameters)
            assert cursor.fetchall() == got, statement
        cursor.execute("SELECT count(*) FROM shop.long_lines JOIN shop.order_lines USING (id)")
        assert cursor.fetchone() == (4,)
        assert cursor.adbc_execute_schema("SELECT card FROM shop.orders").field(0).name == "card"


def test_hidden_is_told_as_absent():
    pairs = [
        ("SELECT * FROM {}", "shop.payroll"), ("SELECT * FROM shop.orders JOIN {} USING (id)", "shop.payroll"),
        ("DESCRIBE {}", "shop.payroll"), ("INSERT INTO {} VALUES (1)", "shop.payroll"), ("UPDATE {} SET id = 1", "shop.payroll"),
        ("DROP TABLE {}", "shop.payroll"), ("CREATE TABLE {} (id INTEGER)", "shop.payroll"), ("SELECT * FROM {}", "hr.staff"),
        ("CREATE VIEW {} AS SELECT 1 AS i", "hr.staff"), ("SELECT * FROM {}", "main.nation"), ("USE {}", "hr"),
        ("SELECT {} FROM shop.order_lines", "cost"), ("SELECT t.{} FROM shop.order_lines AS t", "cost"),
        ("SELECT * EXCLUDE ({}) FROM shop.order_lines", "cost"),
    ]
    with connect() as c:
        for statement, name in pairs:
            absent = "absent" if "." not in name else name.split(".")[0] + ".absent"
            for parameters in (None, ()):
                got = failure(rows, c, statement.format(name), parameters)
                want = failure(rows, c, statement.format(absent), parameters)
                last = name.split(".")[-1]
                assert got[:4] == want[:4] and got[4].replace(last, "absent") == want[4], (got, want)
        assert rows(c, "SHOW TABLES FROM hr") == rows(c, "SHOW TABLES FROM absent") == []
        assert rows(c, "SELECT 1") == [(1,)]


def test_no_error_holds_a_hidden_value():
    with connect() as c:
        for statement in (
                "SELECT card::DATE FROM shop.orders", "SELECT error(region) FROM shop.orders", "SELECT region::INTEGER FROM shop.orders",
                "SELECT name::INTEGER FROM shop.order_lines", "SELECT nowhere FROM shop.orders", "SELECT orders.nowhere FROM shop.orders",
                "SELECT count(*) FROM shop.orders WHERE region LIKE '%' AND error(region) IS NULL", "EXPLAIN SELECT * FROM shop.orders",
                "INSERT INTO shop.orders VALUES (9, 'EU', 1, 'x', 'y')", "SELECT * FROM shop.notes", "SELECT * FROM nowhere.orders",
                "SELECT * FROM duckdb_tables()", "SELECT * FROM pg_catalog.pg_class", "FROM shop.order", "SELEC"):
            failure(rows, c, statement)
            failure(rows, c, statement, ())
        failure(rows, c, "SELECT ?::INTEGER + amount FROM shop.orders", ("x",))


def test_autocommit_off():
    with connect(autocommit=False) as c:
        assert objects(c)[3] == COLUMNS
        rows(c, "CREATE TEMPORARY TABLE mine AS SELECT id FROM shop.orders")
        assert rows(c, "SELECT count(*) FROM mine") == [(4,)]
        assert objects(c)[3] == COLUMNS, "in the transaction"
        c.rollback()
        failure(rows, c, "SELECT * FROM mine")
        c.rollback()
        failure(rows, c, "INSERT INTO shop.order_lines VALUES (1, 1, 'x', 'y')")
        c.rollback()
        assert rows(c, "SELECT count(*) FROM shop.order_lines") == [(10,)]
        c.commit()


def test_the_catalog_by_sql():
    with connect() as c:
        ours = "WHERE table_catalog = 'tpch' ORDER BY ALL"
        assert rows(c, f"SELECT table_schema || '.' || table_name FROM information_schema.tables {ours}") == [(t,) for t in COLUMNS]
        assert rows(c, f"SELECT table_schema || '.' || table_name FROM information_schema.views {ours}") == [(t,) for t in VIEWS]
        assert rows(c, f"SELECT count(*) FROM information_schema.columns {ours}") == [(sum(map(len, COLUMNS.values())),)]
        schemata = "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'tpch' ORDER BY ALL"
        assert rows(c, schemata) == [("sh_p",), ("shop",)]
        for view in ("tables", "columns", "views", "schemata", "table_constraints", "key_column_usage",
                     "constraint_column_usage", "constraint_table_usage", "character_sets"):
            rows(c, f"SELECT * FROM information_schema.{view}")
        assert rows(c, "SHOW TABLES FROM shop") == [(t[5:],) for t in COLUMNS if t.startswith("shop.")]
        assert [r[:2] for r in rows(c, "DESCRIBE shop.orders")] == [tuple(t.split(" ", 1)) for t in COLUMNS["shop.orders"]]
        rows(c, "SUMMARIZE shop.orders")


if __name__ == "__main__":
    adbc.main(globals())
