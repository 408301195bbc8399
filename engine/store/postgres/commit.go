package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// Commit implements store.Store. When the context ends while Postgres has the commit, or its answer is
// lost and Postgres does not come back in time, the outcome is unknown and the error is the context's:
// reading the store again tells, and so does ErrPlanUsed on a second try.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	return s.commit(ctx, c, false)
}

// Check implements store.Store.
func (s *Store) Check(ctx context.Context, c store.Change) error {
	_, err := s.commit(ctx, c, true)
	return err
}

func (s *Store) commit(ctx context.Context, c store.Change, dry bool) (store.Revision, error) {
	sealed, err := c.Seal(s.sealer)
	if err != nil {
		return 0, err
	}
	outputs, err := c.KeepOutputs(s.sealer)
	if err != nil {
		return 0, err
	}
	a := &apply{id: uuid.NewString(), change: c, sealed: sealed, outputs: outputs, dry: dry}
	var revision store.Revision
	err = s.write(ctx, "commit", func(ctx context.Context) error {
		revision, err = a.run(ctx, s)
		return err
	})
	return revision, err
}

// apply is one call of Commit or, when it is dry, of Check.
type apply struct {
	id     string // of its record in qodstate_apply
	change store.Change
	sealed map[store.SecretKey]store.Sealed
	tries  int
	dry    bool

	outputs []store.KeptOutput // those of the change, nil for none
	// known is the stack as it was before, by its name, and kept are its outputs.
	known store.Stack
	kept  []store.KeptOutput
}

// run is one try. The lock on the revision waits for an earlier try that is still in Postgres, so
// afterwards its record is either there or will never be.
func (a *apply) run(ctx context.Context, s *Store) (store.Revision, error) {
	a.tries++
	var revision store.Revision
	err := s.transact(ctx, func(tx pgx.Tx, now store.Revision) (bool, error) {
		if a.tries > 1 {
			err := tx.QueryRow(ctx, `SELECT revision FROM qodstate_apply WHERE id = $1`, a.id).Scan(&revision)
			if !errors.Is(err, pgx.ErrNoRows) {
				return false, err
			}
		}
		if err := a.admit(ctx, tx); err != nil {
			return false, err
		}
		if store.SameOutputs(a.outputs, a.kept) && a.change.Idle(a.known) {
			revision = now
			return false, nil
		}
		rows, err := load(ctx, tx, a.change)
		if err != nil {
			return false, err
		}
		if w, moved := rows.Moved(a.change); moved {
			return false, conflict(ctx, tx, rows, w)
		}
		revision = now + 1
		edit, err := rows.Apply(a.change, revision)
		if err != nil || a.dry {
			return false, err
		}
		return true, a.save(ctx, tx, edit, revision)
	})
	return revision, err
}

// commitPatience is how long an answer to COMMIT is waited for after the caller's context has ended.
const commitPatience = 5 * time.Second

// transact runs f with the write lock held and the schema checked. If f says that it wrote, the
// revision is raised and everybody is notified, otherwise nothing happened.
func (s *Store) transact(ctx context.Context, f func(tx pgx.Tx, now store.Revision) (wrote bool, err error)) error {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = answer(context.WithoutCancel(ctx), tx.Rollback) }()
	now, err := lockRevision(ctx, tx)
	if err != nil {
		return err
	}
	wrote, err := f(tx, now)
	if err != nil || !wrote {
		return err
	}
	if err := raise(ctx, tx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitPatience)
	defer cancel()
	return tx.Commit(ctx)
}

func lockRevision(ctx context.Context, tx pgx.Tx) (store.Revision, error) {
	var now store.Revision
	var version int
	batch := &pgx.Batch{}
	batch.Queue(`SELECT revision FROM qodstate_revision FOR UPDATE`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	batch.Queue(newest).QueryRow(func(row pgx.Row) error { return row.Scan(&version) })
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return 0, err
	}
	return now, current(version)
}

func raise(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE qodstate_revision SET revision = revision + 1`)
	batch.Queue(`NOTIFY qod_topology`)
	return tx.SendBatch(ctx, batch).Close()
}

// admit checks what stands before the objects: the stack, the plan and the lease.
func (a *apply) admit(ctx context.Context, tx pgx.Tx) error {
	var used bool
	a.known, a.kept = store.Stack{}, nil
	batch := &pgx.Batch{}
	batch.Queue(`SELECT name, lineage FROM qodstate_stack WHERE name = $1`, a.change.Stack.Name).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&a.known.Name, &a.known.Lineage)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	batch.Queue(`SELECT EXISTS (SELECT FROM qodstate_apply WHERE plan_id = $1)`, a.change.PlanID).QueryRow(func(row pgx.Row) error {
		return row.Scan(&used)
	})
	if a.outputs != nil {
		batch.Queue(stackOutputs, a.change.Stack.Name).Query(func(rows pgx.Rows) error {
			kept, err := pgx.CollectRows(rows, scanOutput)
			for _, o := range kept {
				a.kept = append(a.kept, o.KeptOutput)
			}
			return err
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if used {
		return store.ErrPlanUsed
	}
	if err := a.change.Admit(a.known); err != nil {
		return err
	}
	return held(ctx, tx, a.change.Lease)
}

// held checks a lease and keeps its term from changing before the transaction ends.
func held(ctx context.Context, tx pgx.Tx, l store.Lease) error {
	if l == nil {
		return nil
	}
	var term int64
	err := tx.QueryRow(ctx, `SELECT term FROM qodstate_lease WHERE name = $1 FOR SHARE`, l.Name()).Scan(&term)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	return store.Held(l, term)
}
