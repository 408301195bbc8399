package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// ListNodes implements store.Nodes.
func (s *Store) ListNodes(ctx context.Context) ([]store.Node, error) {
	var nodes []store.Node
	err := s.read(ctx, "list nodes", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `SELECT id, pool_id, host, role, endpoint, pid, started, spec_hash, incarnation,
			phase, reason, seen FROM qodstate_node ORDER BY id`)
		if err != nil {
			return err
		}
		nodes, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.Node])
		return err
	})
	for i := range nodes {
		nodes[i].Started, nodes[i].Seen = store.Stamp(nodes[i].Started), store.Stamp(nodes[i].Seen)
	}
	return nodes, err
}

const (
	sameNode = `SELECT EXISTS (SELECT FROM qodstate_node
WHERE (id, pool_id, host, role, endpoint, pid, started, spec_hash, incarnation, phase, reason)
    = ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11))`

	putNode = `INSERT INTO qodstate_node
    (id, pool_id, host, role, endpoint, pid, started, spec_hash, incarnation, phase, reason)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET pool_id = excluded.pool_id, host = excluded.host, role = excluded.role,
    endpoint = excluded.endpoint, pid = excluded.pid, started = excluded.started, spec_hash = excluded.spec_hash,
    incarnation = excluded.incarnation, phase = excluded.phase, reason = excluded.reason`
)

// PutNode implements store.Nodes.
func (s *Store) PutNode(ctx context.Context, n store.Node) error {
	args := []any{
		n.ID, n.PoolID, n.Host, n.Role, n.Endpoint, n.PID, store.Stamp(n.Started), n.SpecHash, n.Incarnation, n.Phase, n.Reason,
	}
	return s.write(ctx, "put node", func(ctx context.Context) error {
		var same bool
		if err := s.pool.QueryRow(ctx, sameNode, args...).Scan(&same); err != nil || same {
			return err
		}
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			_, err := tx.Exec(ctx, putNode, args...)
			return true, err
		})
	})
}

// RemoveNode implements store.Nodes.
func (s *Store) RemoveNode(ctx context.Context, id string) error {
	return s.write(ctx, "remove node", func(ctx context.Context) error {
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			tag, err := tx.Exec(ctx, `DELETE FROM qodstate_node WHERE id = $1`, id)
			return tag.RowsAffected() > 0, err
		})
	})
}

// SawNodes implements store.Nodes.
func (s *Store) SawNodes(ctx context.Context, ids []string) error {
	return s.write(ctx, "record nodes as seen", func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `UPDATE qodstate_node SET seen = now() WHERE id = ANY($1)`, ids)
		return err
	})
}

// ListKeys implements store.Keys.
func (s *Store) ListKeys(ctx context.Context) ([]store.Key, error) {
	var keys []store.Key
	err := s.read(ctx, "list keys", func(ctx context.Context) error {
		rows, err := s.pool.Query(ctx, `SELECT id, sealed, created FROM qodstate_key ORDER BY created DESC, id DESC`)
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, pgx.RowToStructByPos[store.Key])
		return err
	})
	for i := range keys {
		keys[i].Created = store.Stamp(keys[i].Created)
	}
	return keys, err
}

// AddKey implements store.Keys.
func (s *Store) AddKey(ctx context.Context, k store.Key) ([]store.Key, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	err := s.write(ctx, "add key", func(ctx context.Context) error {
		return s.transact(ctx, func(tx pgx.Tx, _ store.Revision) (bool, error) {
			tag, err := tx.Exec(ctx, `INSERT INTO qodstate_key (id, sealed, created) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING`,
				k.ID, []byte(k.Sealed), store.Stamp(k.Created))
			return tag.RowsAffected() > 0, err
		})
	})
	if err != nil {
		return nil, err
	}
	return s.ListKeys(ctx)
}
