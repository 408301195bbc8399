package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// contentsLimit is how many columns and tables are read of one lake.
const contentsLimit = 50000

// Contents lists the schemas, tables and views of a lake as they are now. It looks with the lake's own role,
// changes nothing, and gives up on a lake that is too large or answers late.
func (c *Catalog) Contents(ctx context.Context, o store.Object, secret func(attr string) ([]byte, error)) (schema.Contents, error) {
	password, err := secret(PasswordAttr)
	if err != nil {
		return nil, fmt.Errorf("read secret of %s: %w", o.Addr(), err)
	}
	lake, err := c.LakeOf(o, password)
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx, login{database: lake.Database, user: lake.User, password: lake.Password})
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	contents := schema.Contents{}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '2s'"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, contentsQuery, contentsLimit+1)
		if err != nil {
			return err
		}
		return collect(rows, contents)
	})
	if err != nil {
		return nil, fmt.Errorf("look into lake %s: %w", lake.Database, err)
	}
	return contents, nil
}

// A view has no columns here: which it has, its definition says.
const contentsQuery = `
SELECT s.schema_name, coalesce(t.table_name, ''), coalesce(c.column_name, '')
FROM public.ducklake_schema s
LEFT JOIN public.ducklake_table t ON t.schema_id = s.schema_id AND t.end_snapshot IS NULL
LEFT JOIN public.ducklake_column c ON c.table_id = t.table_id AND c.end_snapshot IS NULL AND c.parent_column IS NULL
WHERE s.end_snapshot IS NULL
UNION ALL
SELECT s.schema_name, v.view_name, ''
FROM public.ducklake_schema s
JOIN public.ducklake_view v ON v.schema_id = s.schema_id AND v.end_snapshot IS NULL
WHERE s.end_snapshot IS NULL
LIMIT $1`

func collect(rows pgx.Rows, contents schema.Contents) error {
	var in, table, column string
	n := 0
	_, err := pgx.ForEachRow(rows, []any{&in, &table, &column}, func() error {
		if n++; n > contentsLimit {
			return fmt.Errorf("it has more than %d columns", contentsLimit)
		}
		if contents[in] == nil {
			contents[in] = map[string][]string{}
		}
		if table == "" {
			return nil
		}
		columns := contents[in][table]
		if column != "" {
			columns = append(columns, column)
		}
		contents[in][table] = columns
		return nil
	})
	return err
}
