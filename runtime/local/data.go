package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/qod-io/qod/runtime/backend"
)

// A database's directory holds a marker with the database's id and the directory of its files. When
// qod runs as root the latter belongs to the database's own user, and that is the only record of which
// user it is; the former stays root's, so that no node can move the marker.
const (
	markerName = ".qod-data"
	filesName  = "files"
	uidCount   = 4096
)

// DataPath returns the absolute directory of the database's files, without a slash at its end.
func (b *Backend) DataPath(databaseID string) string {
	return filepath.Join(b.dataDir(databaseID), filesName)
}

// DataExists reports whether the database has a directory that qod made for it.
func (b *Backend) DataExists(databaseID string) (bool, error) {
	if err := checkID(databaseID); err != nil {
		return false, fmt.Errorf("look for data: %w", err)
	}
	return b.marked(b.dataDir(databaseID), databaseID)
}

// RemoveData removes the database's directory with all in it. One that qod did not make for this
// database is backend.ErrNotOurs; one that is gone is no error.
func (b *Backend) RemoveData(ctx context.Context, databaseID string) error {
	if err := checkID(databaseID); err != nil {
		return fmt.Errorf("remove data: %w", err)
	}
	unlock, err := b.lockData(ctx)
	if err != nil {
		return fmt.Errorf("remove data of %s: %w", databaseID, err)
	}
	defer unlock()
	ours, err := b.marked(b.dataDir(databaseID), databaseID)
	if err != nil {
		return fmt.Errorf("remove data of %s: %w", databaseID, err)
	}
	gone := b.spare(databaseID, "gone")
	if ours { // under another name first, so that half a database is never taken for a whole one
		if err := os.Rename(b.dataDir(databaseID), gone); err != nil {
			return fmt.Errorf("remove data of %s: %w", databaseID, err)
		}
	}
	for _, remains := range []string{gone, b.spare(databaseID, "new")} { // the latter of a making cut short
		if err := os.RemoveAll(remains); err != nil {
			return fmt.Errorf("remove data of %s: %w", databaseID, err)
		}
	}
	return nil
}

func (b *Backend) dataDir(databaseID string) string { return filepath.Join(b.cfg.DataRoot, databaseID) }

// spare names a directory that is being made or removed.
func (b *Backend) spare(databaseID, what string) string {
	return filepath.Join(b.cfg.DataRoot, "."+databaseID+"."+what)
}

// marked reports whether the directory is the database's. False without an error: there is none.
func (b *Backend) marked(dir, databaseID string) (bool, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, markerName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if strings.TrimSpace(string(raw)) != databaseID {
		return false, fmt.Errorf("%s has no marker of this database: %w", dir, backend.ErrNotOurs)
	}
	return true, nil
}

// makeData makes the database's directory unless it exists, and returns whose its files are.
func (b *Backend) makeData(ctx context.Context, databaseID string) (owner, error) {
	if err := checkID(databaseID); err != nil {
		return self, err
	}
	if err := makeDir(b.cfg.DataRoot, 0o711); err != nil {
		return self, err
	}
	if b.root {
		if err := passable(b.cfg.DataRoot); err != nil {
			return self, err
		}
	}
	unlock, err := b.lockData(ctx)
	if err != nil {
		return self, err
	}
	defer unlock()
	exists, err := b.marked(b.dataDir(databaseID), databaseID)
	if err != nil {
		return self, err
	}
	if exists {
		return b.dataOwner(databaseID)
	}
	return b.makeNewData(databaseID)
}

func (b *Backend) makeNewData(databaseID string) (owner, error) {
	o := self
	if b.root {
		var err error
		if o, err = b.freeOwner(); err != nil {
			return self, err
		}
	}
	fresh := b.spare(databaseID, "new")
	if err := os.RemoveAll(fresh); err != nil {
		return self, err
	}
	if err := os.Mkdir(fresh, 0o711); err != nil {
		return self, err
	}
	if err := os.Chmod(fresh, 0o711); err != nil {
		return self, err
	}
	if err := writeFile(filepath.Join(fresh, markerName), []byte(databaseID+"\n"), 0o600); err != nil {
		return self, err
	}
	if err := o.mkdir(filepath.Join(fresh, filesName)); err != nil {
		return self, err
	}
	return o, os.Rename(fresh, b.dataDir(databaseID))
}

// dataOwner returns whose the database's files are.
func (b *Backend) dataOwner(databaseID string) (owner, error) {
	if err := checkID(databaseID); err != nil {
		return self, fmt.Errorf("database: %w", err)
	}
	ours, err := b.marked(b.dataDir(databaseID), databaseID)
	if err != nil {
		return self, err
	}
	if !ours {
		return self, fmt.Errorf("database %s has no data directory under %s", databaseID, b.cfg.DataRoot)
	}
	if !b.root {
		return self, nil
	}
	o, err := ownerOf(b.DataPath(databaseID))
	if err != nil {
		return self, err
	}
	if o == 0 {
		return self, fmt.Errorf("%s belongs to root: its nodes would run as root", b.DataPath(databaseID))
	}
	return o, nil
}

// freeOwner returns the lowest user id of the range that is nobody's: no other database's, no user of
// the host, and no running process's.
func (b *Backend) freeOwner() (owner, error) {
	taken := map[owner]bool{65534: true}    // nobody
	dirs, err := os.ReadDir(b.cfg.DataRoot) // also those being made or removed
	if err != nil {
		return self, err
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return self, err
	}
	paths := make([]string, 0, len(dirs)+len(processes))
	for _, d := range dirs {
		paths = append(paths, filepath.Join(b.cfg.DataRoot, d.Name(), filesName))
	}
	for _, p := range processes {
		paths = append(paths, filepath.Join("/proc", p.Name()))
	}
	for _, path := range paths {
		if o, err := ownerOf(path); err == nil { // not every name has files, and processes end
			taken[o] = true
		}
	}
	for o := owner(b.cfg.UIDBase); o < owner(b.cfg.UIDBase+uidCount); o++ {
		if taken[o] {
			continue
		}
		if _, err := user.LookupId(strconv.Itoa(int(o))); err == nil {
			continue
		}
		return o, nil
	}
	return self, fmt.Errorf("every user id from %d to %d is taken", b.cfg.UIDBase, b.cfg.UIDBase+uidCount-1)
}

func ownerOf(path string) (owner, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return self, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return self, fmt.Errorf("read owner of %s: not known here", path)
	}
	return owner(stat.Uid), nil
}

// lockData serializes, over all processes, what makes and removes data directories.
func (b *Backend) lockData(ctx context.Context) (unlock func(), err error) {
	if err := makeDir(b.cfg.DataRoot, 0o711); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(b.cfg.DataRoot, ".qod.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return lockFile(ctx, f)
}

// lockFile waits for a lock that is only ever held for the time of a few system calls. To unlock closes
// the file.
func lockFile(ctx context.Context, f *os.File) (unlock func(), err error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EINTR) || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err(), f.Close())
		}
	}
}
