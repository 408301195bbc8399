package wire

import "time"

// NodeConfig is what a node reads, as JSON, from descriptor 3 when it starts. Its listener is
// descriptor 4. Nothing of it appears in arguments or environment.
type NodeConfig struct {
	Version      int           `json:"version"`
	ID           string        `json:"id"`
	PoolID       string        `json:"poolId"`
	Role         string        `json:"role"` // read, write or dual
	SpecHash     string        `json:"specHash"`
	Lake         Lake          `json:"lake"`
	MemoryBytes  int64         `json:"memoryBytes"`
	Threads      int           `json:"threads"`
	TempDir      string        `json:"tempDir"`
	ExtensionDir string        `json:"extensionDir"`
	Keys         []Key         `json:"keys"` // the pool's, current first
	Live         Live          `json:"live"`
	DrainLimit   time.Duration `json:"drainLimit"` // on SIGTERM
}

// Lake is the DuckLake a node attaches.
type Lake struct {
	Name          string `json:"name"` // in SQL
	DatabaseID    string `json:"databaseId"`
	DefaultSchema string `json:"defaultSchema"`
	DataPath      string `json:"dataPath"`
	Host          string `json:"host"`
	Port          int    `json:"port"`
	Database      string `json:"database"`
	User          string `json:"user"`
	Password      string `json:"password"`
}

// Live is what a running node is told to change.
type Live struct {
	MaxConcurrent      int           `json:"maxConcurrent"`
	StatementTimeout   time.Duration `json:"statementTimeout"`   // 0: none
	SessionIdleTimeout time.Duration `json:"sessionIdleTimeout"` // 0: never
}

// LakeTask is what `qod node --init-lake` and `--load-tpch` read from descriptor 3.
type LakeTask struct {
	Lake         Lake    `json:"lake"`
	ExtensionDir string  `json:"extensionDir"`
	TempDir      string  `json:"tempDir"`
	MemoryBytes  int64   `json:"memoryBytes"`
	Threads      int     `json:"threads"`
	ScaleFactor  float64 `json:"scaleFactor,omitempty"` // load-tpch
	Schema       string  `json:"schema,omitempty"`      // load-tpch
}

// Status is what a node says of itself.
type Status struct {
	Version     int       `json:"version"`
	ID          string    `json:"id"`
	PoolID      string    `json:"poolId"`
	Incarnation string    `json:"incarnation"`
	SpecHash    string    `json:"specHash"`
	Role        string    `json:"role"`
	PID         int       `json:"pid"`
	Started     time.Time `json:"started"`
	Ready       bool      `json:"ready"` // the lake is attached and the last self-check passed
	Draining    bool      `json:"draining"`
	Fatal       string    `json:"fatal,omitempty"`   // the engine is unusable: replace the node
	Message     string    `json:"message,omitempty"` // why it is not ready

	Sessions     int   `json:"sessions"`
	Transactions int   `json:"transactions"`
	InFlight     int   `json:"inFlight"`
	Served       int64 `json:"served"` // statements since start
	MemoryBytes  int64 `json:"memoryBytes"`
	// Latencies of the last 1,024 statements.
	P50 time.Duration `json:"p50"`
	P95 time.Duration `json:"p95"`
	P99 time.Duration `json:"p99"`
}

// Session is a session that has state on a node.
type Session struct {
	ID       string    `json:"id"`
	User     string    `json:"user"`
	State    State     `json:"state"`
	LastUsed time.Time `json:"lastUsed"`
}

// Sessions lists the sessions with state on a node.
type Sessions struct {
	Incarnation string    `json:"incarnation"`
	Sessions    []Session `json:"sessions"`
}

// Cancel names a statement to interrupt.
type Cancel struct {
	Statement string `json:"statement"`
	Cause     string `json:"cause"` // for the client
}
