package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	readyWithin = 60 * time.Second
	clearWithin = 20 * time.Second
	maxLogBytes = 10 << 20
)

// Server is a running private Postgres. It goes on when the process that started it ends.
type Server struct {
	Host     string // the directory of its socket
	Port     int
	User     string // the superuser
	Database string // for qod's state: made with the cluster, closed to all but the superuser

	cluster *cluster
	id      string
	pid     int
}

// PID returns the process id of the postmaster.
func (s *Server) PID() int { return s.pid }

// Password returns the superuser's password.
func (s *Server) Password() (string, error) {
	raw, err := os.ReadFile(s.cluster.password)
	if err != nil {
		return "", fmt.Errorf("read superuser's password: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// URL returns the URL of a database as the superuser, with the password in it.
func (s *Server) URL(database string) (string, error) {
	password, err := s.Password()
	if err != nil {
		return "", err
	}
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(s.User, password), Path: "/" + database,
		RawQuery: url.Values{"host": {s.Host}, "port": {strconv.Itoa(s.Port)}}.Encode(),
	}
	return u.String(), nil
}

// Exists says whether a cluster has been made, running or not. It changes nothing.
func Exists(cfg Config) bool {
	c, err := cfg.resolve()
	if err != nil {
		return false
	}
	_, err = c.identity()
	return err == nil
}

// Find returns the running server, or false where there is none that takes connections. It starts and
// changes nothing.
func Find(cfg Config) (*Server, bool, error) {
	c, err := cfg.resolve()
	if err != nil {
		return nil, false, err
	}
	id, err := c.identity()
	if errors.Is(err, ErrAbsent) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find private Postgres: %w", err)
	}
	pm, held, ok := c.running(id)
	if !ok {
		return nil, false, nil
	}
	held.Release()
	if pm.status != "ready" {
		return nil, false, nil
	}
	return c.server(id, pm), true, nil
}

func (c *cluster) server(id string, pm postmaster) *Server {
	return &Server{Host: pm.socket, Port: port, User: superuser, Database: database, cluster: c, id: id, pid: pm.pid}
}

// running returns the cluster's postmaster while there is one.
func (c *cluster) running(id string) (postmaster, *process, bool) {
	pm, ok := readPostmaster(c.data)
	if !ok {
		return postmaster{}, nil, false
	}
	held, ok := c.hold(pm.pid, id)
	return pm, held, ok
}

// Start returns the running server: one that an earlier process started, or a new one, for which it
// makes the cluster where there is none yet. It returns when connections are taken, within a minute.
// Several processes may call it at once.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	c, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	if cfg.Existing && !Exists(cfg) {
		return nil, fmt.Errorf("start private Postgres in %s: %w", cfg.StateDir, ErrAbsent)
	}
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("start private Postgres: %w", err)
	}
	if dir, err := filepath.EvalSymlinks(cfg.StateDir); err == nil && dir != c.StateDir {
		return Start(ctx, cfg) // the directory was made just now, below a link
	}
	lock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	s, err := c.start(ctx, lock)
	if err != nil {
		return nil, fmt.Errorf("start private Postgres: %w", err)
	}
	return s, nil
}

func (c *cluster) start(ctx context.Context, lock *os.File) (*Server, error) {
	id, err := c.identity()
	absent := errors.Is(err, ErrAbsent)
	if err != nil && (!absent || c.Existing) {
		return nil, err
	}
	if !absent {
		if pm, held, ok := c.running(id); ok {
			defer held.Release()
			if pm.status == "stopping" {
				return c.begin(ctx, id, lock)
			}
			c.log.Debug("private Postgres adopted", "pid", pm.pid)
			return c.ready(ctx, id, held)
		}
	}
	return c.begin(ctx, id, lock)
}

// begin starts a server, for a new cluster when there is no id yet.
func (c *cluster) begin(ctx context.Context, id string, lock *os.File) (*Server, error) {
	bin, err := c.programs(ctx)
	if err != nil {
		return nil, err
	}
	if id == "" {
		if id, err = c.initialise(ctx, bin, lock); err != nil {
			return nil, err
		}
	}
	if err := c.clear(ctx); err != nil {
		return nil, err
	}
	held, err := c.launch(bin, id)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	c.log.Info("private Postgres started", "pid", held.pid, "data", c.data)
	return c.ready(ctx, id, held)
}

// clear removes what a dead postmaster left, where the server would take it for the work of a live one:
// its pid may since have gone to another process. It first waits until no process of the server is left,
// because it is the pid file by which a new one would notice them.
func (c *cluster) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearWithin)
	defer cancel()
	for {
		pids := c.users()
		if len(pids) == 0 {
			break
		}
		for _, pid := range pids {
			reap(pid)
		}
		if pause(ctx) != nil {
			return fmt.Errorf("processes %v still use %s", pids, c.data)
		}
	}
	socket := filepath.Join(c.socket, socketName)
	if conn, err := net.Dial("unix", socket); err == nil {
		conn.Close()
		return fmt.Errorf("another server answers on %s", socket)
	}
	for _, stale := range []string{filepath.Join(c.data, "postmaster.pid"), socket + ".lock"} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove stale lock: %w", err)
		}
	}
	return nil
}

// launch starts the server as a session of its own that has nothing of ours but its log.
func (c *cluster) launch(bin, id string) (*process, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(bin, "postgres"), append([]string{"-D", c.data}, c.settings(id)...)...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.data, c.environment(), c.attributes()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %s: %w", cmd.Path, err)
	}
	return &process{Process: cmd.Process, pid: cmd.Process.Pid}, nil
}

func (c *cluster) openLog() (*os.File, error) {
	if info, err := os.Stat(c.logFile); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(c.logFile, c.logFile+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(c.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// ready waits until the server takes connections.
func (c *cluster) ready(ctx context.Context, id string, held *process) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		if held.ended() {
			return nil, fmt.Errorf("it ended at once: %s (log: %s)", c.logTail(), c.logFile)
		}
		pm, ok := readPostmaster(c.data)
		if ok && pm.pid == held.pid && pm.status == "ready" {
			return c.server(id, pm), nil
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("pid %d takes no connections yet and goes on starting (log: %s): %w", held.pid, c.logFile, err)
		}
	}
}

func (c *cluster) logTail() string {
	raw, err := os.ReadFile(c.logFile)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(raw[max(0, len(raw)-4096):]), 3)
}
