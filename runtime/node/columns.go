package node

import (
	"context"

	duck "github.com/duckdb/duckdb-go-bindings"
	"google.golang.org/grpc/codes"
)

// nameColumns takes the names of the result's columns from the statement as it was before policies were
// put into it: those that the engine makes of expressions would show the policies. The original is only
// prepared.
func (q *cursor) nameColumns(ctx context.Context, original string) error {
	o, err := q.conn.prepareVeiled(ctx, original, q.veil)
	if err != nil {
		return err
	}
	defer o.close()
	names, known := o.columnNames()
	if _, both := q.columnNames(); !known || !both || len(names) != int(duck.PreparedStatementColumnCount(q.stmt)) {
		return faultf(codes.InvalidArgument, "", "name the column: an expression over a table with policies needs "+
			"an alias here, as in (SELECT …) AS name; and parameters in it a type, as in ?::INTEGER")
	}
	q.columns = names
	return nil
}

// columnNames are the names of the columns that the statement returns. They are not known while they
// depend on the types of parameters.
func (q *cursor) columnNames() (names []string, known bool) {
	names = make([]string, duck.PreparedStatementColumnCount(q.stmt))
	for i := range names {
		t := duck.PreparedStatementColumnLogicalType(q.stmt, duck.IdxT(i))
		known := t.Ptr != nil && duck.GetTypeId(t) != duck.TypeInvalid
		duck.DestroyLogicalType(&t)
		if !known {
			return nil, false
		}
		names[i] = duck.PreparedStatementColumnName(q.stmt, duck.IdxT(i))
	}
	return names, true
}

// renamed puts the names of the original over those of the statement that ran.
func (q *cursor) renamed(names []string) ([]string, error) {
	if q.columns == nil {
		return names, nil
	}
	if len(names) != len(q.columns) {
		return nil, faultf(codes.Internal, "", "the result has %d columns, and %d were prepared", len(names), len(q.columns))
	}
	return q.columns, nil
}
