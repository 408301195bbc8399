package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	fastWithin      = 30 * time.Second
	immediateWithin = 15 * time.Second
)

// Stop ends the server: open transactions are rolled back. When ctx ends first, or after 30 seconds, it
// is told to end at once, and recovers at its next start. A server that is gone is no error.
func (s *Server) Stop(ctx context.Context) error {
	lock, err := s.cluster.lock(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the state directory is gone, and Remove refuses while the server runs
	}
	if err != nil {
		return fmt.Errorf("stop private Postgres: %w", err)
	}
	defer lock.Close()
	_, held, ok := s.cluster.running(s.id)
	if !ok {
		return nil
	}
	defer held.Release()
	fast, cancel := context.WithTimeout(ctx, fastWithin)
	defer cancel()
	if end(fast, held, syscall.SIGINT) {
		s.cluster.log.Info("private Postgres stopped", "pid", held.pid)
		return nil
	}
	immediate, cancelImmediate := context.WithTimeout(context.WithoutCancel(ctx), immediateWithin)
	defer cancelImmediate()
	if end(immediate, held, syscall.SIGQUIT) {
		s.cluster.log.Warn("private Postgres stopped at once, it recovers at its next start", "pid", held.pid)
		return nil
	}
	return fmt.Errorf("stop private Postgres: pid %d does not end", held.pid)
}

func end(ctx context.Context, held *process, signal syscall.Signal) bool {
	if err := held.Signal(signal); err != nil {
		return held.ended()
	}
	for !held.ended() {
		if pause(ctx) != nil {
			return false
		}
	}
	return true
}

// Remove deletes all that this package made: the cluster with its data, the fetched programs, the
// password and the log. It refuses while the server runs. What is gone already is no error.
func Remove(cfg Config) error {
	c, err := cfg.resolve()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.StateDir); errors.Is(err, fs.ErrNotExist) {
		return c.removeSockets()
	}
	lock, err := c.lock(context.Background())
	if err != nil {
		return fmt.Errorf("remove private Postgres: %w", err)
	}
	defer lock.Close()
	if _, err := c.identity(); err != nil && !errors.Is(err, ErrAbsent) {
		return fmt.Errorf("remove private Postgres: %w", err)
	}
	if pids := c.users(); len(pids) > 0 {
		return fmt.Errorf("remove private Postgres: processes %v still use %s: stop it first", pids, c.data)
	}
	// The data is renamed first and the id goes last, so that a removal that was cut short can be repeated.
	doomed := c.data + ".tmp"
	if err := os.RemoveAll(doomed); err != nil {
		return fmt.Errorf("remove private Postgres: %w", err)
	}
	if err := os.Rename(c.data, doomed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove private Postgres: %w", err)
	}
	for _, path := range []string{c.root, c.password, c.logFile, c.logFile + ".1", c.id} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove private Postgres: %w", err)
		}
	}
	if err := c.removeSockets(); err != nil {
		return err
	}
	if err := os.Remove(c.lockFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove private Postgres: %w", err)
	}
	return nil
}

// removeSockets leaves the run directory where others still have sockets in it.
func (c *cluster) removeSockets() error {
	if err := os.RemoveAll(c.socket); err != nil {
		return fmt.Errorf("remove sockets of private Postgres: %w", err)
	}
	err := os.Remove(c.RunDir)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return fmt.Errorf("remove run directory: %w", err)
}
