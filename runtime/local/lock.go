package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is matched by the error of TryLock while another process has the right to act.
var ErrHeld = errors.New("another process acts on this state directory")

// HeldError says who has the right to act. The zero PID stands for a holder that is just taking it.
type HeldError struct {
	PID     int       `json:"pid"`
	Command string    `json:"command"`
	Since   time.Time `json:"since"`
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return ErrHeld.Error()
	}
	return fmt.Sprintf("process %d (%s) acts on this state directory since %s",
		e.PID, e.Command, e.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Lock is the right to act on the nodes of a state directory. The kernel takes it back when the
// process ends, however that happens; nodes do not inherit it.
type Lock struct{ file *os.File }

// TryLock takes the right to act, or fails with a HeldError. It makes the state directory if needed.
func TryLock(stateDir string) (*Lock, error) {
	if err := makeDir(stateDir, 0o711); err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	path := filepath.Join(stateDir, "act.lock")
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock state directory: %w", err)
		}
		err = flock(f)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = holder(f)
		}
		if err == nil && !sameFile(f, path) { // the directory was purged meanwhile
			f.Close()
			continue
		}
		if err == nil {
			err = sign(f)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &Lock{file: f}, nil
	}
}

// WaitLock takes the right to act as soon as its holder gives it up or dies, within a quarter of a second.
func WaitLock(ctx context.Context, stateDir string) (*Lock, error) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := TryLock(stateDir)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close gives the right up.
func (l *Lock) Close() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func sameFile(f *os.File, path string) bool {
	have, err := f.Stat()
	if err != nil {
		return false
	}
	want, err := os.Stat(path)
	return err == nil && os.SameFile(have, want)
}

func holder(f *os.File) error {
	held := &HeldError{}
	if err := json.NewDecoder(f).Decode(held); err != nil {
		return &HeldError{}
	}
	return held
}

func sign(f *os.File) error {
	command := filepath.Base(os.Args[0])
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		command += " " + os.Args[1]
	}
	raw, err := json.Marshal(HeldError{PID: os.Getpid(), Command: command, Since: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	if _, err := f.WriteAt(append(raw, '\n'), 0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	return nil
}
