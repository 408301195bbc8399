package node

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/guard"
	"github.com/qod-io/qod/runtime/sqltext"
	"github.com/qod-io/qod/runtime/wire"
)

// look lets f query the catalog for a session. What f finds it may tell only as far as the rights go.
func (s *server) look(ctx context.Context, c *call, f func(context.Context, *conn, *guard.Rights) error) error {
	rights, err := c.rights(ctx)
	if err != nil {
		return err
	}
	c.say(wire.ClassKey, string(wire.Metadata))
	n, done := s.sessions.use(c)
	defer done()
	x, finish := s.running.begin(ctx, s.live.Load().StatementTimeout, n.id, c.statementID())
	defer finish()
	v := veil{depth: overNames} // the engine may fail on what others have made
	if rights.Admin() {
		v.depth = overNothing
	}
	return s.note(s.lookOn(x, n, func(ctx context.Context, c *conn) error { return v.over(f(ctx, c, rights)) }))
}

// lookOn runs f in the session's lane when nobody is on it, so that it shows what the session did, and
// else beside it, so that it never waits for a result that is being read.
func (s *server) lookOn(x *execution, n *session, f func(context.Context, *conn) error) error {
	if l := n.tryMain(); l != nil {
		defer s.leave(n, l)
		x.protected.Store(l.open)
		return s.settle(n, l, s.planned(x.ctx, l, f))
	}
	l := s.newLane()
	var err error
	if l.conn, err = s.pool.get(x.ctx); err != nil {
		return err
	}
	err = s.planned(x.ctx, l, f)
	l.dirty = err != nil
	s.dissolve(l)
	return err
}

// planned runs f on a lane's connection with the latch on plans.
func (s *server) planned(ctx context.Context, l *lane, f func(context.Context, *conn) error) error {
	plan, err := s.planning(ctx, l)
	if err != nil {
		return err
	}
	defer plan.release()
	return f(ctx, l.conn)
}

// tryMain takes the turn on the session's lane if it is there for the taking and of use.
func (n *session) tryMain() *lane {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.main
	if l == nil {
		return nil
	}
	select {
	case <-l.turn:
	default:
		return nil
	}
	if l.conn == nil || l.aborted {
		l.turn <- struct{}{}
		return nil
	}
	return l
}

// textRows runs a query whose columns are all text, NULL as "".
func (c *conn) textRows(ctx context.Context, sql string, args ...string) ([][]string, error) {
	batches, err := c.collect(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer releaseAll(batches)
	var rows [][]string
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			row := make([]string, b.NumCols())
			for j := range row {
				if column := b.Column(j).(*array.String); column.IsValid(i) {
					row[j] = strings.Clone(column.Value(i))
				}
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// info describes a result that DoGet makes from the command itself.
func (s *server) info(desc *flight.FlightDescriptor, schema *arrow.Schema) (*flight.FlightInfo, error) {
	return &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, allocator()),
		FlightDescriptor: desc,
		Endpoint:         []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: desc.GetCmd()}}},
		TotalRecords:     -1,
		TotalBytes:       -1,
		Ordered:          true,
	}, nil
}

// rowsOf is a stream of one batch of text rows; "" is NULL where the schema allows it.
func rowsOf(schema *arrow.Schema, rows [][]string) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	b := array.NewRecordBuilder(allocator(), schema)
	defer b.Release()
	for _, row := range rows {
		for i, v := range row {
			switch field := b.Field(i).(type) {
			case *array.BinaryBuilder:
				field.Append([]byte(v))
			case *array.StringBuilder:
				if v == "" && schema.Field(i).Nullable {
					field.AppendNull()
				} else {
					field.Append(v)
				}
			}
		}
	}
	return oneBatch(schema, b.NewRecordBatch())
}

func oneBatch(schema *arrow.Schema, batch arrow.RecordBatch) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	chunks := make(chan flight.StreamChunk, 1)
	chunks <- flight.StreamChunk{Data: batch}
	close(chunks)
	return schema, chunks, nil
}

// GetFlightInfoCatalogs describes the list of catalogs.
func (s *server) GetFlightInfoCatalogs(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.Catalogs)
}

// DoGetCatalogs lists the one catalog there is, to those who may touch anything in it.
func (s *server) DoGetCatalogs(ctx context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	c := callOf(ctx)
	c.say(wire.ClassKey, string(wire.Metadata))
	rights, err := c.rights(ctx)
	if err != nil {
		return nil, nil, err
	}
	if rights.Empty() {
		return rowsOf(schema_ref.Catalogs, nil)
	}
	return rowsOf(schema_ref.Catalogs, [][]string{{s.cfg.Lake.Name}})
}

// GetFlightInfoSchemas describes the list of schemas.
func (s *server) GetFlightInfoSchemas(_ context.Context, _ flightsql.GetDBSchemas, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.DBSchemas)
}

// DoGetDBSchemas lists the lake's schemas in which the caller may see something.
func (s *server) DoGetDBSchemas(ctx context.Context, cmd flightsql.GetDBSchemas) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	var rows [][]string
	if !s.catalogMatches(cmd.GetCatalog(), s.cfg.Lake.Name) {
		return rowsOf(schema_ref.DBSchemas, nil)
	}
	err := s.look(ctx, callOf(ctx), func(ctx context.Context, conn *conn, rights *guard.Rights) error {
		all, err := conn.textRows(ctx, "SELECT database_name, schema_name FROM duckdb_schemas() "+
			"WHERE database_name = $1 AND schema_name LIKE $2 ESCAPE '\\' "+
			"AND schema_name NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL",
			s.cfg.Lake.Name, pattern(cmd.GetDBSchemaFilterPattern()))
		if err != nil {
			return err
		}
		rows, err = s.seenSchemas(ctx, conn, rights, all)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return rowsOf(schema_ref.DBSchemas, rows)
}

// seenSchemas returns those rows of schemas that the caller may see: because it has a privilege on every
// table of the schema, or on one that is there. A grant on tables of all schemas shows none without such
// a table.
func (s *server) seenSchemas(ctx context.Context, conn *conn, rights *guard.Rights, schemas [][]string) ([][]string, error) {
	switch {
	case rights.Admin():
		return schemas, nil
	case rights.Empty(), len(schemas) == 0:
		return nil, nil
	}
	tables, err := conn.textRows(ctx, tablesSQL, s.cfg.Lake.Name, "%", "%")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, row := range tables {
		if row[0] == s.cfg.Lake.Name && rights.Sees(row[1], row[2]) {
			seen[sqltext.Fold(row[1])] = true
		}
	}
	return slices.DeleteFunc(schemas, func(row []string) bool {
		return !rights.SeesSchema(row[1]) || !(seen[sqltext.Fold(row[1])] || rights.Sees(row[1], "*"))
	}), nil
}

// enterable refuses to put a session into a schema that only grants on tables of any schema cover, when
// none of them is there: it is told as one that does not exist.
func (s *server) enterable(ctx context.Context, c *call, l *lane, st statement) error {
	if st.Class != wire.Setting {
		return nil
	}
	rights, err := c.rights(ctx)
	if err != nil {
		return err
	}
	for _, t := range st.Tables {
		if t.Schema == "" || own(sqltext.Fold(t.Catalog)) || rights.NamesSchema(t.Schema) {
			continue
		}
		err := s.planned(ctx, l, func(ctx context.Context, conn *conn) error {
			seen, err := s.seenSchemas(ctx, conn, rights, [][]string{{s.cfg.Lake.Name, t.Schema}})
			if err == nil && len(seen) == 0 {
				err = faultf(codes.PermissionDenied, wire.Denied, "%s", unseen("schema", t.Schema))
			}
			return err
		})
		if err != nil {
			return st.veil().over(err)
		}
	}
	return nil
}

// catalogMatches applies a catalog filter: none means every catalog, an empty one those without a name.
func (s *server) catalogMatches(filter *string, catalog string) bool {
	return filter == nil || *filter == catalog || *filter == "%"
}

func pattern(filter *string) string {
	if filter == nil {
		return "%"
	}
	return *filter
}

// GetFlightInfoTableTypes describes the list of types of tables.
func (s *server) GetFlightInfoTableTypes(_ context.Context, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.TableTypes)
}

// DoGetTableTypes lists the types of tables.
func (s *server) DoGetTableTypes(context.Context) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.TableTypes, [][]string{{typeTemporary}, {typeTable}, {typeView}})
}

// GetFlightInfoPrimaryKeys describes the primary keys of a table.
func (s *server) GetFlightInfoPrimaryKeys(_ context.Context, _ flightsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.PrimaryKeys)
}

// DoGetPrimaryKeys lists none: DuckLake has no keys.
func (s *server) DoGetPrimaryKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.PrimaryKeys, nil)
}

// GetFlightInfoExportedKeys describes the foreign keys to a table.
func (s *server) GetFlightInfoExportedKeys(_ context.Context, _ flightsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.ExportedKeys)
}

// DoGetExportedKeys lists none: DuckLake has no keys.
func (s *server) DoGetExportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.ExportedKeys, nil)
}

// GetFlightInfoImportedKeys describes the foreign keys of a table.
func (s *server) GetFlightInfoImportedKeys(_ context.Context, _ flightsql.TableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.ImportedKeys)
}

// DoGetImportedKeys lists none: DuckLake has no keys.
func (s *server) DoGetImportedKeys(context.Context, flightsql.TableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.ImportedKeys, nil)
}

// GetFlightInfoCrossReference describes the foreign keys between two tables.
func (s *server) GetFlightInfoCrossReference(_ context.Context, _ flightsql.CrossTableRef, desc *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	return s.info(desc, schema_ref.CrossReference)
}

// DoGetCrossReference lists none: DuckLake has no keys.
func (s *server) DoGetCrossReference(context.Context, flightsql.CrossTableRef) (*arrow.Schema, <-chan flight.StreamChunk, error) {
	return rowsOf(schema_ref.CrossReference, nil)
}
