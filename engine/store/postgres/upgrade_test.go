package postgres_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/engine/store/postgres"
	"github.com/qod-io/qod/engine/store/storetest"
	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/pgtest"
)

// A store of the first version keeps its objects and its history, and gains what came later.
func TestUpgradeFromTheFirstVersion(t *testing.T) {
	url := pgtest.Database(t)
	conn := session(t, url)
	first, err := os.ReadFile("migrations/0001_state.sql")
	if err != nil {
		t.Fatal(err)
	}
	const id = "6f1e0a51-52a8-4a2b-9a61-0d6d3f7b9a10"
	for _, statement := range []string{
		string(first),
		`CREATE TABLE qodstate_schema (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());
		INSERT INTO qodstate_schema (version) VALUES (1); UPDATE qodstate_revision SET revision = 2;
		INSERT INTO qodstate_object (id, kind, key, spec, applied, address, stack, generation, revision, schema_version)
		VALUES ('` + id + `', 'tenant', 'acme', '{"name":"acme","disabled":true}', '{"name":"acme"}', 'tenant.acme', 's', 2, 2, 1);
		INSERT INTO qodstate_apply (id, by, host, stack, note, revision, previous)
		VALUES (gen_random_uuid(), 'ann', 'h', 's', 'one', 1, '{"` + id + `": null}'),
			(gen_random_uuid(), 'bob', 'h', '', 'two', 2,
			'{"` + id + `": {"kind":"tenant","spec":{"name":"acme"},"as_applied":true,"address":"tenant.acme","stack":"s","generation":1,"revision":1}}');`,
	} {
		if _, err := conn.PgConn().Exec(t.Context(), statement).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := postgres.OpenReadOnly(t.Context(), postgres.Config{URL: url}); err == nil {
		t.Error("a store of an older version was opened without bringing it up to date")
	}
	s := openAt(t, url)
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kind := storetest.Kind(t, "tenant")
	value := func(json string) cty.Value {
		v, err := kind.Decode([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	now := store.Object{
		ID: id, Kind: kind, Spec: value(`{"name":"acme","disabled":true}`), Applied: value(`{"name":"acme"}`),
		Address: "tenant.acme", Stack: "s", Generation: 2, Revision: 2,
	}
	if diff := cmp.Diff([]store.Object{now}, snap.Objects, storetest.Compare()...); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	applies, err := s.ListApplies(t.Context(), 0, 0)
	if err != nil || len(applies) != 2 {
		t.Fatalf("%d commits: %v", len(applies), err)
	}
	before := now
	before.Spec, before.Applied = value(`{"name":"acme"}`), value(`{"name":"acme"}`)
	before.Generation, before.Revision = 1, 1
	if diff := cmp.Diff(map[string]*store.Object{id: &before}, applies[0].Before, storetest.Compare()...); diff != "" {
		t.Errorf("what was before (-want +got):\n%s", diff)
	}
	stack := store.Stack{Name: "s", Lineage: "l"}
	if _, err := s.Commit(t.Context(), store.Change{Stack: stack, Outputs: []schema.Output{{Name: "a", Value: cty.True}}}); err != nil {
		t.Errorf("outputs in an upgraded store: %v", err)
	}
}
