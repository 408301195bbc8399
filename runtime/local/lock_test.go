package local

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = TryLock(dir)
	var held *HeldError
	if !errors.Is(err, ErrHeld) || !errors.As(err, &held) || held.PID != os.Getpid() ||
		time.Since(held.Since) > time.Minute {
		t.Errorf("a second lock: %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), "acts on this state directory") {
		t.Errorf("error %q", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := WaitLock(ctx, dir); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for a lock that is held: %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		l, err := WaitLock(t.Context(), dir)
		waited <- err
		if err == nil {
			l.Close()
		}
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// The starter takes the lock, starts a node and is killed: the node must not keep the lock.
func TestLockIsFreeOnceItsHolderDies(t *testing.T) {
	p := newPlace(t)
	p.startElsewhere(t, uuid.NewString(), p.spec(""))
	l, err := TryLock(p.config.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestLockOfAPurgedDirectory(t *testing.T) {
	dir := t.TempDir() + "/state"
	old, err := TryLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	l, err := TryLock(dir)
	if err != nil {
		t.Fatalf("the new directory is locked by a file that is gone: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
