package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/qod-io/qod/runtime/wire"
)

// ErrTableExists is returned when a table that LoadTPCH would make exists with other rows.
var ErrTableExists = errors.New("table exists with other rows")

// Loaded says what LoadTPCH found or made.
type Loaded struct {
	Schema  string
	Already bool // all tables existed with these numbers of rows; nothing was changed
	Tables  []LoadedTable
}

// LoadedTable is one table and its number of rows.
type LoadedTable struct {
	Name string
	Rows int64
}

func tpchTables() []string {
	return []string{"customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"}
}

// LoadTPCH generates the TPC-H tables of the task's scale factor in a scratch catalog and creates them
// in the lake's schema, all in one transaction. When all of them exist with the same numbers of rows it
// changes nothing; when one exists otherwise it returns ErrTableExists and changes nothing. Schema
// defaults to the lake's default schema.
func LoadTPCH(ctx context.Context, task wire.LakeTask, log *slog.Logger) (Loaded, error) {
	loaded, err := loadTPCH(ctx, task, log)
	if err != nil {
		return Loaded{}, fmt.Errorf("load tpch: %w", err)
	}
	return loaded, nil
}

func loadTPCH(ctx context.Context, task wire.LakeTask, log *slog.Logger) (Loaded, error) {
	if task.ScaleFactor <= 0 {
		return Loaded{}, errors.New("the scale factor must be above 0")
	}
	e, c, err := openTask(ctx, task, "tpch", "postgres_scanner", "ducklake")
	if err != nil {
		return Loaded{}, err
	}
	defer e.close()
	defer c.close()
	if err := attach(ctx, c, task.Lake, false); err != nil {
		return Loaded{}, err
	}
	loaded := Loaded{Schema: task.Schema}
	if loaded.Schema == "" {
		loaded.Schema = defaultSchema(task.Lake)
	}
	target := quoteName(task.Lake.Name) + "." + quoteName(loaded.Schema)
	existing, err := existingTables(ctx, c, task.Lake.Name, loaded.Schema)
	if err != nil {
		return Loaded{}, err
	}
	if len(existing) > 0 && len(existing) < len(tpchTables()) {
		return Loaded{}, fmt.Errorf("%s in schema %s: %w", strings.Join(existing, ", "), loaded.Schema, ErrTableExists)
	}
	log.InfoContext(ctx, "generating", "scaleFactor", task.ScaleFactor)
	err = c.runAll(ctx, "ATTACH ':memory:' AS scratch", "USE scratch", fmt.Sprintf("CALL dbgen(sf=%g)", task.ScaleFactor))
	if err != nil {
		return Loaded{}, err
	}
	if loaded.Tables, err = countTables(ctx, c, "scratch.main"); err != nil {
		return Loaded{}, err
	}
	if len(existing) == 0 {
		return loaded, copyTables(ctx, c, target, loaded.Tables, log)
	}
	loaded.Already = true
	return loaded, sameTables(ctx, c, target, loaded)
}

func existingTables(ctx context.Context, c *conn, lake, schema string) ([]string, error) {
	batches, err := c.collect(ctx, "SELECT table_name FROM duckdb_tables() WHERE database_name=$1 AND schema_name=$2 "+
		"AND list_contains(string_split($3, ','), table_name) ORDER BY 1", lake, schema, strings.Join(tpchTables(), ","))
	if err != nil {
		return nil, err
	}
	defer releaseAll(batches)
	var names []string
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			names = append(names, strings.Clone(b.Column(0).(*array.String).Value(i)))
		}
	}
	return names, nil
}

func countTables(ctx context.Context, c *conn, schema string) ([]LoadedTable, error) {
	tables := make([]LoadedTable, 0, len(tpchTables()))
	for _, name := range tpchTables() {
		batches, err := c.collect(ctx, "SELECT count(*) FROM "+schema+"."+quoteName(name))
		if err != nil {
			return nil, err
		}
		tables = append(tables, LoadedTable{Name: name, Rows: batches[0].Column(0).(*array.Int64).Value(0)})
		releaseAll(batches)
	}
	return tables, nil
}

func sameTables(ctx context.Context, c *conn, target string, want Loaded) error {
	have, err := countTables(ctx, c, target)
	if err != nil {
		return err
	}
	for i, t := range have {
		if t != want.Tables[i] {
			return fmt.Errorf("%s in schema %s has %d rows, not %d: %w",
				t.Name, want.Schema, t.Rows, want.Tables[i].Rows, ErrTableExists)
		}
	}
	return nil
}

func copyTables(ctx context.Context, c *conn, target string, tables []LoadedTable, log *slog.Logger) error {
	if err := c.runAll(ctx, "BEGIN TRANSACTION", "CREATE SCHEMA IF NOT EXISTS "+target); err != nil {
		return err
	}
	for _, t := range tables {
		sql := fmt.Sprintf("CREATE TABLE %s.%s AS FROM scratch.main.%s", target, quoteName(t.Name), quoteName(t.Name))
		if err := c.run(ctx, sql); err != nil {
			return errors.Join(err, c.run(context.WithoutCancel(ctx), "ROLLBACK"))
		}
		log.InfoContext(ctx, "table is written", "table", t.Name, "rows", t.Rows)
	}
	return c.run(ctx, "COMMIT")
}
