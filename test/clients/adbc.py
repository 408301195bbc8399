"""What the suites of adbc-driver-flightsql share.

The address, user, password and certificate come from the environment: QOD_URI, QOD_USER, QOD_SECRET, QOD_CA.
"""

import os
import sys
import time
import traceback

import adbc_driver_flightsql.dbapi as flightsql
from adbc_driver_flightsql import DatabaseOptions


def connect(autocommit=True):
    options = {
        "username": os.environ["QOD_USER"],
        "password": os.environ["QOD_SECRET"],
        DatabaseOptions.TLS_ROOT_CERTS.value: open(os.environ["QOD_CA"]).read(),
        DatabaseOptions.WITH_MAX_MSG_SIZE.value: str(64 << 20),
    }
    return flightsql.connect(os.environ["QOD_URI"], db_kwargs=options, autocommit=autocommit)


def rows(connection, statement, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall()


def table(connection, statement):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetch_arrow_table()


def main(suite):
    """Runs the functions of a module that are named test_*, or those that the command line names."""
    failed = 0
    only = sys.argv[1:]
    for name, test in list(suite.items()):
        if not name.startswith("test_") or only and name not in only:
            continue
        start = time.monotonic()
        try:
            test()
            print(f"ok   {name} {time.monotonic() - start:.2f} s", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
    sys.exit(1 if failed else 0)
