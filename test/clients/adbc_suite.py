"""What a Python user of adbc-driver-flightsql relies on, against a running qod.

It runs as the owner of the database. Each function named test_* is one promise.
"""

import datetime
import decimal
import threading
import time

import pyarrow

import adbc
from adbc import connect, rows, table


def drop(connection, *names):
    for name in names:
        rows(connection, f"DROP TABLE IF EXISTS {name}")


def test_types_and_nulls():
    statement = """
        SELECT true AS b, 1::TINYINT AS i8, 2::SMALLINT AS i16, 3::INTEGER AS i32, 4::BIGINT AS i64,
               255::UTINYINT AS u8, 65535::USMALLINT AS u16, 4294967295::UINTEGER AS u32,
               18446744073709551615::UBIGINT AS u64, 1.5::FLOAT AS f32, 2.5::DOUBLE AS f64,
               123.45::DECIMAL(10,2) AS d, 'Grüße'::VARCHAR AS s, '\\x00\\xFF'::BLOB AS x,
               DATE '2024-02-29' AS day, TIME '12:34:56.789' AS t, TIMESTAMP '2024-02-29 12:34:56.789' AS ts,
               TIMESTAMPTZ '2024-02-29 12:34:56+00' AS tz, INTERVAL 3 DAY AS i, uuid() IS NOT NULL AS u"""
    with connect() as c:
        got = table(c, statement).to_pylist()[0]
        assert got["u64"] == 18446744073709551615 and got["u32"] == 4294967295, got
        assert got["d"] == decimal.Decimal("123.45") and got["s"] == "Grüße" and got["x"] == b"\x00\xff", got
        assert got["day"] == datetime.date(2024, 2, 29) and got["t"] == datetime.time(12, 34, 56, 789000), got
        assert got["ts"] == datetime.datetime(2024, 2, 29, 12, 34, 56, 789000), got
        nulls = table(c, "SELECT NULL::INTEGER AS a, NULL::VARCHAR AS b, NULL::DECIMAL(9,3) AS c, NULL::DATE AS d")
        assert nulls.to_pylist() == [{"a": None, "b": None, "c": None, "d": None}], nulls


def test_nested_values():
    with connect() as c:
        got = table(c, """SELECT [1, NULL, 3] AS l, {'a': 1, 'b': {'c': 'x', 'd': [NULL]}} AS s,
                                 MAP {'k': 1, 'm': NULL} AS m, [{'a': [1]}, NULL] AS deep,
                                 array_value(1, 2, 3) AS fixed""").to_pylist()[0]
        assert got["l"] == [1, None, 3] and got["s"] == {"a": 1, "b": {"c": "x", "d": [None]}}, got
        assert dict(got["m"]) == {"k": 1, "m": None} and got["deep"] == [{"a": [1]}, None], got
        assert got["fixed"] == [1, 2, 3], got


def test_parameters_of_each_type():
    values = [True, 7, -(2**62), 1.25, "o'neil \\ ? $1", b"\x00\x01", datetime.date(1999, 12, 31),
              datetime.datetime(2024, 1, 2, 3, 4, 5, 678900), None, [1, 2, None], ["a", "b"]]
    with connect() as c:
        for value in values:
            got = rows(c, "SELECT ? AS v", (value,))[0][0]
            assert got == value, (value, got)
        got = rows(c, "SELECT ?::DECIMAL(12,3), ? + 1, ? || 'x'", (decimal.Decimal("12.345"), 41, "y"))[0]
        assert got == (decimal.Decimal("12.345"), 42, "yx"), got


def test_rows_of_parameters():
    with connect() as c:
        drop(c, "adbc_many")
        rows(c, "CREATE TABLE adbc_many (id BIGINT, name VARCHAR)")
        with c.cursor() as cursor:
            cursor.executemany("INSERT INTO adbc_many VALUES (?, ?)", [(i, f"n{i}") for i in range(500)] + [(None, None)])
        assert rows(c, "SELECT count(*), count(id), sum(id) FROM adbc_many") == [(501, 500, 124750)]
        drop(c, "adbc_many")


def test_a_statement_runs_once_whether_fetched_or_not():
    with connect() as c:
        drop(c, "adbc_once")
        rows(c, "CREATE TABLE adbc_once (id BIGINT)")
        with c.cursor() as cursor:
            cursor.execute("INSERT INTO adbc_once VALUES (1)")
        assert rows(c, "SELECT count(*) FROM adbc_once") == [(1,)]
        drop(c, "adbc_once")
        rows(c, "CREATE TEMPORARY TABLE adbc_temp (id BIGINT)")  # DuckLake itself has no RETURNING
        assert rows(c, "INSERT INTO adbc_temp VALUES (2) RETURNING id") == [(2,)]
        assert rows(c, "SELECT count(*) FROM adbc_temp") == [(1,)]


def test_empty_results_keep_their_schema():
    with connect() as c:
        got = table(c, "SELECT 1::BIGINT AS a, 'x' AS b, [1] AS c WHERE false")
        assert got.num_rows == 0 and got.schema.names == ["a", "b", "c"], got.schema
        assert got.schema.field("a").type == pyarrow.int64() and got.schema.field("b").type == pyarrow.string()


def test_sizes_are_exact():
    with connect() as c:
        for n in (0, 1, 2047, 2048, 2049, 1_000_000):
            got = table(c, f"SELECT range AS r FROM range({n})")
            assert got.num_rows == n, (n, got.num_rows)
            total = sum(chunk.sum().as_py() or 0 for chunk in got.column("r").chunks)
            assert total == n * (n - 1) // 2, n


def test_wide_rows():
    with connect() as c:
        got = table(c, "SELECT range AS r, repeat('x', 20000) AS wide FROM range(1000)")
        assert got.num_rows == 1000 and got.nbytes > 20_000_000, got.nbytes
        assert set(len(v) for v in got.column("wide").to_pylist()) == {20000}


def test_a_late_error_surfaces():
    with connect() as c:
        with c.cursor() as cursor:
            try:
                cursor.execute("SELECT CASE WHEN range < 3000000 THEN range ELSE error('boom') END FROM range(20000000)")
                got = cursor.fetch_arrow_table()
            except Exception as e:
                assert "boom" in str(e), e
            else:
                raise AssertionError(f"no error, {got.num_rows} rows")
        assert rows(c, "SELECT 1") == [(1,)]


def test_a_cancel_frees_the_node():
    heavy = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range + b.range = 7"
    with connect() as c:
        with c.cursor() as cursor:
            failed = []

            def run():
                try:
                    cursor.execute(heavy)
                    cursor.fetchall()
                except Exception as e:  # what a cancelled call raises
                    failed.append(e)

            thread = threading.Thread(target=run)
            thread.start()
            time.sleep(1.0)  # the statement is to be at work
            start = time.monotonic()
            cursor.adbc_cancel()
            thread.join(timeout=10)
            took = time.monotonic() - start
            assert failed and not thread.is_alive(), "not cancelled"
            assert took < 1.0, f"the client waited {took:.2f} s"
        with connect() as other:
            start = time.monotonic()
            assert rows(other, "SELECT 1") == [(1,)]
            assert time.monotonic() - start < 1.0, "the node is still busy"


def test_commit_and_rollback_as_seen_by_another():
    with connect() as other, connect(autocommit=False) as c:
        drop(other, "adbc_tx")
        rows(other, "CREATE TABLE adbc_tx (id BIGINT)")
        rows(c, "INSERT INTO adbc_tx VALUES (1)")
        assert rows(c, "SELECT count(*) FROM adbc_tx") == [(1,)], "own change"
        assert rows(other, "SELECT count(*) FROM adbc_tx") == [(0,)], "not before the commit"
        c.commit()
        assert rows(other, "SELECT count(*) FROM adbc_tx") == [(1,)], "after the commit"
        rows(c, "INSERT INTO adbc_tx VALUES (2)")
        c.rollback()
        assert rows(other, "SELECT count(*) FROM adbc_tx") == [(1,)], "after the rollback"
        c.commit()
        drop(other, "adbc_tx")


def test_a_transaction_by_text():
    with connect() as other, connect() as c:
        drop(other, "adbc_text")
        rows(other, "CREATE TABLE adbc_text (id BIGINT)")
        rows(c, "BEGIN")
        rows(c, "INSERT INTO adbc_text VALUES (1)")
        assert rows(other, "SELECT count(*) FROM adbc_text") == [(0,)]
        rows(c, "COMMIT")
        assert rows(other, "SELECT count(*) FROM adbc_text") == [(1,)]
        drop(other, "adbc_text")


def test_the_commit_of_a_failed_transaction_fails():
    with connect() as other, connect(autocommit=False) as c:
        drop(other, "adbc_abort")
        rows(other, "CREATE TABLE adbc_abort (id BIGINT)")
        rows(c, "INSERT INTO adbc_abort VALUES (1)")
        try:
            rows(c, "SELECT error('no')")
        except Exception:
            pass
        else:
            raise AssertionError("no error")
        try:
            c.commit()
        except Exception as e:
            assert "abort" in str(e).lower() or "rolled back" in str(e).lower(), e
        else:
            raise AssertionError("a commit of nothing reported success")
        assert rows(other, "SELECT count(*) FROM adbc_abort") == [(0,)]
        drop(other, "adbc_abort")


def test_two_handles_interleaved():
    with connect() as c, c.cursor() as a, c.cursor() as b:
        a.adbc_prepare("SELECT ? + 1")
        b.adbc_prepare("SELECT ? * 10")
        for i in range(5):
            a.execute("SELECT ? + 1", (i,))
            b.execute("SELECT ? * 10", (i,))
            assert a.fetchall() == [(i + 1,)] and b.fetchall() == [(i * 10,)]


def test_metadata():
    with connect() as c:
        drop(c, "adbc_meta")
        rows(c, "CREATE TABLE adbc_meta (id BIGINT, name VARCHAR)")
        schema = c.adbc_get_table_schema("adbc_meta")
        assert schema.names == ["id", "name"], schema
        names = [t["table_name"] for catalog in c.adbc_get_objects(depth="all").read_all().to_pylist()
                 for s in catalog["catalog_db_schemas"] for t in s["db_schema_tables"]]
        assert "adbc_meta" in names and not [n for n in names if n.startswith("ducklake_")], names
        assert "TABLE" in c.adbc_get_table_types(), c.adbc_get_table_types()
        assert c.adbc_get_info()["vendor_name"], c.adbc_get_info()
        drop(c, "adbc_meta")


if __name__ == "__main__":
    adbc.main(globals())
