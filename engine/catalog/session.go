package catalog

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
)

// lockClass is the first key of all our advisory locks, "qodc": the two-key form, whose space Postgres keeps
// apart from that of one-key locks. The store's leases have another class, "qod". The second key is the last
// 32 bits of the tenant_db's id; two ids that share them only wait for each other.
const lockClass int32 = 0x716f6463

func lockKey(id string) (int32, error) {
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	if err != nil || len(raw) < 4 {
		return 0, fmt.Errorf("lock database: %q is no uuid", id)
	}
	return int32(binary.BigEndian.Uint32(raw[len(raw)-4:])), nil
}

// session is work on one tenant_db by the only process that does so at the time.
type session struct {
	*pgx.Conn // the administrator's, which holds the lock
	catalog   *Catalog
	object    store.Object
	super     bool   // the administrator is a superuser
	name      string // of database and role
	mark      string
}

// with runs fn under the lock of the object, on a connection of its own: the lock goes with the
// connection, also when this process dies.
func (c *Catalog) with(ctx context.Context, o store.Object, fn func(*session) error) error {
	s := &session{catalog: c, object: o}
	var err error
	if s.name, err = NameOf(o.ID); err != nil {
		return err
	}
	if s.mark, err = markOf(o); err != nil {
		return err
	}
	key, err := lockKey(o.ID)
	if err != nil {
		return err
	}
	if s.Conn, err = c.connect(ctx, login{}); err != nil {
		return err
	}
	defer s.Conn.Close(context.WithoutCancel(ctx))
	if _, err := s.Exec(ctx, "SELECT pg_catalog.pg_advisory_lock($1, $2)", lockClass, key); err != nil {
		return fmt.Errorf("lock %s: %w", s.name, err)
	}
	if err := s.QueryRow(ctx, "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = CURRENT_USER").Scan(&s.super); err != nil {
		return fmt.Errorf("read administrator's rights: %w", err)
	}
	return fn(s)
}

// login says as whom and where to connect; empty fields are the administrator's.
type login struct{ database, user, password string }

func (c *Catalog) connect(ctx context.Context, l login) (*pgx.Conn, error) {
	cfg := c.admin.Copy()
	if l.database != "" {
		cfg.Database = l.database
	}
	if l.user != "" {
		cfg.User, cfg.Password = l.user, l.password
	}
	// No name that a tenant may have made is found without its schema.
	cfg.RuntimeParams["search_path"] = "pg_catalog"
	cfg.RuntimeParams["application_name"] = "qod catalog"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to Postgres: %w", err)
	}
	return conn, nil
}

// in runs fn on another connection.
func (s *session) in(ctx context.Context, l login, fn func(*pgx.Conn) error) error {
	conn, err := s.catalog.connect(ctx, l)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return fn(conn)
}

// do runs a statement that takes no parameters.
func (s *session) do(ctx context.Context, statement string) error {
	_, err := s.Exec(ctx, statement)
	return err
}

// info logs a step that was done.
func (s *session) info(what string) {
	s.catalog.log.Info(what, "object", s.object.Addr().String(), "name", s.name)
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal quotes a string under standard_conforming_strings, for statements that take no parameters.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
