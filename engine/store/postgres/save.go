package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

const (
	deleteRefs = `DELETE FROM qodstate_object_ref
WHERE from_id = ANY ($1::text[]::uuid[]) OR to_id = ANY ($2::text[]::uuid[])`

	deleteObjects = `DELETE FROM qodstate_object WHERE id = ANY ($1::text[]::uuid[])`

	// The status is not the commit's to write.
	putObjects = `
INSERT INTO qodstate_object AS o
    (id, kind, key, spec, applied, address, stack, generation, revision, schema_version, tombstone)
SELECT id, kind, key, spec, CASE WHEN as_applied THEN spec ELSE applied END, address, stack, generation, revision,
    schema_version, CASE WHEN buried THEN now() END
FROM unnest($1::text[]::uuid[], $2::text[], $3::text[], $4::text[]::jsonb[], $5::text[]::jsonb[], $6::bool[], $7::text[],
    $8::text[], $9::bigint[], $10::bigint[], $11::int[], $12::bool[])
    AS n (id, kind, key, spec, applied, as_applied, address, stack, generation, revision, schema_version, buried)
ON CONFLICT (id) DO UPDATE SET
    key = excluded.key, spec = excluded.spec, applied = excluded.applied, address = excluded.address,
    stack = excluded.stack, generation = excluded.generation, revision = excluded.revision,
    schema_version = excluded.schema_version, updated = now(),
    tombstone = CASE WHEN excluded.tombstone IS NOT NULL THEN coalesce(o.tombstone, excluded.tombstone) END`

	putRefs = `INSERT INTO qodstate_object_ref (from_id, attribute, ordinal, to_id)
SELECT * FROM unnest($1::text[]::uuid[], $2::text[], $3::int[], $4::text[]::uuid[])`

	deleteSecrets = `DELETE FROM qodstate_secret
WHERE (object_id, attribute) IN (SELECT * FROM unnest($1::text[]::uuid[], $2::text[]))`

	putSecrets = `INSERT INTO qodstate_secret AS s (object_id, attribute, sealed)
SELECT * FROM unnest($1::text[]::uuid[], $2::text[], $3::bytea[])
ON CONFLICT (object_id, attribute) DO UPDATE SET sealed = excluded.sealed, version = s.version + 1`

	putStack = `INSERT INTO qodstate_stack (name, lineage) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET lineage = excluded.lineage WHERE qodstate_stack.lineage <> excluded.lineage`

	putApply = `INSERT INTO qodstate_apply (id, by, host, stack, plan_id, note, revision, previous)
VALUES ($1::text::uuid, $2, $3, $4, nullif($5, ''), $6, $7, $8::text::jsonb)`
)

// save writes what an edit says, and the record of the commit.
func (a *apply) save(ctx context.Context, tx pgx.Tx, e *store.Edit, revision store.Revision) error {
	previous, err := encodePrevious(e.Before)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	var relinked []string
	for id := range e.Refs {
		relinked = append(relinked, id)
	}
	slices.Sort(relinked)
	if len(relinked) > 0 || len(e.Removed) > 0 {
		batch.Queue(deleteRefs, relinked, e.Removed)
	}
	if len(e.Removed) > 0 {
		batch.Queue(deleteObjects, e.Removed)
	}
	if err := queueObjects(batch, e.Put); err != nil {
		return err
	}
	queueRefs(batch, relinked, e.Refs)
	a.queueSecrets(batch, e.Forget)
	c := a.change
	if c.Stack.Name != "" {
		batch.Queue(putStack, c.Stack.Name, c.Stack.Lineage)
	}
	batch.Queue(putApply, a.id, c.By, c.From, c.Stack.Name, c.PlanID, c.Note, revision, string(previous))
	return tx.SendBatch(ctx, batch).Close()
}

func queueObjects(batch *pgx.Batch, objects []store.Object) error {
	if len(objects) == 0 {
		return nil
	}
	n := len(objects)
	ids, kinds, keys, specs := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	applied, asApplied := make([]*string, n), make([]bool, n)
	addresses, stacks := make([]string, n), make([]string, n)
	generations, revisions := make([]int64, n), make([]int64, n)
	versions, buried := make([]int, n), make([]bool, n)
	for i, o := range objects {
		encoded, err := encodeObject(o)
		if err != nil {
			return err
		}
		ids[i], kinds[i], keys[i], specs[i] = o.ID, o.Kind.Name, o.Addr().Path, string(encoded.Spec)
		if asApplied[i] = encoded.AsApplied; encoded.Applied != nil {
			text := string(encoded.Applied)
			applied[i] = &text
		}
		addresses[i], stacks[i] = o.Address, o.Stack
		generations[i], revisions[i] = o.Generation, int64(o.Revision)
		versions[i], buried[i] = o.Kind.Version, o.Tombstone
	}
	batch.Queue(putObjects, ids, kinds, keys, specs, applied, asApplied, addresses, stacks, generations, revisions, versions, buried)
	return nil
}

func queueRefs(batch *pgx.Batch, ids []string, refs map[string][]store.ObjectRef) {
	var from, attrs, to []string
	var ordinals []int
	for _, id := range ids {
		for i, ref := range refs[id] {
			from, attrs, ordinals, to = append(from, ref.From), append(attrs, ref.Attr), append(ordinals, i), append(to, ref.To)
		}
	}
	if len(from) > 0 {
		batch.Queue(putRefs, from, attrs, ordinals, to)
	}
}

func (a *apply) queueSecrets(batch *pgx.Batch, forget []store.SecretKey) {
	var ids, attrs []string
	for _, key := range forget {
		ids, attrs = append(ids, key.Object), append(attrs, key.Attr)
	}
	if len(ids) > 0 {
		batch.Queue(deleteSecrets, ids, attrs)
	}
	ids, attrs = nil, nil
	var sealed [][]byte
	for key, secret := range a.sealed {
		ids, attrs, sealed = append(ids, key.Object), append(attrs, key.Attr), append(sealed, secret)
	}
	if len(ids) > 0 {
		batch.Queue(putSecrets, ids, attrs, sealed)
	}
}

// encoded is an object in the history. Applied is left out where it equals the spec.
type encoded struct {
	Kind       string          `json:"kind"`
	Spec       json.RawMessage `json:"spec"`
	Applied    json.RawMessage `json:"applied,omitempty"`
	AsApplied  bool            `json:"as_applied,omitempty"`
	Address    string          `json:"address,omitempty"`
	Stack      string          `json:"stack,omitempty"`
	Generation int64           `json:"generation"`
	Revision   store.Revision  `json:"revision"`
	Tombstone  bool            `json:"tombstone,omitempty"`
}

func encodeObject(o store.Object) (encoded, error) {
	e := encoded{
		Kind: o.Kind.Name, Address: o.Address, Stack: o.Stack,
		Generation: o.Generation, Revision: o.Revision, Tombstone: o.Tombstone,
	}
	var err error
	if e.Spec, err = o.Kind.Encode(o.Spec); err != nil {
		return e, fmt.Errorf("store %s: %w", o.Addr(), err)
	}
	if o.Applied == cty.NilVal {
		return e, nil
	}
	if e.AsApplied = o.Applied.RawEquals(o.Spec); e.AsApplied {
		return e, nil
	}
	if e.Applied, err = o.Kind.Encode(o.Applied); err != nil {
		return e, fmt.Errorf("store what was applied to %s: %w", o.Addr(), err)
	}
	return e, nil
}

func encodePrevious(before map[string]*store.Object) ([]byte, error) {
	previous := make(map[string]*encoded, len(before))
	for id, o := range before {
		if o == nil {
			previous[id] = nil
			continue
		}
		e, err := encodeObject(*o)
		if err != nil {
			return nil, err
		}
		previous[id] = &e
	}
	return json.Marshal(previous)
}

const (
	lastTouch = `SELECT stack, by, revision FROM qodstate_apply
WHERE previous ? $1 ORDER BY revision DESC LIMIT 1`

	// The first commit after the one that was seen replaced what was seen.
	firstSince = `SELECT previous -> $1 FROM qodstate_apply
WHERE revision > $2 AND previous ? $1 ORDER BY revision LIMIT 1`
)

// conflict says what became of the object that a write was made for.
func conflict(ctx context.Context, tx pgx.Tx, rows *store.Rows, w store.Write) error {
	var last store.Touch
	err := tx.QueryRow(ctx, lastTouch, w.ID).Scan(&last.Stack, &last.By, &last.Revision)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	var raw []byte
	err = tx.QueryRow(ctx, firstSince, w.ID, w.Saw).Scan(&raw)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	seen, err := decodePrevious(w.ID, raw)
	if err != nil {
		return err
	}
	var now *store.Object
	if o, exists := rows.Object(w.ID); exists {
		now = &o
	}
	return store.Conflict(w, now, seen, last)
}

func decodePrevious(id string, raw []byte) (*store.Object, error) {
	var e *encoded
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, fmt.Errorf("read history of object %s: %w", id, err)
		}
	}
	if e == nil {
		return nil, nil
	}
	kind, ok := schema.Lookup(e.Kind)
	if !ok {
		return nil, fmt.Errorf("read history of object %s: there is no kind %q: %w", id, e.Kind, store.ErrNewer)
	}
	spec, err := kind.Decode(e.Spec)
	if err != nil {
		return nil, fmt.Errorf("read history of object %s: %w", id, err)
	}
	return &store.Object{ID: id, Kind: kind, Spec: spec}, nil
}
