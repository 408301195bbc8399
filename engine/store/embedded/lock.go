package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const pollEvery = 20 * time.Millisecond

// lock makes the caller the only one who starts, stops or removes the cluster. The lock is let go when
// the returned file and all duplicates of it are closed: initdb holds one, so that a process that takes
// the lock after its owner was killed does not meet a half-made cluster that is still being written.
func (c *cluster) lock(ctx context.Context) (*os.File, error) {
	for {
		f, err := c.tryLock()
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", c.lockFile, err)
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("wait for another process that starts or stops Postgres (%s): %w", c.lockFile, err)
		}
	}
}

func (c *cluster) tryLock() (*os.File, error) {
	f, err := os.OpenFile(c.lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	// Remove takes the file away while it holds the lock: then this is a lock on nothing.
	locked, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(c.lockFile); err == nil && os.SameFile(locked, named) {
			return f, nil
		}
	}
	f.Close()
	return nil, syscall.EWOULDBLOCK
}

func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
