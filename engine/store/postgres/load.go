package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/zclconf/go-cty/cty"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// load reads the rows that a change is applied to, as store.Rows asks for them. The caller holds the
// write lock.
func load(ctx context.Context, tx pgx.Tx, c store.Change) (*store.Rows, error) {
	l := &loader{tx: tx, change: c, objects: map[string]store.Object{}}
	for _, step := range []func(context.Context) error{l.written, l.referrers, l.references, l.named} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return store.NewRows(slices.Collect(maps.Values(l.objects)), l.refs), nil
}

type loader struct {
	tx      pgx.Tx
	change  store.Change
	objects map[string]store.Object
	refs    []store.ObjectRef
}

func (l *loader) query(ctx context.Context, where string, args ...any) error {
	rows, err := l.tx.Query(ctx, objectColumns+where, args...)
	if err != nil {
		return err
	}
	raw, err := pgx.CollectRows(rows, scanObject)
	if err != nil {
		return err
	}
	objects, err := decode(raw)
	for _, o := range objects {
		l.objects[o.ID] = o
	}
	return err
}

// written loads the objects that the change names.
func (l *loader) written(ctx context.Context) error {
	var ids []string
	for _, w := range l.change.Writes {
		if _, err := uuid.Parse(w.ID); err == nil {
			ids = append(ids, w.ID)
		}
	}
	return l.query(ctx, `WHERE o.id = ANY ($1::text[]::uuid[])`, ids)
}

const (
	whereReferrers = `
WHERE o.id IN (SELECT r.from_id FROM qodstate_object_ref r WHERE r.to_id = ANY ($1::text[]::uuid[]))`

	// What was applied has no resolved references. Where it differs from the spec it may name a renamed
	// object that the spec does not.
	whereFollow = `
WHERE o.id IN (
    WITH RECURSIVE up (id) AS (
        SELECT unnest($1::text[]::uuid[])
        UNION SELECT r.from_id FROM qodstate_object_ref r JOIN up ON r.to_id = up.id
    )
    SELECT id FROM up
) OR o.applied <> o.spec`
)

// referrers loads whoever refers to what is deleted, and directly or not to what is renamed.
func (l *loader) referrers(ctx context.Context) error {
	var gone, renamed []string
	for _, w := range l.change.Writes {
		old, exists := l.objects[w.ID]
		switch {
		case !exists:
		case w.Op != store.Put:
			gone = append(gone, w.ID)
		case w.Kind == old.Kind && w.Spec != cty.NilVal && !sameKey(w.Kind, old.Spec, w.Spec):
			renamed = append(renamed, w.ID)
		}
	}
	if len(gone) > 0 {
		if err := l.query(ctx, whereReferrers, gone); err != nil {
			return err
		}
	}
	if len(renamed) > 0 {
		return l.query(ctx, whereFollow, renamed)
	}
	return nil
}

// sameKey compares names as they are written: another case is another name to those that refer to it.
func sameKey(kind *schema.Kind, a, b cty.Value) bool {
	last := kind.Key[len(kind.Key)-1]
	if a.Type().HasAttribute(last) && !a.GetAttr(last).RawEquals(b.GetAttr(last)) {
		return false
	}
	return kind.Addr(a) == kind.Addr(b)
}

// references loads the resolved references of all objects that are loaded.
func (l *loader) references(ctx context.Context) error {
	if len(l.objects) == 0 {
		return nil
	}
	rows, err := l.tx.Query(ctx, `SELECT from_id::text, attribute, to_id::text FROM qodstate_object_ref
		WHERE from_id = ANY ($1::text[]::uuid[]) ORDER BY from_id, ordinal`, slices.Collect(maps.Keys(l.objects)))
	if err != nil {
		return err
	}
	l.refs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.ObjectRef])
	return err
}

const whereNamed = `
WHERE o.id = ANY ($1::text[]::uuid[])
   OR (o.kind, o.key) IN (SELECT * FROM unnest($2::text[], $3::text[]))
   OR o.address <> '' AND (o.stack, o.address) IN (SELECT * FROM unnest($4::text[], $5::text[]))`

// named loads what the loaded objects refer to, what the written values refer to, and whatever has
// their key or address.
func (l *loader) named(ctx context.Context) error {
	ids := map[string]bool{}
	for _, ref := range l.refs {
		if _, loaded := l.objects[ref.To]; !loaded {
			ids[ref.To] = true
		}
	}
	addrs := map[schema.Addr]bool{}
	var stacks, addresses []string
	for _, w := range l.change.Writes {
		if w.Op != store.Put || w.Kind == nil || w.Spec == cty.NilVal {
			continue
		}
		addrs[w.Kind.Addr(w.Spec)] = true
		for _, ref := range w.Kind.Refs(w.Spec) {
			addrs[ref.To] = true
		}
		stacks, addresses = append(stacks, w.Stack), append(addresses, w.Address)
	}
	if len(ids) == 0 && len(addrs) == 0 {
		return nil
	}
	var kinds, keys []string
	for addr := range addrs {
		kinds, keys = append(kinds, addr.Kind), append(keys, addr.Path)
	}
	return l.query(ctx, whereNamed, slices.Collect(maps.Keys(ids)), kinds, keys, stacks, addresses)
}
