package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// binary remembers which executable nodes run.
type binary struct {
	mu   sync.Mutex
	path string
}

// spareAge is how old in time an unused copy is before it is removed: another process may have made it
// a moment ago for a node that it is about to start.
const spareAge = time.Hour

// executable returns the path of the executable for nodes. As root that is a copy named by its content:
// the users of nodes may not reach the original, and an upgrade replaces it under them.
func (b *Backend) executable() (string, error) {
	if !b.root {
		return b.cfg.Binary, nil
	}
	b.binary.mu.Lock()
	defer b.binary.mu.Unlock()
	if b.binary.path != "" {
		if _, err := os.Stat(b.binary.path); err == nil { // the state directory may have been purged
			return b.binary.path, nil
		}
	}
	if err := b.makeStateDir("bin"); err != nil {
		return "", err
	}
	path, err := copyBinary(b.cfg.Binary, filepath.Join(b.cfg.StateDir, "bin"))
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", b.cfg.Binary, err)
	}
	b.binary.path = path
	return path, b.removeOldBinaries(path)
}

func copyBinary(from, dir string) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, in)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "qod-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	if info, err := os.Stat(path); err == nil && info.Size() == size {
		return path, nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(dir, ".copy-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close()); err != nil {
		return "", err
	}
	return path, os.Rename(out.Name(), path)
}

func (b *Backend) removeOldBinaries(current string) error {
	records, err := b.records()
	if err != nil {
		return err
	}
	used := map[string]bool{current: true}
	for _, r := range records {
		used[r.Binary] = true
	}
	entries, err := os.ReadDir(filepath.Dir(current))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(filepath.Dir(current), e.Name())
		info, err := e.Info()
		if err != nil || used[path] || time.Since(info.ModTime()) < spareAge {
			continue
		}
		if !strings.HasPrefix(e.Name(), "qod-") && !strings.HasPrefix(e.Name(), ".copy-") {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
