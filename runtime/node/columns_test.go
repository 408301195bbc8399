package node

import (
	"testing"

	duck "github.com/duckdb/duckdb-go-bindings"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/wire"
)

// TestColumnsOfTheOriginal: a rewritten statement's result has the names that the original's would have.
func TestColumnsOfTheOriginal(t *testing.T) {
	c := memoryConn(t)
	if err := c.runAll(t.Context(), "CREATE TABLE t AS SELECT 1 AS a, 'EU' AS region"); err != nil {
		t.Fatal(err)
	}
	const hidden = "(SELECT * FROM t WHERE region = 'CANARY' OR true)"
	tests := map[string]struct {
		original, sql string
		want          []string // nil: refused
	}{
		"subquery":    {"SELECT (SELECT max(a) FROM t), a FROM t", "SELECT (SELECT max(a) FROM " + hidden + " t), a FROM t", []string{"(SELECT max(a) FROM t)", "a"}},
		"exists":      {"SELECT EXISTS (FROM t)", "SELECT EXISTS (FROM " + hidden + " t)", []string{"EXISTS(SELECT * FROM t)"}},
		"other count": {"SELECT * FROM t", "SELECT a FROM t", nil},
		"open type":   {"SELECT ? + (SELECT max(a) FROM t)", "SELECT ? + (SELECT max(a) FROM " + hidden + " t)", nil},
		"typed":       {"SELECT ?::INT + (SELECT max(a) FROM t)", "SELECT ?::INT + (SELECT max(a) FROM " + hidden + " t)", []string{"(CAST($1 AS INTEGER) + (SELECT max(a) FROM t))"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			st := statement{Statement: guard.Statement{SQL: test.sql, Original: test.original, Kind: guard.Select, Class: wire.Read, Protected: true}}
			q, err := c.prepareChecked(t.Context(), st)
			if test.want == nil {
				if err == nil || asFault(err).code != codes.InvalidArgument {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer q.close()
			prepared, err := q.preparedSchema()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range prepared.Fields() {
				got = append(got, f.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if n := duck.NParams(q.stmt); n > 0 {
				one := duck.CreateInt32(1)
				defer duck.DestroyValue(&one)
				if err := q.bind([]duckValue{one}); err != nil {
					t.Fatal(err)
				}
			}
			if err := q.start(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			if !q.schema.Equal(prepared) {
				t.Errorf("the result has %v, %v was told", q.schema, prepared)
			}
		})
	}
}
