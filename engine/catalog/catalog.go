// Package catalog makes, observes and removes the outside of a tenant_db: a Postgres role and a database
// of its own, and in them a DuckLake.
//
// All steps are level-triggered: Create makes what is missing and may be repeated after a crash at any
// point, Delete takes away what is there. Role and database are named for the object's id and carry it in
// their comment, next to the name that people know; what has the name without the id is somebody else's
// and is refused. A role gets its comment in the transaction that makes it; a database, which cannot, is
// made under another name and gets its own together with the comment.
//
// What a lake's tables and files look like is left to the Host. Whatever a tenant could have put into
// its database is read as the tenant's role, never as the administrator.
package catalog

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store"
	"github.com/qod-io/qod/schema"
)

// PasswordAttr names the secret of a tenant_db that its role logs in with.
const PasswordAttr = "catalog_password"

// ErrForeign is matched when a database or role has the name of ours but does not carry our id.
var ErrForeign = errors.New("it does not carry the object's id, so it is not ours and is left alone")

// ErrLost is matched when the database of a lake that was ready is gone.
var ErrLost = errors.New("it was there and is gone: restore it from a backup, or, to start anew without its data, " +
	"take the tenant_db out of the configuration and put it in again")

// Host makes and removes what is outside Postgres. Its methods are idempotent.
type Host interface {
	// InitLake makes the data directory, the lake's tables and its default schema, as far as missing.
	InitLake(ctx context.Context, lake Lake) error
	// RemoveData removes the data of the database. Absence is success.
	RemoveData(ctx context.Context, databaseID string) error
	// DataExists says whether the data of the database is there.
	DataExists(ctx context.Context, databaseID string) (bool, error)
	// DataPath returns where the data of the database is or will be.
	DataPath(databaseID string) string
}

// Lake is what attaching a lake needs. It has the fields of wire.Lake in their order, and converts to it.
type Lake struct {
	Name          string // in SQL: the tenant_db's name
	DatabaseID    string // of the tenant_db
	DefaultSchema string
	DataPath      string
	Host          string // of Postgres: a name, or the directory of its socket
	Port          int
	Database      string
	User          string
	Password      string
}

// Config is what a Catalog works with.
type Config struct {
	// Admin is the URL of a database on the server of the lakes, as a superuser or as a role with
	// CREATEDB and CREATEROLE.
	Admin string
	Host  Host
	// Log is told what is made and removed. Nil: nothing is logged.
	Log *slog.Logger
}

// Catalog is the outside of tenant_dbs on one Postgres server. Its methods may be called from several
// goroutines and processes.
type Catalog struct {
	admin *pgx.ConnConfig
	host  Host
	log   *slog.Logger
}

// New returns a Catalog. It does not connect.
func New(cfg Config) (*Catalog, error) {
	admin, err := pgx.ParseConfig(cfg.Admin)
	if err != nil {
		return nil, fmt.Errorf("read administrator's URL: %w", err) // pgx leaves the password out
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Catalog{admin: admin, host: cfg.Host, log: log}, nil
}

// Secrets returns a fresh password for the role of a new tenant_db.
func (c *Catalog) Secrets() (map[string][]byte, error) {
	raw := make([]byte, 24)
	rand.Read(raw)
	return map[string][]byte{PasswordAttr: []byte(base64.RawURLEncoding.EncodeToString(raw))}, nil
}

// LakeOf returns how the lake of a tenant_db is attached.
func (c *Catalog) LakeOf(o store.Object, password []byte) (Lake, error) {
	v, err := o.Complete()
	if err != nil {
		return Lake{}, err
	}
	db, err := schema.As[schema.TenantDB](v)
	if err != nil {
		return Lake{}, fmt.Errorf("read %s: %w", o.Addr(), err)
	}
	name, err := NameOf(o.ID)
	if err != nil {
		return Lake{}, err
	}
	return Lake{
		Name: db.Name, DatabaseID: o.ID, DefaultSchema: db.DefaultSchema, DataPath: c.host.DataPath(o.ID),
		Host: c.admin.Host, Port: int(c.admin.Port), Database: name, User: name, Password: string(password),
	}, nil
}

// NameOf returns the name of the database and of the role of the tenant_db with that id.
func NameOf(id string) (string, error) {
	digits := strings.ReplaceAll(id, "-", "")
	if len(digits) != 32 || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", fmt.Errorf("name database: %q is no uuid in lower case", id)
	}
	return "qod_" + digits[:16], nil
}

// mark is the comment on what is ours.
type mark struct {
	ID   string `json:"qod_id"`
	Name string `json:"name"` // tenant/name, for people
}

func markOf(o store.Object) (string, error) {
	raw, err := json.Marshal(mark{ID: o.ID, Name: o.Addr().Path})
	if err != nil {
		return "", fmt.Errorf("mark %s: %w", o.Addr(), err)
	}
	return string(raw), nil
}

// carries says whether a comment is ours for that id.
func carries(comment, id string) bool {
	var m mark
	return json.Unmarshal([]byte(comment), &m) == nil && m.ID == id
}
