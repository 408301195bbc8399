package node

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"

	"github.com/qod-io/qod/runtime/guard"
)

// Types of tables, as Flight SQL names them.
const (
	typeTable     = "TABLE"
	typeView      = "VIEW"
	typeTemporary = "LOCAL TEMPORARY"
)

const tablesSQL = `SELECT database_name, schema_name, name, type FROM (
	SELECT database_name, schema_name, table_name AS name,
		CASE WHEN temporary THEN 'LOCAL TEMPORARY' ELSE 'TABLE' END AS type FROM duckdb_tables() WHERE NOT internal
	UNION ALL SELECT database_name, schema_name, view_name,
		CASE WHEN temporary THEN 'LOCAL TEMPORARY' ELSE 'VIEW' END FROM duckdb_views() WHERE NOT internal)
WHERE database_name IN ($1, 'temp') AND schema_name LIKE $2 ESCAPE '\' AND name LIKE $3 ESCAPE '\' ORDER BY ALL`

const columnsSQL = `SELECT database_name, schema_name, table_name, column_name, data_type,
	CASE WHEN is_nullable THEN 'yes' ELSE 'no' END
FROM duckdb_columns() WHERE database_name IN ($1, 'temp') AND schema_name LIKE $2 ESCAPE '\'
	AND table_name LIKE $3 ESCAPE '\' AND NOT internal ORDER BY database_name, schema_name, table_name, column_index`

// GetFlightInfoTables describes the list of tables, with a column more when their schemas are asked for.
func (s *server) GetFlightInfoTables(_ context.Context, cmd flightsql.GetTables, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, tablesSchema(cmd))
}

func tablesSchema(cmd flightsql.GetTables) *arrow.Schema {
	if cmd.GetIncludeSchema() {
		return schema_ref.TablesWithIncludedSchema
	}
	return schema_ref.Tables
}

// DoGetTables lists the tables and views of the lake that the caller may see, with the columns that it may
// see, and the temporary ones of its session.
func (s *server) DoGetTables(ctx context.Context, cmd flightsql.GetTables) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	schema := tablesSchema(cmd)
	types := slices.Clone(cmd.GetTableTypes())
	for i, t := range types {
		if types[i] = strings.ToUpper(t); types[i] == "BASE TABLE" {
			types[i] = typeTable
		}
	}
	var rows [][]string
	err := s.look(ctx, callOf(ctx), func(ctx context.Context, conn *conn, rights *guard.Rights) error {
		args := []string{s.cfg.Lake.Name, pattern(cmd.GetDBSchemaFilterPattern()), pattern(cmd.GetTableNameFilterPattern())}
		found, err := conn.textRows(ctx, tablesSQL, args...)
		if err != nil {
			return err
		}
		for _, row := range found {
			seen := own(row[0]) || rights.Sees(row[1], row[2])
			if seen && s.catalogMatches(cmd.GetCatalog(), row[0]) && (len(types) == 0 || slices.Contains(types, row[3])) {
				rows = append(rows, row)
			}
		}
		if !cmd.GetIncludeSchema() {
			return nil
		}
		columns, err := conn.textRows(ctx, columnsSQL, args...)
		if err != nil {
			return err
		}
		columns = slices.DeleteFunc(columns, func(row []string) bool {
			return !own(row[0]) && !rights.SeesColumn(row[1], row[2], row[3])
		})
		if err := conn.maskTypes(ctx, rights, columns); err != nil {
			return err
		}
		return conn.addSchemas(ctx, rows, columns)
	})
	if err != nil {
		return nil, nil, err
	}
	return rowsOf(schema, rows)
}

// own says whether a catalog is the session's own, to which rights do not apply.
func own(catalog string) bool { return catalog == "temp" }

// maskTypes puts in the types of masked columns those of the masks, which may be NULL whatever the column
// may be. A mask that the engine does not take for the column leaves its type: nothing can be read there.
func (c *conn) maskTypes(ctx context.Context, rights *guard.Rights, columns [][]string) error {
	for _, column := range columns {
		if own(column[0]) {
			continue
		}
		mask := rights.Masked(column[1], column[2], column[3], nullOf(column[4]))
		if mask == "" {
			continue
		}
		described, err := c.textRows(ctx, "SELECT column_type FROM (DESCRIBE "+mask+")")
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err == nil {
			column[4], column[5] = described[0][0], "yes"
		}
	}
	return nil
}

// nullOf is a NULL of a type.
func nullOf(name string) string { return "CAST(NULL AS " + name + ")" }

// addSchemas appends to each row of tables its serialized schema, from rows of columns.
func (c *conn) addSchemas(ctx context.Context, tables, columns [][]string) error {
	byTable := map[[3]string][][]string{}
	for _, row := range columns {
		key := [3]string(row[:3])
		byTable[key] = append(byTable[key], row)
	}
	for i, row := range tables {
		schema, err := c.tableSchema(ctx, byTable[[3]string(row[:3])])
		if err != nil {
			return err
		}
		tables[i] = append(row, string(flight.SerializeSchema(schema, allocator())))
	}
	return nil
}

// tableSchema returns the schema of a table from its columns. The engine turns the names of types into
// types; the statement that asks it for that touches no table and is never run.
func (c *conn) tableSchema(ctx context.Context, columns [][]string) (*arrow.Schema, error) {
	if len(columns) == 0 {
		return arrow.NewSchema(nil, nil), nil
	}
	casts := make([]string, len(columns))
	for i, column := range columns {
		casts[i] = nullOf(column[4])
	}
	cur, err := c.prepare(ctx, "SELECT "+strings.Join(casts, ", "))
	if err != nil {
		return nil, err
	}
	defer cur.close()
	types, err := cur.preparedSchema()
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(columns))
	for i, column := range columns {
		about := flightsql.NewColumnMetadataBuilder().
			CatalogName(column[0]).SchemaName(column[1]).TableName(column[2]).TypeName(column[4]).
			IsAutoIncrement(false).IsReadOnly(false).IsSearchable(true)
		if d, ok := types.Field(i).Type.(arrow.DecimalType); ok {
			about = about.Precision(d.GetPrecision()).Scale(d.GetScale())
		}
		fields[i] = arrow.Field{
			Name: column[3], Type: types.Field(i).Type, Nullable: column[5] == "yes", Metadata: about.Metadata(),
		}
	}
	return arrow.NewSchema(fields, nil), nil
}
