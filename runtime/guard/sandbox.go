package guard

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// serialize gives the syntax tree of a text. It parses and binds nothing.
const serialize = "SELECT json_serialize_sql($1::VARCHAR, skip_null := true, skip_empty := true, " +
	"skip_default := true)::VARCHAR"

// ErrParser is in the chain of the error when parsing itself failed: memory is short, or the instance
// is broken, and then for good. A wrong statement is no such case.
var ErrParser = errors.New("the parser failed")

// errClosed is returned for a check after Close.
var errClosed = errors.New("guard is closed")

// sandbox is a DuckDB instance without catalog, files, network and extensions, for parsing only.
type sandbox struct {
	db     duckdb.Database
	idle   chan *parser
	size   int
	closed chan struct{}
}

// parser is one connection of the sandbox. One goroutine uses it at a time.
type parser struct {
	conn duckdb.Connection
	tree duckdb.PreparedStatement
}

// lockdown is applied in this order; nothing can be changed after the last line.
func lockdown(memory int64) []string {
	return []string{
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET allow_community_extensions = false",
		"SET allow_persistent_secrets = false",
		"SET temp_directory = ''",
		"SET threads = 1",
		"SET max_expression_depth = 1000",
		fmt.Sprintf("SET memory_limit = '%dB'", memory),
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	}
}

func openSandbox(size int, memory int64) (*sandbox, error) {
	s := &sandbox{idle: make(chan *parser, size), closed: make(chan struct{})}
	if duckdb.Open(":memory:", &s.db) != duckdb.StateSuccess {
		return nil, errors.New("open sandbox: DuckDB does not start")
	}
	for range size {
		p, err := s.connect(memory)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("open sandbox: %w", err)
		}
		memory = 0 // locked by the first
		s.size++
		s.idle <- p
	}
	return s, nil
}

// connect opens a parser. With memory it locks the instance first.
func (s *sandbox) connect(memory int64) (*parser, error) {
	p := &parser{}
	if duckdb.Connect(s.db, &p.conn) != duckdb.StateSuccess {
		return nil, errors.New("connect: DuckDB refuses")
	}
	if memory > 0 {
		for _, sql := range lockdown(memory) {
			if _, err := p.rows(sql); err != nil {
				p.close()
				return nil, fmt.Errorf("lock down: %w", err)
			}
		}
	}
	if duckdb.Prepare(p.conn, serialize, &p.tree) != duckdb.StateSuccess {
		err := errors.New(duckdb.PrepareError(p.tree))
		p.close()
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return p, nil
}

func (p *parser) close() {
	duckdb.DestroyPrepare(&p.tree)
	duckdb.Disconnect(&p.conn)
}

// close waits for the parsers in use. It is called once.
func (s *sandbox) close() {
	close(s.closed)
	for range s.size {
		p := <-s.idle
		p.close()
	}
	duckdb.Close(&s.db)
}

// take returns a parser that give takes back.
func (s *sandbox) take(ctx context.Context) (*parser, error) {
	select {
	case <-s.closed:
		return nil, errClosed
	default:
	}
	select {
	case <-s.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case p := <-s.idle:
		return p, nil
	}
}

func (s *sandbox) give(p *parser) { s.idle <- p }

// parse returns the syntax tree of a text as JSON.
func (s *sandbox) parse(ctx context.Context, sql string) (string, error) {
	p, err := s.take(ctx)
	if err != nil {
		return "", fmt.Errorf("parse statement: %w", err)
	}
	defer s.give(p)
	if duckdb.BindVarcharLength(p.tree, 1, sql, duckdb.IdxT(len(sql))) != duckdb.StateSuccess {
		return "", fmt.Errorf("parse statement: %s", duckdb.PrepareError(p.tree))
	}
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.ExecutePrepared(p.tree, &result) != duckdb.StateSuccess {
		return "", fmt.Errorf("%w: %s", ErrParser, shorten(duckdb.ResultError(&result), maxMessage))
	}
	rows := collect(&result)
	if len(rows) != 1 || len(rows[0]) != 1 {
		return "", fmt.Errorf("%w: no syntax tree", ErrParser)
	}
	return rows[0][0], nil
}

// count returns how many statements DuckDB takes a text for. The text has to be one whose first word
// is known: DuckDB carries out a part of some others, like IMPORT DATABASE, when it only reads them.
func (s *sandbox) count(ctx context.Context, sql string) (int, error) {
	p, err := s.take(ctx)
	if err != nil {
		return 0, fmt.Errorf("count statements: %w", err)
	}
	defer s.give(p)
	var extracted duckdb.ExtractedStatements
	defer duckdb.DestroyExtracted(&extracted)
	n := duckdb.ExtractStatements(p.conn, sql, &extracted)
	if n == 0 {
		if message := duckdb.ExtractStatementsError(extracted); message != "" {
			return 0, syntaxError(message)
		}
	}
	return int(n), nil
}

// rows runs a query of the guard's own, whose columns are all VARCHAR.
func (p *parser) rows(sql string) ([][]string, error) {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(p.conn, sql, &result) != duckdb.StateSuccess {
		return nil, errors.New(duckdb.ResultError(&result))
	}
	return collect(&result), nil
}

// collect copies the VARCHAR columns of a result. NULL reads as empty.
func collect(result *duckdb.Result) [][]string {
	var out [][]string
	columns := int(duckdb.ColumnCount(result))
	for {
		chunk := duckdb.FetchChunk(*result)
		if chunk.Ptr == nil {
			return out
		}
		size := int(duckdb.DataChunkGetSize(chunk))
		base := len(out)
		for range size {
			out = append(out, make([]string, columns))
		}
		for c := range columns {
			if duckdb.ColumnType(result, duckdb.IdxT(c)) == duckdb.TypeVarchar {
				copyStrings(out[base:], c, duckdb.DataChunkGetVector(chunk, duckdb.IdxT(c)))
			}
		}
		duckdb.DestroyDataChunk(&chunk)
	}
}

func copyStrings(out [][]string, column int, vector duckdb.Vector) {
	cells := unsafe.Slice((*duckdb.StringT)(duckdb.VectorGetData(vector)), len(out))
	validity := duckdb.VectorGetValidity(vector)
	for row := range out {
		if validity == nil || duckdb.ValidityRowIsValid(validity, duckdb.IdxT(row)) {
			out[row][column] = duckdb.StringTData(&cells[row])
		}
	}
}
