package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/parallel"
	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// objectColumns are those of an objectRow. Most objects are as they were applied: then the value is
// neither sent nor decoded twice.
const objectColumns = `
SELECT o.id::text, o.kind, o.key, o.spec,
    CASE WHEN o.applied IS DISTINCT FROM o.spec THEN o.applied END,
    coalesce(o.applied = o.spec, false),
    o.address, o.stack, o.generation, o.revision, o.status, o.schema_version, o.tombstone IS NOT NULL,
    o.protected, nullif(o.sensitive, '[]')
FROM qodstate_object o `

// objectRow is an object as it is stored.
type objectRow struct {
	id, kind, key  string
	spec, applied  []byte
	asApplied      bool
	address, stack string
	generation     int64
	revision       store.Revision
	status         []byte
	version        int
	tombstone      bool
	protected      bool
	sensitive      []byte
}

func scanObject(row pgx.CollectableRow) (objectRow, error) {
	var o objectRow
	err := row.Scan(&o.id, &o.kind, &o.key, &o.spec, &o.applied, &o.asApplied, &o.address, &o.stack,
		&o.generation, &o.revision, &o.status, &o.version, &o.tombstone, &o.protected, &o.sensitive)
	return o, err
}

func (r objectRow) object() (store.Object, error) {
	kind, ok := schema.Lookup(r.kind)
	if !ok {
		return store.Object{}, fmt.Errorf("read object %s: there is no kind %q: %w", r.id, r.kind, store.ErrNewer)
	}
	if r.version > kind.Version {
		return store.Object{}, fmt.Errorf("read %s.%s: it has version %d of its kind: %w", r.kind, r.key, r.version, store.ErrNewer)
	}
	spec, err := kind.Decode(r.spec)
	if err != nil {
		return store.Object{}, fmt.Errorf("read %s.%s: %w", r.kind, r.key, err)
	}
	applied := cty.NilVal
	switch {
	case r.asApplied:
		applied = spec
	case r.applied != nil:
		if applied, err = kind.Decode(r.applied); err != nil {
			return store.Object{}, fmt.Errorf("read what was applied to %s.%s: %w", r.kind, r.key, err)
		}
	}
	o := store.Object{
		ID: r.id, Kind: kind, Spec: spec, Applied: applied, Address: r.address, Stack: r.stack,
		Generation: r.generation, Revision: r.revision, Tombstone: r.tombstone, Protected: r.protected,
	}
	if r.sensitive != nil {
		if err := json.Unmarshal(r.sensitive, &o.Sensitive); err != nil {
			return store.Object{}, fmt.Errorf("read sensitive attributes of %s.%s: %w", r.kind, r.key, err)
		}
	}
	if len(r.status) > len(`{}`) {
		if err := json.Unmarshal(r.status, &o.Status); err != nil {
			return store.Object{}, fmt.Errorf("read status of %s.%s: %w", r.kind, r.key, err)
		}
	}
	return o, nil
}

// enoughToShare is how many objects are worth a processor of their own.
const enoughToShare = 256

// decode turns rows into objects on all processors: a store may hold many thousands.
func decode(rows []objectRow) ([]store.Object, error) {
	objects := make([]store.Object, len(rows))
	errs := make([]error, len(rows))
	parallel.Do(len(rows), enoughToShare, func(first, step int) {
		for i := first; i < len(rows) && errs[first] == nil; i += step { // the first thing of each call has its error
			objects[i], errs[first] = rows[i].object()
		}
	})
	return objects, errors.Join(errs...)
}

// reading is what was read last. Commits and lesser changes raise the revision, and each commit leaves a
// record: as long as there is no newer one, only statuses, tokens and what is revoked can be different.
type reading struct {
	commit   string // id of the newest record; "" before the first
	snapshot *store.Snapshot
}

// Snapshot implements store.Store. What has not changed since the last reading is not read again.
func (s *Store) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	var now reading
	err := s.read(ctx, "read state", func(ctx context.Context) error {
		options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
			var err error
			now, err = last.next(ctx, tx)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
	return now.snapshot, nil
}

const newestReading = `SELECT revision, coalesce((SELECT id::text FROM qodstate_apply ORDER BY revision DESC LIMIT 1), '')
FROM qodstate_revision`

// next reads what is different from the last reading.
func (r reading) next(ctx context.Context, tx pgx.Tx) (reading, error) {
	var revision store.Revision
	var commit string
	if err := tx.QueryRow(ctx, newestReading).Scan(&revision, &commit); err != nil {
		return r, err
	}
	known := r.snapshot != nil && r.commit == commit
	if known && r.snapshot.Revision == revision {
		return r, nil
	}
	read := readAll
	if known {
		read = r.readRest
	}
	snapshot, err := read(ctx, tx)
	if err != nil {
		return r, err
	}
	snapshot.Revision = revision
	return reading{commit, snapshot}, nil
}

// readRest returns the last snapshot with what changes without a commit.
func (r reading) readRest(ctx context.Context, tx pgx.Tx) (*store.Snapshot, error) {
	statuses := map[string]store.Status{}
	snapshot := *r.snapshot
	batch := &pgx.Batch{}
	batch.Queue(`SELECT id::text, status FROM qodstate_object WHERE status <> '{}'`).Query(func(rows pgx.Rows) error {
		var id string
		var raw []byte
		_, err := pgx.ForEachRow(rows, []any{&id, &raw}, func() error {
			var status store.Status
			err := json.Unmarshal(raw, &status)
			statuses[id] = status
			return err
		})
		return err
	})
	queueIdentity(batch, &snapshot)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	snapshot.Objects = slices.Clone(r.snapshot.Objects)
	for i := range snapshot.Objects {
		snapshot.Objects[i].Status = statuses[snapshot.Objects[i].ID]
	}
	return &snapshot, nil
}

// readAll reads what commits write.
func readAll(ctx context.Context, tx pgx.Tx) (*store.Snapshot, error) {
	snapshot := &store.Snapshot{
		Secrets: map[store.SecretKey]store.Sealed{}, Stacks: map[string]store.Stack{}, Outputs: map[string][]schema.Output{},
		Lost: map[string][]store.Lost{},
	}
	var objects []objectRow
	batch := &pgx.Batch{}
	queueIdentity(batch, snapshot)
	batch.Queue(objectColumns).Query(func(rows pgx.Rows) (err error) {
		objects, err = pgx.CollectRows(rows, scanObject)
		return err
	})
	batch.Queue(`SELECT object_id::text, attribute, sealed FROM qodstate_secret`).Query(func(rows pgx.Rows) error {
		var key store.SecretKey
		var sealed []byte
		_, err := pgx.ForEachRow(rows, []any{&key.Object, &key.Attr, &sealed}, func() error {
			snapshot.Secrets[key] = sealed
			return nil
		})
		return err
	})
	batch.Queue(`SELECT name, lineage FROM qodstate_stack`).Query(func(rows pgx.Rows) error {
		var stack store.Stack
		_, err := pgx.ForEachRow(rows, []any{&stack.Name, &stack.Lineage}, func() error {
			snapshot.Stacks[stack.Name] = stack
			return nil
		})
		return err
	})
	batch.Queue(allOutputs).Query(func(rows pgx.Rows) error {
		kept, err := pgx.CollectRows(rows, scanOutput)
		for _, o := range kept {
			snapshot.Outputs[o.stack] = append(snapshot.Outputs[o.stack], o.Output)
		}
		return err
	})
	queueReadLost(batch, snapshot.Lost)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	var err error
	if snapshot.Objects, err = decode(objects); err != nil {
		return nil, err
	}
	store.SortObjects(snapshot.Objects)
	return snapshot, nil
}
