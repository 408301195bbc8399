package test

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/test/tpch"
)

// TestPoliciesAreFilteredCopies runs TPC-H and a statement of each syntax as a user under policies, and
// the same text as the owner over copies that were filtered and masked by hand: the same rows and the
// same columns come out.
func TestPoliciesAreFilteredCopies(t *testing.T) {
	i := install(t, "")
	i.writePolicies(t)
	i.must(t, "apply", "--auto-approve")
	s := i.serve(t)
	i.must(t, "load", "tpch", "--sf", "0.01", "acme/tpch")
	owner, analyst := i.login(t, s.Flight, "loader"), i.login(t, s.Flight, "analyst")
	owner.runFile(t, "testdata/policies/copies.sql")
	owner.run(t, "USE copies")
	statements, err := tpch.Queries(needed(t, "QOD_TEST_EXTENSION_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(readFile(t, "testdata/policies/statements.sql")) {
		if !strings.HasPrefix(line, "--") {
			statements = append(statements, strings.TrimSpace(line))
		}
	}
	if len(statements) < 60 {
		t.Errorf("%d statements, want 60 at least", len(statements))
	}
	empty := 0
	for _, sql := range statements {
		got, err := analyst.table(strings.ReplaceAll(sql, "main_or_copy", "main"))
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		want, err := owner.table(strings.ReplaceAll(sql, "main_or_copy", "copies"))
		if err != nil {
			t.Fatalf("%s, over the copies: %v", sql, err)
		}
		if len(want) < 2 {
			empty++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-copies +policies):\n%s", sql, diff[:min(len(diff), 2000)])
		}
	}
	if empty > 2 {
		t.Errorf("%d statements gave no rows to compare", empty)
	}
}

// writePolicies writes the configuration with policies.
func (i *installation) writePolicies(t testing.TB) {
	t.Helper()
	for _, name := range []string{"main.qod.hcl", "policies.qod.hcl"} {
		i.writeFile(t, name, readFile(t, "testdata/policies/"+name))
	}
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// table returns a result as lines: the columns with their types, and the rows in order of their text.
func (c *client) table(sql string) ([]string, error) {
	info, err := c.Execute(c.ctx, sql)
	if err != nil {
		return nil, err
	}
	r, err := c.DoGet(c.ctx, info.Endpoint[0].Ticket)
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var head []string
	for _, f := range r.Schema().Fields() {
		head = append(head, f.Name+" "+f.Type.String())
	}
	var rows []string
	for r.Next() {
		rows = append(rows, lines(r.RecordBatch())...)
	}
	if err := r.Err(); err != nil && err != io.EOF {
		return nil, err
	}
	slices.Sort(rows)
	return append([]string{strings.Join(head, ", ")}, rows...), nil
}

func lines(b arrow.RecordBatch) []string {
	rows := make([]string, b.NumRows())
	for i := range rows {
		cells := make([]string, b.NumCols())
		for j := range cells {
			cells[j] = b.Column(j).ValueStr(i)
		}
		rows[i] = strings.Join(cells, "|")
	}
	return rows
}
