// Package backend has the nouns of where nodes run: a Spec says how to run one, a Node is one that runs,
// a Backend runs them. It does no IO. backendtest defines what a Backend must do.
package backend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

// Role says which statements a node takes.
type Role string

const (
	Read  Role = "read"  // only reads
	Write Role = "write" // only writes
	Dual  Role = "dual"  // both
)

// Lake is what a node needs to know to attach a DuckLake.
type Lake struct {
	Name          string `json:"name"`       // of the database in SQL: the tenant_db's name
	DatabaseID    string `json:"databaseId"` // of the tenant_db
	DefaultSchema string `json:"defaultSchema"`
	DataPath      string `json:"dataPath"` // absolute
	Host          string `json:"host"`     // of Postgres: a name, or the directory of its socket
	Port          int    `json:"port"`
	Database      string `json:"database"`
	User          string `json:"user"`
	// Password goes to the node by descriptor. It is not part of the hash; PasswordPrint is.
	Password      string `json:"-"`
	PasswordPrint string `json:"passwordPrint"`
}

// Spec is how to run one node. Nodes of equal Hash are interchangeable.
type Spec struct {
	PoolID       string `json:"poolId"`
	Role         Role   `json:"role"`
	Lake         Lake   `json:"lake"`
	MemoryBytes  int64  `json:"memoryBytes"`
	Threads      int    `json:"threads"`
	ExtensionDir string `json:"extensionDir"` // holds v1.5.5/<platform>/*.duckdb_extension
	// Restart says since when nodes are new enough, where that was ever asked for.
	Restart string `json:"restart,omitempty"`
	// Live settings reach a running node by its configure action and are not part of the hash.
	Live Live `json:"-"`
	// Sensitive are attributes whose values must not be shown.
	Sensitive []string `json:"-"`
	// PoolKeys are the pool's sealing keys, current first: given by descriptor, never hashed.
	PoolKeys []PoolKey `json:"-"`
}

// Live is what a running node is told to change without a restart.
type Live struct {
	MaxConcurrent      int           `json:"maxConcurrent"`
	StatementTimeout   time.Duration `json:"statementTimeout"`   // 0: none
	SessionIdleTimeout time.Duration `json:"sessionIdleTimeout"` // 0: never
}

// PoolKey is one sealing key of a pool.
type PoolKey struct {
	ID  int    `json:"id"`
	Key []byte `json:"key"`
}

// Hash covers what the node's DuckDB is given, with secrets as fingerprints, and not qod's version.
func (s Spec) Hash() string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic("backend: encode spec: " + err.Error()) // a struct of strings and numbers always encodes
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// Phase is where in its life a node is.
type Phase string

const (
	Starting    Phase = "starting"    // its process runs and has not passed a probe
	Serving     Phase = "serving"     // it passed its last probe and takes statements
	Quarantined Phase = "quarantined" // it failed a probe; no traffic until it passes one
	Draining    Phase = "draining"    // no new statements or sessions; what runs may end
	Gone        Phase = "gone"        // its process has ended
)

// Node is a node that a Backend runs.
type Node struct {
	ID       string // uuid, made by who asked for the start
	PoolID   string
	Role     Role
	Endpoint string // as grpc.NewClient takes it: unix:///run/qod/…/1a2b3c4d.sock
	PID      int    // 0 where the backend has none
	Started  time.Time
	SpecHash string
	Parts    Parts  // of its Spec; nil where the backend does not know them
	Exited   bool   // the process has ended; the backend still has its remains
	Reason   string // why it exited, as far as known
}

// ErrNotOurs is returned for a node that exists but cannot be proven to be this backend's.
var ErrNotOurs = errors.New("not a node of this backend")

// Backend runs nodes. A node outlives the process that started it: List finds those of earlier ones.
// Start and Stop are idempotent by id. All methods may be called from several goroutines.
type Backend interface {
	// List returns every node of this backend, running or just exited, from the world and not from memory.
	List(ctx context.Context) ([]Node, error)
	// Start runs a node with that id. It returns once the process exists; whether it works, a probe tells.
	Start(ctx context.Context, id string, spec Spec) (Node, error)
	// Stop ends a node: asks, waits up to grace, then kills. It removes the remains. A node that is
	// gone is no error; a foreign process under its pid is never touched.
	Stop(ctx context.Context, id string, grace time.Duration) error
	// Exits sends the id of each node that exits until ctx ends. It blocks.
	Exits(ctx context.Context, exited func(id string)) error
}
