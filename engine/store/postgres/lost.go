package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

const (
	// actFor has the triggers on qodstate_object know until the end of the transaction whose commit it is.
	actFor = `SELECT set_config('qod.stack', $1, true)`

	settleLost = `DELETE FROM qodstate_lost l WHERE l.stack = $1
AND (l.id = ANY ($2::text[]::uuid[]) OR EXISTS (SELECT FROM qodstate_object o WHERE o.id = l.id AND o.tombstone IS NULL))`

	allLost = `SELECT l.stack, l.id::text, l.kind, l.key, l.address FROM qodstate_lost l
WHERE NOT EXISTS (SELECT FROM qodstate_object o WHERE o.id = l.id AND o.tombstone IS NULL)`
)

// queueLost comes before all that changes objects: what the stack ends from then on is not lost, and what
// came back under its id may be ended again.
func (a *apply) queueLost(batch *pgx.Batch) {
	stack := a.change.Stack.Name
	if stack == "" {
		return
	}
	batch.Queue(actFor, stack)
	batch.Queue(settleLost, stack, a.change.Settle)
}

// queueReadLost reads what each stack has lost.
func queueReadLost(batch *pgx.Batch, lost map[string][]store.Lost) {
	batch.Queue(allLost).Query(func(rows pgx.Rows) error {
		var l store.Lost
		var stack string
		_, err := pgx.ForEachRow(rows, []any{&stack, &l.ID, &l.Addr.Kind, &l.Addr.Path, &l.Address}, func() error {
			lost[stack] = append(lost[stack], l)
			return nil
		})
		for _, list := range lost {
			store.SortLost(list)
		}
		return err
	})
}
