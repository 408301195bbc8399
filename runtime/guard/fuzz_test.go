package guard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"

	"github.com/qod-io/qod/runtime/wire"
	"github.com/qod-io/qod/test/attacks"
)

// target is the world of test/attacks as the engine of a node has it, with more that the analyst's
// statements can begin from.
type target struct {
	db     duckdb.Database
	before string // what the analyst may not see, as it was
}

func newTarget(t testing.TB) *target {
	t.Helper()
	statements, err := attacks.Lake()
	if err != nil {
		t.Fatal(err)
	}
	w, dir := &target{db: empty(t)}, t.TempDir()
	p := lakeIn(t, w.db, dir, append(statements,
		"CREATE TABLE desk.copy AS SELECT * EXCLUDE (ssn) REPLACE ('x' AS card) FROM orders WHERE region = 'EU'",
		"CREATE TABLE desk.t (a VARCHAR)", "CREATE VIEW desk.events_view AS SELECT * FROM lake.main.events",
		"SET threads = 1", "SET memory_limit = '512MB'", "SET autoload_known_extensions = false", "SET autoinstall_known_extensions = false",
		"SET allowed_directories = ['"+dir+"/']", "SET enable_external_access = false", "SET lock_configuration = true")...)
	if w.before, err = hiddenState(p); err != nil {
		t.Fatal(err)
	}
	return w
}

// hiddenState tells apart any two states of what the analyst may neither see nor change.
func hiddenState(p *parser) (string, error) {
	rows, err := p.rows(`SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (
		SELECT o::VARCHAR AS x FROM lake.main.orders o WHERE region IS DISTINCT FROM 'EU' UNION ALL SELECT s::VARCHAR FROM lake.main.salaries s
		UNION ALL SELECT a::VARCHAR FROM lake.main.accounts a UNION ALL SELECT m::VARCHAR FROM lake.hidden.members m
		UNION ALL SELECT c::VARCHAR FROM lake.main.canary_table c UNION ALL SELECT c::VARCHAR FROM lake.canary_schema.canary_inner c
		UNION ALL SELECT v::VARCHAR FROM lake.main.canary_view v UNION ALL SELECT r::VARCHAR FROM lake.main.regions r
		UNION ALL SELECT 'the analyst wrote a card' FROM lake.main.orders
			WHERE NOT coalesce(card LIKE '%CANARYCARD%' AND ssn LIKE 'CANARYSSN%', false))`)
	if err != nil {
		return "", err
	}
	return rows[0][0], nil
}

// maxLength bounds the statements that are tried, in bytes.
const maxLength = 4000

// statementLimit is how long a statement may run before it is interrupted, again and again.
const statementLimit = 200 * time.Millisecond

// limited runs f on a connection and interrupts it when it takes too long.
func limited(p *parser, f func()) {
	ctx, done := context.WithCancel(context.Background())
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		wait := time.NewTimer(statementLimit)
		defer wait.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-wait.C:
				duckdb.Interrupt(p.conn)
				wait.Reset(20 * time.Millisecond)
			}
		}
	}()
	f()
	done()
	<-quiet
}

var errBroken = errors.New("the instance is broken")

// attack runs a statement that the guard allowed as a node does, and undoes it. It returns what the
// client gets to see, and what of it he should not.
func (w *target) attack(t *testing.T, st Statement, sql string) (findings []string, err error) {
	p := &parser{}
	if duckdb.Connect(w.db, &p.conn) != duckdb.StateSuccess {
		return nil, errBroken
	}
	defer p.close()
	for _, own := range []string{"USE lake", "BEGIN TRANSACTION"} {
		if _, err := p.rows(own); err != nil {
			return nil, errBroken
		}
	}
	seen, failed := p.answer(st)
	if strings.Contains(seen, "database has been invalidated") || strings.Contains(seen, "INTERNAL Error") {
		return nil, errBroken
	}
	if strings.Contains(seen, "disabled by configuration") || strings.Contains(seen, "disabled through configuration") {
		findings = append(findings, "it reaches for a file")
	}
	if failed && st.Protected {
		seen = ""
	}
	if failed && st.Restricted {
		seen = unnamed(seen)
	}
	if !failed && !st.ReadOnly {
		if state, err := hiddenState(p); err != nil || state != w.before {
			findings = append(findings, fmt.Sprintf("what is hidden was changed: %v", err))
		}
		seen += p.written(t)
	}
	return append(findings, attacks.Leaks(seen, sql)...), nil
}

// answer runs a statement and returns all texts and numbers of its result, or its error.
func (p *parser) answer(st Statement) (seen string, failed bool) {
	limited(p, func() {
		if st.Original != "" {
			var names string
			if names, failed = p.named(st.Original); failed {
				seen = names
				return
			}
			seen = names
		}
		var prepared duckdb.PreparedStatement
		defer duckdb.DestroyPrepare(&prepared)
		if duckdb.Prepare(p.conn, st.SQL, &prepared) != duckdb.StateSuccess {
			seen, failed = duckdb.PrepareError(prepared), true
			return
		}
		if !Matches(st, duckdb.PreparedStatementType(prepared)) {
			seen, failed = "", true
			return
		}
		var result duckdb.Result
		defer duckdb.DestroyResult(&result)
		if duckdb.ExecutePrepared(prepared, &result) != duckdb.StateSuccess {
			seen, failed = duckdb.ResultError(&result), true
			return
		}
		seen += everythingIn(&result, st.Original == "")
	})
	return seen, failed
}

// named is the names of the columns that a statement would have, or why it has none.
func (p *parser) named(sql string) (names string, failed bool) {
	var prepared duckdb.PreparedStatement
	defer duckdb.DestroyPrepare(&prepared)
	if duckdb.Prepare(p.conn, sql, &prepared) != duckdb.StateSuccess {
		return duckdb.PrepareError(prepared), true
	}
	var b strings.Builder
	for i := range duckdb.PreparedStatementColumnCount(prepared) {
		fmt.Fprintln(&b, duckdb.PreparedStatementColumnName(prepared, i))
	}
	return b.String(), false
}

// unnamed is an error without the names that the node leaves out of it for who does not see all of them.
func unnamed(message string) string {
	if strings.HasPrefix(message, "Catalog Error") {
		return ""
	}
	line, _, _ := strings.Cut(message, "\n")
	for _, list := range []string{" Did you mean", " Candidate"} {
		line, _, _ = strings.Cut(line, list)
	}
	return line
}

// written is what lies where the analyst may both write and read.
func (p *parser) written(t *testing.T) string {
	var b strings.Builder
	names, err := p.rows("SELECT 'lake.desk.\"' || replace(table_name, '\"', '\"\"') || '\"' FROM information_schema.tables WHERE table_schema = 'desk' AND table_catalog = 'lake' UNION ALL SELECT 'lake.main.events'")
	if err != nil {
		t.Fatalf("list what was written: %v", err)
	}
	for _, name := range names {
		limited(p, func() {
			var result duckdb.Result
			defer duckdb.DestroyResult(&result)
			if duckdb.Query(p.conn, "FROM "+name[0], &result) == duckdb.StateSuccess {
				b.WriteString(everythingIn(&result, true))
			}
		})
	}
	return b.String()
}

// maxSeen bounds how much of a result is looked at, in bytes.
const maxSeen = 1 << 20

// everythingIn is the texts and numbers of a result, a line each, and the names of its columns.
func everythingIn(result *duckdb.Result, names bool) string {
	var b strings.Builder
	for i := range duckdb.ColumnCount(result) {
		if names {
			fmt.Fprintln(&b, duckdb.ColumnName(result, i))
		}
	}
	for b.Len() < maxSeen {
		chunk := duckdb.FetchChunk(*result)
		if chunk.Ptr == nil {
			break
		}
		for i := range duckdb.DataChunkGetColumnCount(chunk) {
			describe(&b, duckdb.DataChunkGetVector(chunk, i), int(duckdb.DataChunkGetSize(chunk)))
		}
		duckdb.DestroyDataChunk(&chunk)
	}
	return b.String()
}

// describe writes the first n values of a vector. Of types that are no text and no number there is
// nothing hidden in the world.
func describe(b *strings.Builder, v duckdb.Vector, n int) {
	kind := duckdb.VectorGetColumnType(v)
	defer duckdb.DestroyLogicalType(&kind)
	switch duckdb.GetTypeId(kind) {
	case duckdb.TypeVarchar, duckdb.TypeBlob:
		texts := make([][]string, n)
		for i := range texts {
			texts[i] = make([]string, 1)
		}
		copyStrings(texts, 0, v)
		for _, text := range texts {
			fmt.Fprintln(b, text[0])
		}
	case duckdb.TypeBigInt, duckdb.TypeUBigInt:
		numbers(b, v, unsafe.Slice((*uint64)(duckdb.VectorGetData(v)), n))
	case duckdb.TypeHugeInt, duckdb.TypeUHugeInt: // the lower half comes first
		numbers(b, v, unsafe.Slice((*[2]uint64)(duckdb.VectorGetData(v)), n))
	case duckdb.TypeDouble:
		numbers(b, v, unsafe.Slice((*float64)(duckdb.VectorGetData(v)), n))
	case duckdb.TypeList, duckdb.TypeMap:
		describe(b, duckdb.ListVectorGetChild(v), int(duckdb.ListVectorGetSize(v)))
	case duckdb.TypeArray:
		describe(b, duckdb.ArrayVectorGetChild(v), n*int(duckdb.ArrayTypeArraySize(kind)))
	case duckdb.TypeStruct:
		for i := range duckdb.StructTypeChildCount(kind) {
			fmt.Fprintln(b, duckdb.StructTypeChildName(kind, i))
			describe(b, duckdb.StructVectorGetChild(v, i), n)
		}
	}
}

func numbers[T any](b *strings.Builder, v duckdb.Vector, values []T) {
	validity := duckdb.VectorGetValidity(v)
	for i, value := range values {
		if validity == nil || duckdb.ValidityRowIsValid(validity, duckdb.IdxT(i)) {
			if number, ok := any(value).(float64); ok {
				fmt.Fprintf(b, "%.0f\n", number)
			} else {
				fmt.Fprintln(b, value)
			}
		}
	}
}

// seeds returns the statements of test/attacks, but for those that are only large.
func seeds(t testing.TB) []string {
	t.Helper()
	sections, err := attacks.All()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, section := range sections {
		if strings.HasPrefix(section.Name, "limits/") {
			continue
		}
		for _, session := range section.Sessions {
			for _, a := range session {
				all = append(all, a.SQL)
			}
		}
	}
	return all
}

// FuzzAttacks changes a statement of test/attacks by a recipe, runs what comes out if the guard allows it,
// and looks for what the user may not see in all that comes back and in all that he can read afterwards.
func FuzzAttacks(f *testing.F) {
	m := mutator{statements: seeds(f)}
	for i := range 64 {
		f.Add(uint16(i*len(m.statements)/64), []byte{byte(i), byte(i * 5), byte(i / 3), byte(i * 11)})
	}
	permissions, err := attacks.Analyst()
	if err != nil {
		f.Fatal(err)
	}
	g := newGuard(f)
	scope := of(f, g, permissions)
	scope.Prepared = false
	w := newTarget(f)
	f.Fuzz(func(t *testing.T, pick uint16, recipe []byte) {
		sql := m.apply(m.statements[int(pick)%len(m.statements)], recipe)
		if len(sql) > maxLength {
			return
		}
		st, err := g.Check(t.Context(), sql, scope)
		if err != nil || st.NoOp || st.Class == wire.Transaction {
			return
		}
		findings, err := w.attack(t, st, sql)
		if errors.Is(err, errBroken) {
			t.Skip(err)
		}
		if len(findings) > 0 {
			t.Errorf("%s\nruns as %s\nand shows %q", sql, st.SQL, findings)
		}
	})
}
