package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

const (
	deleteRefs = `DELETE FROM qodstate_object_ref
WHERE from_id = ANY ($1::text[]::uuid[]) OR to_id = ANY ($2::text[]::uuid[])`

	deleteObjects = `DELETE FROM qodstate_object WHERE id = ANY ($1::text[]::uuid[])`

	// The status is not the commit's to write.
	putObjects = `
INSERT INTO qodstate_object AS o
    (id, kind, key, spec, applied, address, stack, generation, revision, schema_version, tombstone, protected, sensitive)
SELECT id, kind, key, spec, CASE WHEN as_applied THEN spec ELSE applied END, address, stack, generation, revision,
    schema_version, CASE WHEN buried THEN now() END, protected, sensitive
FROM unnest($1::text[]::uuid[], $2::text[], $3::text[], $4::text[]::jsonb[], $5::text[]::jsonb[], $6::bool[], $7::text[],
    $8::text[], $9::bigint[], $10::bigint[], $11::int[], $12::bool[], $13::bool[], $14::text[]::jsonb[])
    AS n (id, kind, key, spec, applied, as_applied, address, stack, generation, revision, schema_version, buried,
        protected, sensitive)
ON CONFLICT (id) DO UPDATE SET
    key = excluded.key, spec = excluded.spec, applied = excluded.applied, address = excluded.address,
    stack = excluded.stack, generation = excluded.generation, revision = excluded.revision,
    schema_version = excluded.schema_version, updated = now(), protected = excluded.protected,
    sensitive = excluded.sensitive,
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

	putApply = `INSERT INTO qodstate_apply (id, by, host, stack, plan_id, note, revision, previous, previous_outputs)
VALUES ($1::text::uuid, $2, $3, $4, nullif($5, ''), $6, $7, $8::text::jsonb, $9::text::json)`
)

// rowsAtOnce is how many objects a batch has at most. A batch is in memory several times over, encoded; the
// constraints are deferred, and hold for all batches of a transaction together.
const rowsAtOnce = 1000

// save writes what an edit says, and the record of the commit.
func (a *apply) save(ctx context.Context, tx pgx.Tx, e *store.Edit, revision store.Revision) error {
	previous, err := encodePrevious(e.Before)
	if err != nil {
		return err
	}
	previousOutputs, err := a.previousOutputs()
	if err != nil {
		return err
	}
	batch := &pgx.Batch{}
	a.queueLost(batch)
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
	for part := range slices.Chunk(e.Put, rowsAtOnce) {
		if err := queueObjects(batch, part); err != nil {
			return err
		}
		if len(part) < rowsAtOnce {
			continue
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		batch = &pgx.Batch{}
	}
	queueRefs(batch, relinked, e.Refs)
	a.queueSecrets(batch, e.Forget)
	c := a.change
	if c.Stack.Name != "" {
		batch.Queue(putStack, c.Stack.Name, c.Stack.Lineage)
	}
	if err := a.queueOutputs(batch); err != nil {
		return err
	}
	batch.Queue(putApply, a.id, c.By, c.From, c.Stack.Name, c.PlanID, c.Note, revision, string(previous), previousOutputs)
	return tx.SendBatch(ctx, batch).Close()
}

func queueObjects(batch *pgx.Batch, objects []store.Object) error {
	n := len(objects)
	ids, kinds, keys, specs := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	applied, asApplied := make([]*string, n), make([]bool, n)
	addresses, stacks := make([]string, n), make([]string, n)
	generations, revisions := make([]int64, n), make([]int64, n)
	versions, buried := make([]int, n), make([]bool, n)
	protected, sensitive := make([]bool, n), make([]string, n)
	for i, o := range objects {
		encoded, err := store.EncodeObject(o)
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
		protected[i], sensitive[i] = o.Protected, encodeNames(o.Sensitive)
	}
	batch.Queue(putObjects, ids, kinds, keys, specs, applied, asApplied, addresses, stacks, generations, revisions, versions, buried,
		protected, sensitive)
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
