package catalog_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/catalog"
	"github.com/qod-io/qod/schema"
)

// tables are those of a DuckLake that say what it holds, with what is there and what was.
var tables = []string{
	"CREATE TABLE ducklake_table (table_id bigint, end_snapshot bigint, schema_id bigint, table_name text)",
	"CREATE TABLE ducklake_view (view_id bigint, end_snapshot bigint, schema_id bigint, view_name text)",
	"CREATE TABLE ducklake_column (column_id bigint, end_snapshot bigint, table_id bigint, column_name text, parent_column bigint)",
	"INSERT INTO ducklake_schema VALUES (1, 'Mart', NULL), (2, 'gone', 7)",
	"INSERT INTO ducklake_table VALUES (1, NULL, 0, 'Orders'), (2, 5, 0, 'old'), (3, NULL, 2, 'lost')",
	"INSERT INTO ducklake_view VALUES (4, NULL, 1, 'totals'), (5, 6, 1, 'sums')",
	"INSERT INTO ducklake_column VALUES (1, NULL, 1, 'id', NULL), (2, NULL, 1, 'at', NULL), (3, NULL, 1, 'inside', 2), (4, 3, 1, 'dropped', NULL)",
}

func TestContents(t *testing.T) {
	l := newLake(t)
	l.create()
	secret := func(string) ([]byte, error) { return l.password, nil }
	if _, err := l.catalog().Contents(t.Context(), l.object, secret); err == nil {
		t.Error("a lake without tables of its own answers")
	}
	sql(t, lakeURL(l.of()), tables...)
	got, err := l.catalog().Contents(t.Context(), l.object, secret)
	if err != nil {
		t.Fatal(err)
	}
	want := schema.Contents{"main": {"Orders": {"id", "at"}}, "Mart": {"totals": nil}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	sealed := errors.New("sealed")
	if _, err := l.catalog().Contents(t.Context(), l.object, func(attr string) ([]byte, error) {
		if attr != catalog.PasswordAttr {
			t.Errorf("asked for %s", attr)
		}
		return nil, sealed
	}); !errors.Is(err, sealed) {
		t.Errorf("without the secret: %v", err)
	}
	sql(t, lakeURL(l.of()), "INSERT INTO ducklake_column SELECT i, NULL, 1, 'c' || i, NULL FROM generate_series(1, 50000) i")
	if _, err := l.catalog().Contents(t.Context(), l.object, secret); err == nil {
		t.Error("a lake of any size is read")
	}
}
