// Package tpch gives the queries of TPC-H, which DuckDB's own extension holds, to tests and benchmarks.
package tpch

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Queries returns the 22 queries in order, without semicolons. It takes them from the extension below a
// directory of extensions.
func Queries(extensions string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(extensions, "*", "*", "tpch.duckdb_extension"))
	if err != nil || len(found) == 0 {
		return nil, errors.Join(fmt.Errorf("find tpch extension below %q: none is there", extensions), err)
	}
	var db duckdb.Database
	var conn duckdb.Connection
	if duckdb.Open(":memory:", &db) != duckdb.StateSuccess {
		return nil, errors.New("open DuckDB: it does not start")
	}
	defer duckdb.Close(&db)
	if duckdb.Connect(db, &conn) != duckdb.StateSuccess {
		return nil, errors.New("connect to DuckDB: it refuses")
	}
	defer duckdb.Disconnect(&conn)
	var out []string
	for _, sql := range []string{fmt.Sprintf("LOAD '%s'", found[0]), "SELECT query FROM tpch_queries() ORDER BY query_nr"} {
		if out, err = column(conn, sql); err != nil {
			return nil, fmt.Errorf("read queries of TPC-H: %w", err)
		}
	}
	if len(out) != 22 {
		return nil, fmt.Errorf("read queries of TPC-H: there are %d", len(out))
	}
	for n := range out {
		out[n] = strings.TrimSuffix(strings.TrimSpace(out[n]), ";")
	}
	return out, nil
}

// column returns the first column of a result that fits in one chunk, if it is text.
func column(conn duckdb.Connection, sql string) ([]string, error) {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(conn, sql, &result) != duckdb.StateSuccess {
		return nil, errors.New(duckdb.ResultError(&result))
	}
	chunk := duckdb.FetchChunk(result)
	if chunk.Ptr == nil {
		return nil, nil
	}
	defer duckdb.DestroyDataChunk(&chunk)
	if duckdb.ColumnType(&result, 0) != duckdb.TypeVarchar {
		return nil, nil
	}
	cells := unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(duckdb.DataChunkGetVector(chunk, 0))),
		int(duckdb.DataChunkGetSize(chunk)))
	out := make([]string, len(cells))
	for i := range cells {
		out[i] = duckdb.StringTData(&cells[i])
	}
	return out, nil
}
