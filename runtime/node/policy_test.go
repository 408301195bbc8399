package node

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/qod-io/qod/runtime/wire"
)

// canary is in every value, and name, that a restricted user of startShop must never receive.
const canary = "CANARY"

// startShop returns a node whose lake has tables on which there are policies.
func startShop(t *testing.T) *testNode {
	t.Helper()
	n := startNode(t, newLake(t), func(c *wire.NodeConfig) { c.MemoryBytes = 1 << 30 })
	a := n.client("admin")
	for _, sql := range []string{
		`CREATE TABLE orders AS SELECT range AS id, CASE WHEN range < 4 THEN 'EU' ELSE 'US' END AS region,
			CASE WHEN range < 4 THEN 'visible(' || range ELSE 'CANARY(' || range END AS card,
			(range * 10)::INTEGER AS amount, 'CANARY(' || range AS secret FROM range(8)`,
		"CREATE TABLE items AS SELECT range AS id, 'item' || range AS name FROM range(8)",
		"CREATE TABLE allowed AS SELECT range AS order_id FROM range(4)",
		"CREATE TABLE canary_table AS SELECT 'CANARY' AS canary_column", "CREATE SCHEMA hr", "CREATE TABLE hr.items AS SELECT 'CANARY' AS name",
		"CREATE VIEW big AS SELECT id, card FROM orders WHERE id IN (2, 3)",
	} {
		a.exec(sql)
	}
	return n
}

func shopGrants(privileges ...string) []wire.Permission {
	return []wire.Permission{grant("*", "main", "orders", privileges...), grant("*", "main", "items", privileges...)}
}

// rowUser sees the rows of the EU.
func rowUser() wire.Permissions {
	return wire.Permissions{
		Grants: shopGrants("select", "insert", "update", "delete"),
		Rows:   []wire.RowPolicy{{Catalog: "*", Schema: "main", Table: "orders", Predicate: "region = 'EU'"}},
		Columns: []wire.ColumnPolicy{
			{Catalog: "*", Schema: "main", Table: "canary_table", Column: "canary_column"},
		},
	}
}

// maskUser sees the rows of the EU, without one column and with a mask on another.
func maskUser() wire.Permissions {
	p := rowUser()
	p.Columns = []wire.ColumnPolicy{
		{Catalog: "*", Schema: "main", Table: "orders", Column: "card", Expression: "'***' || right(card, 1)"},
		{Catalog: "*", Schema: "main", Table: "orders", Column: "secret"},
	}
	return p
}

// listUser sees the rows that another table lists, which it may not see.
func listUser() wire.Permissions {
	p := rowUser()
	p.Rows[0].Predicate = "id IN (SELECT order_id FROM main.allowed)"
	p.Columns = append(p.Columns, wire.ColumnPolicy{Catalog: "*", Schema: "main", Table: "orders", Column: "secret"})
	return p
}

func shopUsers() map[string]wire.Permissions {
	hide := wire.ColumnPolicy{Catalog: "*", Schema: "main", Table: "orders", Column: "secret"}
	row := rowUser()
	row.Columns = append(row.Columns, hide)
	return map[string]wire.Permissions{"row": row, "mask": maskUser(), "list": listUser()}
}

// TestPoliciesApply: what users with policies get is what an administrator would get of a table that was
// filtered and masked beforehand, under the same column names.
func TestPoliciesApply(t *testing.T) {
	n := startShop(t)
	a := n.client("admin")
	for name, as := range map[string]string{
		"row":  "SELECT * EXCLUDE (secret) FROM orders WHERE region = 'EU'",
		"list": "SELECT * EXCLUDE (secret) FROM orders WHERE region = 'EU'",
		"mask": "SELECT * EXCLUDE (secret) REPLACE ('***' || right(card, 1) AS card) FROM orders WHERE region = 'EU'",
	} {
		a.exec("CREATE SCHEMA copy_" + name)
		a.exec("CREATE TABLE copy_" + name + ".orders AS " + as)
		a.exec("CREATE TABLE copy_" + name + ".items AS FROM items")
	}
	for name, p := range shopUsers() {
		user, copied := n.clientAs(newID(), p), n.client(newID())
		copied.exec("USE copy_" + name)
		for _, sql := range []string{
			"SELECT * FROM orders ORDER BY id", "FROM orders ORDER BY id", "SELECT count(*), max(card) FROM orders", "SELECT o.* FROM orders o ORDER BY id",
			"SELECT (SELECT max(card) FROM orders)", "SELECT id FROM items WHERE id IN (SELECT id FROM orders) ORDER BY id",
			"SELECT EXISTS (FROM orders WHERE id > 3)", "WITH orders AS (SELECT 1 AS id) SELECT * FROM orders",
			"WITH x AS (FROM orders) SELECT card FROM x ORDER BY 1", "SELECT name, card FROM items JOIN orders USING (id) ORDER BY 1",
			"SELECT id FROM orders UNION ALL SELECT id FROM items ORDER BY 1", "SELECT orders FROM orders ORDER BY id",
			"SELECT region, sum(amount) AS s FROM orders GROUP BY ALL", "PIVOT orders ON region IN ('EU', 'US') USING count(*) GROUP BY amount ORDER BY amount",
			"SELECT id FROM orders QUALIFY row_number() OVER (ORDER BY amount DESC) = 1", "SELECT main.orders.id FROM main.orders ORDER BY 1",
			"SELECT COLUMNS(*) FROM orders ORDER BY id", "SELECT (SELECT count(*) FROM orders WHERE id > i.id) FROM items i ORDER BY i.id",
		} {
			want := copied.query(strings.ReplaceAll(sql, "main.", ""))
			got, err := user.tryQuery(sql)
			if err != nil {
				t.Errorf("%s: %s: %v", name, sql, err)
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, sql, diff)
			}
			if got, want := user.columns(sql), copied.columns(strings.ReplaceAll(sql, "main.", "")); got != want {
				t.Errorf("%s: %s: the columns are %s, want %s", name, sql, got, want)
			}
		}
	}
}

// columns is the names of the columns of a query, before it runs.
func (c *client) columns(sql string) string {
	c.n.t.Helper()
	result, err := c.GetExecuteSchema(c.n.t.Context(), sql)
	if err != nil {
		c.n.t.Errorf("%s: %v", sql, err)
		return ""
	}
	schema, err := flight.DeserializeSchema(result.Schema, allocator())
	if err != nil {
		c.n.t.Fatal(err)
	}
	return fmt.Sprint(schema.Fields())
}

// TestUnseenIsAsIfItWereNot: what may not be seen and what does not exist are told in the same words.
func TestUnseenIsAsIfItWereNot(t *testing.T) {
	n := startShop(t)
	grants := append(shopGrants("select"), grant("*", "main", "seen_nope", "select"))
	for name, p := range map[string]wire.Permissions{"with policies": maskUser(), "without": {Grants: grants}} {
		c := n.clientAs(newID(), p)
		for _, pair := range [][2]string{
			{"SELECT * FROM canary_table", "canary_table"}, {"SELECT * FROM no_such", "no_such"}, {"SELECT * FROM seen_nope", "seen_nope"},
			{"SELECT * FROM main.canary_table", "canary_table"}, {"SELECT * FROM hr.items", "items"}, {"SELECT * FROM nope.items", "items"},
			{"INSERT INTO canary_table VALUES (1)", "canary_table"}, {"INSERT INTO no_such VALUES (1)", "no_such"},
			{"DESCRIBE canary_table", "canary_table"}, {"DESCRIBE no_such", "no_such"}, {"DROP TABLE canary_table", "canary_table"},
			{"DROP TABLE no_such", "no_such"}, {"SELECT * FROM orders, canary_table", "canary_table"}, {"SELECT * FROM orders, no_such", "no_such"},
		} {
			_, err := c.tryQuery(pair[0])
			want := fmt.Sprintf("table %q does not exist or you are not authorized", pair[1])
			if got := status.Convert(err).Message(); got != want {
				t.Errorf("%s: %s: told %q, want %q", name, pair[0], got, want)
			}
			c.wantCode(err, codes.PermissionDenied, wire.Denied)
		}
	}
}

// TestRowPolicyLimitsChanges: only visible rows are changed, and column policies refuse a change.
func TestRowPolicyLimitsChanges(t *testing.T) {
	n := startShop(t)
	a, c := n.client("admin"), n.clientAs("s1", rowUser())
	if got := c.exec("UPDATE orders SET amount = -1"); got != 4 {
		t.Errorf("%d rows were updated", got)
	}
	if got := c.exec("DELETE FROM orders WHERE id IN (1, 5)"); got != 1 {
		t.Errorf("%d rows were deleted", got)
	}
	if got := a.query("SELECT id, amount FROM orders ORDER BY id"); !cmp.Equal(got, [][]string{
		{"0", "-1"}, {"2", "-1"}, {"3", "-1"}, {"4", "40"}, {"5", "50"}, {"6", "60"}, {"7", "70"},
	}) {
		t.Errorf("afterwards: %v", got)
	}
	m := n.clientAs("s2", maskUser())
	for _, sql := range []string{
		"UPDATE orders SET amount = 1", "DELETE FROM orders WHERE id = 2", "TRUNCATE orders",
		"MERGE INTO orders USING items USING (id) WHEN MATCHED THEN DELETE",
	} {
		_, err := m.tryQuery(sql)
		m.wantCode(err, codes.PermissionDenied, wire.Denied)
	}
	if got := a.one("SELECT count(*) FROM orders"); got != "7" {
		t.Errorf("%s rows are left", got)
	}
}

// TestPreparedOnProtectedTables: parameters work as ever, and the columns keep their names.
func TestPreparedOnProtectedTables(t *testing.T) {
	n := startShop(t)
	c := n.clientAs("s1", maskUser())
	p := c.prepare("SELECT id, card FROM orders WHERE amount > ? ORDER BY id")
	p.SetParameters(ints(5))
	info, err := p.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := c.rows(info)
	if want := [][]string{{"1", "***1"}, {"2", "***2"}, {"3", "***3"}}; err != nil || !cmp.Equal(rows, want) {
		t.Errorf("got %v, %v", rows, err)
	}
	const counting = "SELECT (SELECT count(*) FROM orders WHERE id > ?)"
	p = c.prepare(counting)
	if got, want := p.DatasetSchema(), n.client("admin").prepare(counting).DatasetSchema(); got == nil || !got.Equal(want) {
		t.Errorf("the columns are %v, want %v", got, want)
	}
	p.SetParameters(ints(-1))
	if info, err = p.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rows, err := c.rows(info); err != nil || !cmp.Equal(rows, [][]string{{"4"}}) {
		t.Errorf("got %v, %v", rows, err)
	}
	w := n.clientAs("s2", rowUser())
	p = w.prepare("UPDATE orders SET amount = ? WHERE id < 100")
	p.SetParameters(ints(1, 2))
	if got, err := p.ExecuteUpdate(t.Context()); err != nil || got != 8 {
		t.Errorf("%d rows were updated, %v; want four by each of two", got, err)
	}
	if got := n.client("admin").one("SELECT count(*) FROM orders WHERE amount = 2"); got != "4" {
		t.Errorf("%s rows were changed", got)
	}
}

// TestSessionTricks: what a session does to the meaning of names does not lead past the policies.
func TestSessionTricks(t *testing.T) {
	n := startShop(t)
	c := n.clientAs("s1", maskUser())
	visible := c.query("SELECT * FROM orders ORDER BY id")
	for _, sql := range []string{"USE hr", "SET schema = 'hr'", "SET search_path = 'hr,main'", "SET search_path = 'main,hr'", "USE temp"} {
		if err := c.tryExec(sql); err == nil {
			t.Logf("%s is let through", sql)
		}
		if rows, err := c.tryQuery("SELECT * FROM items"); err == nil && strings.Contains(fmt.Sprint(rows), canary) {
			t.Errorf("after %s: %v", sql, rows)
		}
		if rows, err := c.tryQuery("SELECT * FROM orders"); err == nil && strings.Contains(fmt.Sprint(rows), canary) {
			t.Errorf("after %s: %v", sql, rows)
		}
		c.CloseSession(t.Context(), &flight.CloseSessionRequest{})
	}
	c.exec("CREATE TEMP TABLE orders AS SELECT 'mine' AS card")
	if got := c.one("SELECT card FROM orders"); got != "mine" {
		t.Errorf("the temporary table has %s", got)
	}
	if got := c.query(`SELECT * FROM "sales-eu".main.orders ORDER BY id`); !cmp.Equal(got, visible) {
		t.Errorf("the lake's has %v", got)
	}
	c.query("BEGIN")
	c.exec("DROP TABLE temp.orders")
	if got := c.query("SELECT * FROM orders ORDER BY id"); !cmp.Equal(got, visible) {
		t.Errorf("without the temporary table: %v", got)
	}
	c.query("ROLLBACK")
	if got := c.one("SELECT card FROM orders"); got != "mine" {
		t.Errorf("after the rollback the temporary table has %s", got)
	}
	c.exec("INSERT INTO orders VALUES ('two')")
	if got := c.one("SELECT count(*) FROM temp.orders"); got != "2" {
		t.Errorf("%s rows are in the temporary table", got)
	}
	c.exec("DROP TABLE temp.orders")
	c.exec("CREATE TEMP TABLE copy AS FROM orders")
	if got := c.query("SELECT * FROM copy ORDER BY id"); !cmp.Equal(got, visible) {
		t.Errorf("the copy has %v", got)
	}
}

// TestSetSchemaOption: a client's option takes it no further than USE does.
func TestSetSchemaOption(t *testing.T) {
	n := startShop(t)
	c := n.clientAs("s1", maskUser())
	for _, schema := range []string{"hr", "nope"} {
		options, err := flight.NewSessionOptionValues(map[string]any{"schema": schema})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.SetSessionOptions(t.Context(), &flight.SetSessionOptionsRequest{SessionOptions: options})
		if err != nil || got.GetErrors()["schema"].GetValue() != flight.SetSessionOptionsResultErrorInvalidValue {
			t.Errorf("%s: %v, %v", schema, got, err)
		}
	}
}

// TestDeniedColumnsAreNotListed: neither in the schemas of tables nor in what the binder tells.
func TestDeniedColumnsAreNotListed(t *testing.T) {
	n := startShop(t)
	c := n.clientAs("s1", maskUser())
	want := map[string][]string{"sales-eu.main.orders": {"id", "region", "card", "amount"}, "sales-eu.main.items": {"id", "name"}}
	if diff := cmp.Diff(want, c.columnsOf(&flightsql.GetTablesOpts{})); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	for _, sql := range []string{"SELECT secret FROM orders", "SELECT o.secret FROM orders o", "SELECT secrex FROM orders", "SELECT o.secrex FROM orders o"} {
		_, err := c.tryQuery(sql)
		c.wantCode(err, codes.InvalidArgument, "")
		if strings.Contains(status.Convert(err).Message(), "secret") {
			t.Errorf("%s: told %v", sql, err)
		}
	}
}

// TestPolicyThatCannotBeApplied: the statement fails, and the policy stays unsaid.
func TestPolicyThatCannotBeApplied(t *testing.T) {
	n := startShop(t)
	for what, change := range map[string]func(*wire.Permissions){
		"column of the predicate": func(p *wire.Permissions) { p.Rows[0].Predicate = "CANARY_no = 1" },
		"table of the predicate":  func(p *wire.Permissions) { p.Rows[0].Predicate = "id IN (SELECT id FROM main.CANARY_no)" },
		"predicate is no SQL":     func(p *wire.Permissions) { p.Rows[0].Predicate = "CANARY IN (" },
		"masked column":           func(p *wire.Permissions) { p.Columns[0].Column = "CANARY_no" },
		"denied column":           func(p *wire.Permissions) { p.Columns[1].Column = "CANARY_no" },
		"column of the mask":      func(p *wire.Permissions) { p.Columns[0].Expression = "CANARY_no || card" },
	} {
		p := maskUser()
		change(&p)
		c := n.clientAs(newID(), p)
		for _, sql := range []string{"SELECT count(*) FROM orders", "SELECT id FROM orders", "INSERT INTO items SELECT id, region FROM orders"} {
			rows, err := c.tryQuery(sql)
			message := status.Convert(err).Message()
			if err == nil || strings.Contains(message, canary) || !strings.Contains(message, "ask an administrator") {
				t.Errorf("%s: %s: %v, told %q", what, sql, rows, message)
			}
		}
		c.query("SELECT * FROM items")
	}
}

// TestErrorsHoldNoHiddenValues: whatever fails, at planning, on the way or in the middle of the rows, and
// by whichever call, a user with policies receives no hidden value.
func TestErrorsHoldNoHiddenValues(t *testing.T) {
	n := startShop(t)
	for name, p := range shopUsers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raiseErrors(t, n.clientAs(newID(), p))
		})
	}
}

// raiseErrors has a user's statements fail on rows of a table with policies.
func raiseErrors(t *testing.T, c *client) {
	failed := 0
	check := func(sql string, rows [][]string, err error) {
		if err != nil {
			failed++
		}
		if told := fmt.Sprint(rows, err); strings.Contains(told, canary) {
			t.Errorf("%s: received %.300q", sql, told)
		}
	}
	for _, e := range raising() {
		for _, sql := range []string{
			"SELECT " + e + " FROM orders", "SELECT id FROM orders WHERE (" + e + ") IS NOT NULL",
			"SELECT i.id FROM items i JOIN orders o ON i.id = o.id AND (" + e + ") IS NOT NULL",
			"SELECT (SELECT max(" + e + ") FROM orders)", "SELECT region FROM orders GROUP BY region, " + e,
		} {
			rows, err := c.tryQuery(sql)
			check(sql, rows, err)
		}
		_, err := c.Prepare(t.Context(), "SELECT "+e+" FROM orders WHERE id = ?")
		check("prepare "+e, nil, err)
		check("insert "+e, nil, c.tryExec("INSERT INTO items SELECT id, "+e+" FROM orders"))
		options, err := c.GetSessionOptions(t.Context(), &flight.GetSessionOptionsRequest{})
		check("the session's options", [][]string{{fmt.Sprint(options)}}, err)
	}
	if failed < 100 {
		t.Errorf("only %d statements failed", failed)
	}
}
