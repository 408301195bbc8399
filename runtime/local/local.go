// Package local runs nodes as processes of this Linux host, each in a session and a directory of its
// own, so that they outlive the process that started them. What it knows it reads from those
// directories and from /proc, never from memory. It also owns the host's side of databases: their data
// directories, the user ids that own these, and the tasks that create and fill lakes.
//
// A node is ours while its process has the start time, the boot and the arguments that its record
// names. Anything else under its pid is foreign: it is neither adopted nor signalled.
//
// Which nodes should run is decided by package reconcile, and what a node does by package node.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/qod-io/qod/runtime/backend"
)

// Config says where a Backend keeps things. StateDir, RunDir, Binary and DataRoot are required, and
// absolute.
type Config struct {
	StateDir string // records, logs and temporary files of nodes
	RunDir   string // sockets; short, since a socket's path has at most 107 bytes
	Binary   string // the qod executable
	DataRoot string // holds one directory per database
	// UIDBase is the first of the 4,096 user ids that databases get when qod runs as root; default
	// 61000. Two qod on one host need bases that far apart.
	UIDBase int
	// DrainLimit is how long a node that gets SIGTERM lets work end; default 5 s.
	DrainLimit time.Duration
	Log        *slog.Logger // default: none
}

// Backend runs nodes on this host. It implements backend.Backend, and holds nothing that needs closing.
type Backend struct {
	cfg  Config
	root bool

	mu       sync.Mutex
	changed  chan struct{}     // closed and replaced when a node was started
	starting map[string]bool   // ids of nodes that this Backend is starting
	children map[string]int    // pids that are ours to reap, by node id
	reasons  map[string]string // why children ended, by node id

	reaping sync.Mutex // serializes reap
	ids     keyedMutex // serializes Start and Stop of one node
	binary  binary
}

// New returns a Backend. It creates nothing: directories are made when something is put in them.
func New(cfg Config) (*Backend, error) {
	for name, path := range map[string]string{
		"state directory": cfg.StateDir, "run directory": cfg.RunDir, "data root": cfg.DataRoot, "binary": cfg.Binary,
	} {
		if !filepath.IsAbs(path) {
			return nil, fmt.Errorf("open local backend: %s %q is not an absolute path", name, path)
		}
	}
	if cfg.UIDBase == 0 {
		cfg.UIDBase = 61000
	}
	if cfg.DrainLimit == 0 {
		cfg.DrainLimit = 5 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{
		cfg: cfg, root: os.Geteuid() == 0,
		changed: make(chan struct{}), starting: map[string]bool{}, children: map[string]int{}, reasons: map[string]string{},
	}, nil
}

// List returns every node that has a directory or a process here. It writes nothing.
func (b *Backend) List(ctx context.Context) ([]backend.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	records, err := b.records()
	if err != nil {
		return nil, err
	}
	found, err := b.scan()
	if err != nil {
		return nil, err
	}
	var nodes []backend.Node
	for _, r := range records {
		r, ok, err := b.settled(r)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		if ok {
			n, err := b.node(r, found)
			if err != nil {
				return nil, fmt.Errorf("list nodes: %w", err)
			}
			nodes = append(nodes, n)
		}
		delete(found, r.ID)
	}
	for id, p := range found { // its record was removed while it was being started
		nodes = append(nodes, backend.Node{ID: id, PID: p.PID, Endpoint: b.endpoint(id), Reason: "it has no record"})
	}
	slices.SortFunc(nodes, func(x, y backend.Node) int { return strings.Compare(x.ID, y.ID) })
	return nodes, nil
}

// settled returns the record again if it was an intent when it was read, or false while this Backend is
// starting the node.
func (b *Backend) settled(r record) (record, bool, error) {
	if r.Process.PID != 0 {
		return r, true, nil
	}
	b.mu.Lock()
	starting := b.starting[r.ID]
	b.mu.Unlock()
	if starting {
		return r, false, nil
	}
	again, err := b.readRecord(r.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return r, true, nil
	}
	return again, true, err
}

// node says what a record and the processes that were found tell of a node.
func (b *Backend) node(r record, found map[string]process) (backend.Node, error) {
	n := r.node()
	p, ok, err := b.running(r, found)
	if err != nil {
		return n, err
	}
	if ok {
		n.PID = p.PID
		return n, nil
	}
	n.Exited = true
	n.Reason = b.exitReason(r)
	return n, nil
}

// running returns the node's process: the recorded one, or, where a start was cut short before the
// process was recorded, the one that says it is that node.
func (b *Backend) running(r record, found map[string]process) (process, bool, error) {
	if r.Process.PID == 0 {
		p, ok := found[r.ID]
		return p, ok, nil
	}
	ok, err := r.Process.is(r.ID)
	return r.Process, ok, err
}

func (b *Backend) exitReason(r record) string {
	if r.Process.PID == 0 {
		return "its start was cut short"
	}
	b.reap(r.ID)
	b.mu.Lock()
	reason, ok := b.reasons[r.ID]
	b.mu.Unlock()
	if !ok {
		reason = "its process has ended"
	}
	if last := lastLine(b.logPath(r.ID)); last != "" {
		reason += ": " + last
	}
	return reason
}

// Start runs a node. The record is written before the process exists, and completed after: whoever
// finds an incomplete one looks for the process itself.
func (b *Backend) Start(ctx context.Context, id string, spec backend.Spec) (backend.Node, error) {
	if err := checkID(id); err != nil {
		return backend.Node{}, fmt.Errorf("start node: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return backend.Node{}, err
	}
	defer b.ids.lock(id)()
	b.mu.Lock()
	b.starting[id] = true
	b.mu.Unlock()
	n, err := b.start(id, spec)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.starting, id)
	if err != nil {
		return backend.Node{}, fmt.Errorf("start node %s: %w", id, err)
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return n, nil
}

func (b *Backend) start(id string, spec backend.Spec) (backend.Node, error) {
	r, err := b.readRecord(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return backend.Node{}, err
	}
	if err == nil {
		found, err := b.scan()
		if err != nil {
			return backend.Node{}, err
		}
		p, ok, err := b.running(r, found)
		if err != nil {
			return backend.Node{}, err
		}
		if ok {
			r.Process = p
			return r.node(), b.writeRecord(r)
		}
	}
	r = record{
		ID: id, PoolID: spec.PoolID, Role: spec.Role, SpecHash: spec.Hash(), Parts: spec.Parts(), Endpoint: b.endpoint(id),
		Started: time.Now().UTC().Truncate(time.Microsecond),
	}
	if err := b.launch(&r, spec); err != nil {
		return backend.Node{}, err
	}
	b.cfg.Log.Info("node started", "node", id, "pool", spec.PoolID, "pid", r.Process.PID)
	return r.node(), nil
}

// Stop ends a node and removes its directory and its socket.
func (b *Backend) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := checkID(id); err != nil {
		return fmt.Errorf("stop node: %w", err)
	}
	defer b.ids.lock(id)()
	if err := b.stop(ctx, id, grace); err != nil {
		return fmt.Errorf("stop node %s: %w", id, err)
	}
	return nil
}

func (b *Backend) stop(ctx context.Context, id string, grace time.Duration) error {
	r, err := b.readRecord(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p := r.Process
	if p.PID == 0 {
		found, err := b.scan()
		if err != nil {
			return err
		}
		p = found[id]
	}
	if p.PID != 0 {
		if err := p.end(ctx, id, grace); err != nil {
			return err
		}
	}
	b.reap(id)
	b.mu.Lock()
	delete(b.reasons, id)
	b.mu.Unlock()
	if err := os.Remove(b.socket(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(b.nodeDir(id))
}

func (b *Backend) nodesDir() string          { return filepath.Join(b.cfg.StateDir, "nodes") }
func (b *Backend) nodeDir(id string) string  { return filepath.Join(b.nodesDir(), id) }
func (b *Backend) logPath(id string) string  { return filepath.Join(b.nodeDir(id), "node.log") }
func (b *Backend) socketDir() string         { return filepath.Join(b.cfg.RunDir, "nodes") }
func (b *Backend) endpoint(id string) string { return "unix://" + b.socket(id) }
func (b *Backend) socket(id string) string {
	return filepath.Join(b.socketDir(), strings.ReplaceAll(id, "-", "")[:8]+".sock")
}

// keyedMutex is a mutex per name. The zero value is ready.
type keyedMutex struct {
	mu    sync.Mutex
	locks map[string]*keyedLock
}

type keyedLock struct {
	mu    sync.Mutex
	users int
}

// lock takes the mutex of the name and returns what releases it.
func (k *keyedMutex) lock(name string) (unlock func()) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*keyedLock{}
	}
	l := k.locks[name]
	if l == nil {
		l = &keyedLock{}
		k.locks[name] = l
	}
	l.users++
	k.mu.Unlock()
	l.mu.Lock()
	return func() {
		l.mu.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, name)
		}
	}
}
