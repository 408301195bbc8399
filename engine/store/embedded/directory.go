package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// prepare makes the directories of the cluster and checks that they are safe to use.
func (c *cluster) prepare() error {
	mode := os.FileMode(0o700)
	if c.account != nil {
		mode = 0o711
	}
	for _, dir := range []string{c.StateDir, c.RunDir, c.root} {
		if err := own(dir, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(c.socket, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make socket directory: %w", err)
	}
	if err := c.give(c.socket); err != nil {
		return err
	}
	if err := os.Chmod(c.socket, mode); err != nil {
		return fmt.Errorf("make socket directory: %w", err)
	}
	return c.enterable(c.root, c.socket)
}

// own makes the directory, or checks that the one there belongs to the current user and that nobody
// else may write to it. As root it also lets other users pass through.
func own(dir string, mode os.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir() || !ok:
		return fmt.Errorf("check directory %s: it is no directory", dir)
	case int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("check directory %s: it belongs to uid %d, not to you (%d)", dir, stat.Uid, os.Geteuid())
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("check directory %s: others may write to it (mode %#o)", dir, info.Mode().Perm())
	}
	if missing := mode &^ info.Mode().Perm(); missing != 0 {
		if err := os.Chmod(dir, info.Mode().Perm()|mode); err != nil {
			return fmt.Errorf("open directory: %w", err)
		}
	}
	return nil
}

// enterable says why the server's account cannot reach a path, if it cannot.
func (c *cluster) enterable(paths ...string) error {
	if c.account == nil {
		return nil
	}
	for _, path := range paths {
		for dir := path; ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return fmt.Errorf("check %s: %w", path, err)
			}
			if !c.account.enters(info) {
				return fmt.Errorf("user %s, who runs Postgres for root, cannot reach %s: %s has mode %#o: "+
					"choose another directory or open that one (chmod o+x)", c.account.name, path, dir, info.Mode().Perm())
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

func (a *account) enters(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	perm := info.Mode().Perm()
	switch {
	case int(stat.Uid) == a.uid:
		return perm&0o100 != 0
	case int(stat.Gid) == a.gid:
		return perm&0o010 != 0
	}
	return perm&0o001 != 0
}

// keep writes a file that appears whole or not at all, belongs to the account, and survives a crash of
// the machine. It follows no link, since the directory may belong to another user.
func keep(path, content string, owner *account) error {
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(content); err != nil {
		return err
	}
	if owner != nil {
		if err := f.Chown(owner.uid, owner.gid); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", tmp, err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// kept reads a one-line file, or makes it with fresh content.
func kept(path string, fresh func() string) (string, error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(raw)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	content := fresh()
	return content, keep(path, content+"\n", nil)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
