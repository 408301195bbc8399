package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

func grant(catalog, schema, table string, privileges ...string) wire.Permission {
	return wire.Permission{Catalog: catalog, Schema: schema, Table: table, Privileges: privileges}
}

// seen is what a session lists of the catalog.
type seen struct{ Catalogs, Schemas, Tables [][]string }

func (c *client) see() seen {
	c.n.t.Helper()
	ctx := c.n.t.Context()
	return seen{
		Catalogs: c.listed(c.GetCatalogs(ctx)),
		Schemas:  c.listed(c.GetDBSchemas(ctx, &flightsql.GetDBSchemasOpts{})),
		Tables:   c.listed(c.GetTables(ctx, &flightsql.GetTablesOpts{})),
	}
}

// TestMetadataShowsWhatMayBeTouched: catalogs, schemas and tables appear only where there is a privilege
// on something that is there.
func TestMetadataShowsWhatMayBeTouched(t *testing.T) {
	n := startNode(t, newLake(t))
	a := n.client("admin")
	for _, sql := range []string{
		"CREATE TABLE orders (i INTEGER)", "CREATE VIEW big AS FROM orders", "CREATE SCHEMA hr", "CREATE TABLE hr.pay (i INTEGER)",
		"CREATE SCHEMA empty", "CREATE SCHEMA app", "CREATE TABLE app.orders (i INTEGER)",
	} {
		a.exec(sql)
	}
	catalog := [][]string{{"sales-eu"}}
	schemas := func(names ...string) (rows [][]string) {
		for _, name := range names {
			rows = append(rows, []string{"sales-eu", name})
		}
		return rows
	}
	var (
		appOrders = []string{"sales-eu", "app", "orders", "TABLE"}
		pay       = []string{"sales-eu", "hr", "pay", "TABLE"}
		big       = []string{"sales-eu", "main", "big", "VIEW"}
		orders    = []string{"sales-eu", "main", "orders", "TABLE"}
	)
	tests := map[string]struct {
		grants []wire.Permission
		want   seen
	}{
		"everything":      {[]wire.Permission{grant("*", "*", "*", "all")}, seen{catalog, schemas("app", "empty", "hr", "main"), [][]string{appOrders, pay, big, orders}}},
		"by its name":     {[]wire.Permission{grant("sales-eu", "*", "*", "all")}, seen{catalog, schemas("app", "empty", "hr", "main"), [][]string{appOrders, pay, big, orders}}},
		"another catalog": {[]wire.Permission{grant("other", "*", "*", "all")}, seen{}},
		"nothing":         {nil, seen{}},
		"a table":         {[]wire.Permission{grant("*", "main", "ORDERS", "select")}, seen{catalog, schemas("main"), [][]string{orders}}},
		"any privilege":   {[]wire.Permission{grant("*", "main", "orders", "insert")}, seen{catalog, schemas("main"), [][]string{orders}}},
		"a view":          {[]wire.Permission{grant("*", "main", "big", "select")}, seen{catalog, schemas("main"), [][]string{big}}},
		"a schema":        {[]wire.Permission{grant("*", "hr", "*", "select")}, seen{catalog, schemas("hr"), [][]string{pay}}},
		"an empty schema": {[]wire.Permission{grant("*", "empty", "*", "create")}, seen{catalog, schemas("empty"), nil}},
		"a name anywhere": {[]wire.Permission{grant("*", "*", "orders", "select")}, seen{catalog, schemas("app", "main"), [][]string{appOrders, orders}}},
		"what is not":     {[]wire.Permission{grant("*", "hr", "nope", "select"), grant("*", "gone", "*", "all")}, seen{Catalogs: catalog}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := n.clientAs(newID(), wire.Permissions{Grants: test.grants})
			if diff := cmp.Diff(test.want, c.see()); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}

// schemasOf is the schemas that GetTables tells of tables, by table.
func (c *client) schemasOf(opts *flightsql.GetTablesOpts) map[string]*arrow.Schema {
	c.n.t.Helper()
	opts.IncludeSchema = true
	info, err := c.GetTables(c.n.t.Context(), opts)
	if err != nil {
		c.n.t.Fatal(err)
	}
	r, err := c.DoGet(c.n.t.Context(), info.Endpoint[0].Ticket)
	if err != nil {
		c.n.t.Fatal(err)
	}
	defer r.Release()
	all := map[string]*arrow.Schema{}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			schema, err := flight.DeserializeSchema(b.Column(4).(*array.Binary).Value(i), allocator())
			if err != nil {
				c.n.t.Fatal(err)
			}
			all[b.Column(0).ValueStr(i)+"."+b.Column(1).ValueStr(i)+"."+b.Column(2).ValueStr(i)] = schema
		}
	}
	if err := r.Err(); err != nil {
		c.n.t.Fatal(err)
	}
	return all
}

// columnsOf is the names of the columns that GetTables tells of tables, by table.
func (c *client) columnsOf(opts *flightsql.GetTablesOpts) map[string][]string {
	c.n.t.Helper()
	all := map[string][]string{}
	for table, schema := range c.schemasOf(opts) {
		all[table] = nil
		for _, f := range schema.Fields() {
			all[table] = append(all[table], f.Name)
		}
	}
	return all
}

// TestMetadataPatternsAndTypes: filters apply to what is seen, and temporary objects are the session's own.
func TestMetadataPatternsAndTypes(t *testing.T) {
	n := startNode(t, newLake(t))
	a := n.client("admin")
	for _, sql := range []string{
		"CREATE TABLE a_b (i INTEGER)", "CREATE TABLE axb (i INTEGER)", "CREATE TABLE hidden (i INTEGER)", "CREATE VIEW a_v AS FROM a_b",
	} {
		a.exec(sql)
	}
	c := n.clientAs("s1", wire.Permissions{Grants: []wire.Permission{
		grant("*", "main", "a_b", "select"), grant("*", "main", "axb", "select"), grant("*", "main", "a_v", "select"),
	}})
	c.exec("CREATE TEMP TABLE a_t (mine INTEGER)")
	text := func(s string) *string { return &s }
	tests := map[string]struct {
		opts *flightsql.GetTablesOpts
		want []string
	}{
		"all":             {&flightsql.GetTablesOpts{}, []string{"sales-eu.main.a_b", "sales-eu.main.a_v", "sales-eu.main.axb", "temp.main.a_t"}},
		"wildcards":       {&flightsql.GetTablesOpts{TableNameFilterPattern: text("a_b")}, []string{"sales-eu.main.a_b", "sales-eu.main.axb"}},
		"escaped":         {&flightsql.GetTablesOpts{TableNameFilterPattern: text(`a\_b`)}, []string{"sales-eu.main.a_b"}},
		"hidden":          {&flightsql.GetTablesOpts{TableNameFilterPattern: text("hid%")}, nil},
		"schema":          {&flightsql.GetTablesOpts{DbSchemaFilterPattern: text("m_in"), TableNameFilterPattern: text("axb")}, []string{"sales-eu.main.axb"}},
		"other schema":    {&flightsql.GetTablesOpts{DbSchemaFilterPattern: text("x%")}, nil},
		"catalog":         {&flightsql.GetTablesOpts{Catalog: text("temp")}, []string{"temp.main.a_t"}},
		"no catalog":      {&flightsql.GetTablesOpts{Catalog: text("")}, nil},
		"tables":          {&flightsql.GetTablesOpts{TableTypes: []string{"TABLE"}}, []string{"sales-eu.main.a_b", "sales-eu.main.axb"}},
		"views":           {&flightsql.GetTablesOpts{TableTypes: []string{"VIEW"}}, []string{"sales-eu.main.a_v"}},
		"temporary":       {&flightsql.GetTablesOpts{TableTypes: []string{"LOCAL TEMPORARY"}}, []string{"temp.main.a_t"}},
		"unknown type":    {&flightsql.GetTablesOpts{TableTypes: []string{"SEQUENCE"}}, nil},
		"views or tables": {&flightsql.GetTablesOpts{TableTypes: []string{"VIEW", "TABLE"}}, []string{"sales-eu.main.a_b", "sales-eu.main.a_v", "sales-eu.main.axb"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, row := range c.listed(c.GetTables(t.Context(), test.opts)) {
				got = append(got, row[0]+"."+row[1]+"."+row[2])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
	want := map[string][]string{"sales-eu.main.a_b": {"i"}, "sales-eu.main.axb": {"i"}, "sales-eu.main.a_v": {"i"}, "temp.main.a_t": {"mine"}}
	if diff := cmp.Diff(want, c.columnsOf(&flightsql.GetTablesOpts{})); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

// TestMasksHaveTheirTypesInMetadata: a masked column has the type that a SELECT gives, also under a mask
// that another column would need; one that the engine does not take for its column disturbs no other.
func TestMasksHaveTheirTypesInMetadata(t *testing.T) {
	n := startNode(t, newLake(t))
	a := n.client("admin")
	masks := []struct{ column, kind, mask string }{
		{"plain", "VARCHAR", ""}, {"length", "VARCHAR", "length(length)"}, {"nothing", "VARCHAR", "NULL"}, {"word", "INTEGER", "'***'"},
		{"rounded", "DECIMAL(12,2)", "round(rounded, -1)"}, {"Part", "STRUCT(a INTEGER, b VARCHAR)", "part.a"},
		{"list", "VARCHAR[]", "list_distinct(list)::INTEGER[]"}, {"year", "TIMESTAMP WITH TIME ZONE", "year(\"year\")"},
		{"pair", "VARCHAR", "{'a': left(pair, 1), 'b': 1.5}"},
	}
	p := wire.Permissions{Grants: []wire.Permission{grant("*", "main", "*", "select")}}
	var columns []string
	for _, m := range masks {
		columns = append(columns, fmt.Sprintf("%q %s NOT NULL", m.column, m.kind))
		if m.mask != "" {
			p.Columns = append(p.Columns, wire.ColumnPolicy{Catalog: "*", Schema: "main", Table: "t", Column: m.column, Expression: m.mask})
		}
	}
	p.Columns = append(p.Columns, wire.ColumnPolicy{Catalog: "*", Schema: "main", Table: "broken", Column: "i", Expression: "list_sum(i)"})
	a.exec("CREATE TABLE t (" + strings.Join(columns, ", ") + ")")
	a.exec("CREATE TABLE broken (i INTEGER NOT NULL, j INTEGER)")
	c := n.clientAs("s1", p)
	c.query("BEGIN")
	told := c.schemasOf(&flightsql.GetTablesOpts{})
	got, broken := told["sales-eu.main.t"], told["sales-eu.main.broken"]
	c.query("COMMIT")
	info, err := c.Execute(t.Context(), "SELECT * FROM t")
	if err != nil {
		t.Fatal(err)
	}
	want, err := flight.DeserializeSchema(info.Schema, allocator())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fields(got), fields(want); got != want {
		t.Errorf("told  %s\nreads %s", got, want)
	}
	for _, f := range got.Fields() {
		if masked := f.Name != "plain"; f.Nullable != masked {
			t.Errorf("%s: nullable is %v, masked %v", f.Name, f.Nullable, masked)
		}
	}
	about := flightsql.ColumnMetadata{Data: &got.Fields()[4].Metadata}
	if name, _ := about.TypeName(); name != "DECIMAL(12,0)" {
		t.Errorf("the name of the mask's type is %q", name)
	}
	if got := fields(broken); got != "i:int32 j:int32" {
		t.Errorf("under a mask that is none: %s", got)
	}
}

// TestUnseenSchemasAreNotEntered: a grant on tables of one name in any schema leads into those schemas only
// that have such a table; another is as if it were not.
func TestUnseenSchemasAreNotEntered(t *testing.T) {
	n := startNode(t, newLake(t))
	a := n.client("admin")
	for _, sql := range []string{"CREATE SCHEMA app", "CREATE TABLE app.orders (i INTEGER)", "CREATE SCHEMA hr", "CREATE TABLE hr.pay (i INTEGER)", "CREATE SCHEMA mine"} {
		a.exec(sql)
	}
	p := wire.Permissions{Grants: []wire.Permission{grant("*", "*", "orders", "select"), grant("*", "mine", "new", "create")}}
	c := n.clientAs("s1", p)
	for _, around := range [][2]string{{"SELECT 1", "SELECT 1"}, {"BEGIN", "ROLLBACK"}} {
		for _, form := range []string{"USE %s", `USE "sales-eu".%s`, "SET schema = '%s'", "SET search_path = '%s'", "SET search_path = 'app,%s'"} {
			said := map[string]string{}
			for _, schema := range []string{"hr", "absent"} {
				c.query(around[0])
				_, err := c.tryQuery(fmt.Sprintf(form, schema))
				c.wantCode(err, codes.PermissionDenied, wire.Denied)
				_, after := c.tryQuery("SELECT 1")
				said[schema] = strings.ReplaceAll(fmt.Sprint(err, after), schema, "absent")
				c.query(around[1])
			}
			if said["hr"] != said["absent"] {
				t.Errorf("%s, %s: a hidden schema is told as %s, an absent one as %s", around[0], form, said["hr"], said["absent"])
			}
		}
	}
	for _, schema := range []string{"app", "APP", "mine"} {
		c.query("USE " + schema)
	}
}
