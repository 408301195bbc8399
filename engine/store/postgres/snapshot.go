package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

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

// decode turns rows into objects on all processors: a store may hold many thousands.
func decode(rows []objectRow) ([]store.Object, error) {
	objects := make([]store.Object, len(rows))
	workers := min(runtime.GOMAXPROCS(0), 1+len(rows)/256)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(rows) && errs[w] == nil; i += workers {
				objects[i], errs[w] = rows[i].object()
			}
		})
	}
	group.Wait()
	return objects, errors.Join(errs...)
}

// Snapshot implements store.Store.
func (s *Store) Snapshot(ctx context.Context) (*store.Snapshot, error) {
	var snapshot *store.Snapshot
	err := s.read(ctx, "read state", func(ctx context.Context) error {
		var rows []objectRow
		var err error
		snapshot, rows, err = s.readAll(ctx)
		if err != nil {
			return err
		}
		snapshot.Objects, err = decode(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	store.SortObjects(snapshot.Objects)
	return snapshot, nil
}

func (s *Store) readAll(ctx context.Context) (*store.Snapshot, []objectRow, error) {
	snapshot := &store.Snapshot{
		Secrets: map[store.SecretKey]store.Sealed{}, Stacks: map[string]store.Stack{}, Outputs: map[string][]schema.Output{},
	}
	var objects []objectRow
	batch := &pgx.Batch{}
	batch.Queue(`SELECT revision FROM qodstate_revision`).QueryRow(func(row pgx.Row) error {
		return row.Scan(&snapshot.Revision)
	})
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
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		return tx.SendBatch(ctx, batch).Close()
	})
	return snapshot, objects, err
}
