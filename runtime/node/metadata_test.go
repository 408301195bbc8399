package node

import (
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	pb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/google/go-cmp/cmp"
)

func (c *client) listed(info *flight.FlightInfo, err error) [][]string {
	c.n.t.Helper()
	if err != nil {
		c.n.t.Fatal(err)
	}
	rows, err := c.rows(info)
	if err != nil {
		c.n.t.Fatal(err)
	}
	return rows
}

func TestCatalogs(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	c.exec("CREATE SCHEMA app_x")
	c.exec("CREATE SCHEMA appyx")
	if got := c.listed(c.GetCatalogs(ctx)); !cmp.Equal(got, [][]string{{"sales-eu"}}) {
		t.Errorf("catalogs: %v", got)
	}
	all := [][]string{{"sales-eu", "app_x"}, {"sales-eu", "appyx"}, {"sales-eu", "main"}}
	empty, lake, escaped := "", "sales-eu", `app\_%`
	for name, test := range map[string]struct {
		opts *flightsql.GetDBSchemasOpts
		want [][]string
	}{
		"all":             {&flightsql.GetDBSchemasOpts{}, all},
		"of the lake":     {&flightsql.GetDBSchemasOpts{Catalog: &lake}, all},
		"without catalog": {&flightsql.GetDBSchemasOpts{Catalog: &empty}, nil},
		"by pattern":      {&flightsql.GetDBSchemasOpts{DbSchemaFilterPattern: &escaped}, all[:1]},
	} {
		if got := c.listed(c.GetDBSchemas(ctx, test.opts)); !cmp.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := c.listed(c.GetTableTypes(ctx)); !cmp.Equal(got, [][]string{{"LOCAL TEMPORARY"}, {"TABLE"}, {"VIEW"}}) {
		t.Errorf("table types: %v", got)
	}
}

func TestTables(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	c.exec("CREATE TABLE orders (id INTEGER NOT NULL, amount DECIMAL(10,2), tags VARCHAR[])")
	c.exec("CREATE VIEW big AS SELECT id FROM orders WHERE amount > 10")
	c.exec("CREATE TEMP TABLE mine (i INTEGER)")
	order, view, temp := []string{"sales-eu", "main", "orders", "TABLE"}, []string{"sales-eu", "main", "big", "VIEW"},
		[]string{"temp", "main", "mine", "LOCAL TEMPORARY"}
	name := "ord%"
	for what, test := range map[string]struct {
		opts *flightsql.GetTablesOpts
		want [][]string
	}{
		"all":        {&flightsql.GetTablesOpts{}, [][]string{view, order, temp}},
		"tables":     {&flightsql.GetTablesOpts{TableTypes: []string{"BASE TABLE"}}, [][]string{order}},
		"views":      {&flightsql.GetTablesOpts{TableTypes: []string{"view"}}, [][]string{view}},
		"by pattern": {&flightsql.GetTablesOpts{TableNameFilterPattern: &name}, [][]string{order}},
	} {
		if got := c.listed(c.GetTables(ctx, test.opts)); !cmp.Equal(got, test.want) {
			t.Errorf("%s: %v", what, got)
		}
	}
	other := n.client("s2")
	if got := other.listed(other.GetTables(ctx, &flightsql.GetTablesOpts{})); !cmp.Equal(got, [][]string{view, order}) {
		t.Errorf("another session lists %v", got)
	}
	info, err := c.GetTables(ctx, &flightsql.GetTablesOpts{TableNameFilterPattern: &name, IncludeSchema: true})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() || r.RecordBatch().NumCols() != 5 {
		t.Fatalf("no row with a schema: %v", r.Err())
	}
	schema, err := flight.DeserializeSchema(r.RecordBatch().Column(4).(*array.Binary).Value(0), allocator())
	if err != nil {
		t.Fatal(err)
	}
	if got := fields(schema); got != "id:int32 amount:decimal(10, 2) tags:list<l: int32, nullable>" && got != "id:int32 amount:decimal(10, 2) tags:list<l: utf8, nullable>" {
		t.Errorf("schema is %s", got)
	}
	if schema.Field(0).Nullable || !schema.Field(1).Nullable {
		t.Errorf("nullability is lost: %v", schema)
	}
	about := flightsql.ColumnMetadata{Data: &schema.Fields()[1].Metadata}
	if name, _ := about.TypeName(); name != "DECIMAL(10,2)" {
		t.Errorf("type name is %q", name)
	}
}

func TestKeysAreEmpty(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	ref := flightsql.TableRef{Table: "t"}
	for what, list := range map[string]func() (*flight.FlightInfo, error){
		"primary":  func() (*flight.FlightInfo, error) { return c.GetPrimaryKeys(ctx, ref) },
		"imported": func() (*flight.FlightInfo, error) { return c.GetImportedKeys(ctx, ref) },
		"exported": func() (*flight.FlightInfo, error) { return c.GetExportedKeys(ctx, ref) },
		"cross":    func() (*flight.FlightInfo, error) { return c.GetCrossReference(ctx, ref, ref) },
	} {
		if got := c.listed(list()); len(got) != 0 {
			t.Errorf("%s keys: %v", what, got)
		}
	}
}

func TestServerInfo(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	ctx := t.Context()
	all := c.listed(c.GetSqlInfo(ctx, nil))
	have := map[string]string{}
	for _, row := range all {
		have[row[0]] = row[1]
	}
	for code := range pb.SqlInfo_name {
		if _, ok := have[fmt.Sprint(code)]; !ok {
			t.Errorf("nothing is told about %s", pb.SqlInfo(code))
		}
	}
	some := c.listed(c.GetSqlInfo(ctx, []flightsql.SqlInfo{flightsql.SqlInfoFlightSqlServerTransaction, 99999}))
	if len(some) != 1 || some[0][0] != "8" {
		t.Errorf("a known and an unknown code: %v", some)
	}
	if got := c.listed(c.GetSqlInfo(ctx, []flightsql.SqlInfo{99999})); len(got) != 0 {
		t.Errorf("an unknown code: %v", got)
	}
	if got := c.listed(c.GetXdbcTypeInfo(ctx, nil)); len(got) != len(dataTypes()) {
		t.Errorf("%d data types, want %d", len(got), len(dataTypes()))
	}
	varchar := int32(12)
	for _, row := range c.listed(c.GetXdbcTypeInfo(ctx, &varchar)) {
		if row[1] != "12" {
			t.Errorf("asked for varchar, got %v", row)
		}
	}
}

// TestMetadataDoesNotWaitForAStream: it is read beside a lane that somebody is on.
func TestMetadataDoesNotWaitForAStream(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("BEGIN")
	c.exec("CREATE TABLE fresh (i INTEGER)")
	if got := c.listed(c.GetTables(t.Context(), &flightsql.GetTablesOpts{})); len(got) != 1 {
		t.Errorf("inside the transaction: %v", got)
	}
	info, err := c.Execute(t.Context(), "SELECT range FROM range(50000000)")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := c.DoGet(ctx, info.Endpoint[0].Ticket)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if got := c.listed(c.GetTables(t.Context(), &flightsql.GetTablesOpts{})); len(got) != 0 {
		t.Errorf("beside the transaction: %v", got)
	}
	cancel()
	c.query("ROLLBACK")
}
