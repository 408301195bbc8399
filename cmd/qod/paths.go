package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pointer is the file in a working directory that names its state directory.
const pointer = ".qod"

// paths are the places on this host that belong to one working directory.
type paths struct {
	Dir   string // the working directory
	Shown string // the same as people write it: from where qod runs, where that is shorter
	*Settings
}

// newPaths fills in the settings that default to places.
func newPaths(dir string, s *Settings) (*paths, error) {
	shown := filepath.Clean(dir)
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	p := &paths{Dir: dir, Shown: shown, Settings: s}
	if p.StateDir == "" {
		if p.StateDir, err = defaultStateDir(dir); err != nil {
			return nil, err
		}
	}
	if p.StateDir, err = filepath.Abs(p.StateDir); err != nil {
		return nil, fmt.Errorf("find state directory: %w", err)
	}
	if p.RunDir == "" {
		p.RunDir = defaultRunDir(p.StateDir)
	}
	fill(&p.ExtensionDir, p.StateDir, "extensions")
	fill(&p.DataRoot, p.StateDir, "data")
	fill(&p.MasterKeyFile, p.StateDir, "master.key")
	return p, nil
}

// file is where a file lies that a command line names: relative to the working directory of the command.
func (p *paths) file(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Dir, name)
}

// shown is the same file as people write it.
func (p *paths) shown(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Shown, name)
}

func fill(field *string, dir, name string) {
	if *field == "" {
		*field = filepath.Join(dir, name)
	}
}

func defaultStateDir(dir string) (string, error) {
	if named, err := os.ReadFile(filepath.Join(dir, pointer)); err == nil {
		return strings.TrimSpace(string(named)), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", pointer, err)
	}
	if os.Getuid() == 0 {
		return filepath.Join("/var/lib/qod", digest(dir)), nil
	}
	base := os.Getenv("XDG_STATE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find state directory: %w; set QOD_STATE_DIR", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "qod", digest(dir)), nil
}

// defaultRunDir is short: a socket's path has at most 107 bytes.
func defaultRunDir(stateDir string) string {
	switch base := os.Getenv("XDG_RUNTIME_DIR"); {
	case os.Getuid() == 0:
		return filepath.Join("/run/qod", digest(stateDir))
	case base != "" && len(base) < 40:
		return filepath.Join(base, "qod", digest(stateDir))
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("qod-%d", os.Getuid()), digest(stateDir))
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

// point writes the pointer file unless the state directory was named by a setting.
func (p *paths) point() error {
	if p.sources["state_dir"] != "default" {
		return nil
	}
	name := filepath.Join(p.Dir, pointer)
	if have, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(have)) == p.StateDir {
		return nil
	}
	if err := os.WriteFile(name, []byte(p.StateDir+"\n"), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", pointer, err)
	}
	return nil
}

// drainLimit is how long statements may go on. None at all is the shortest, since zero stands for the
// default of whoever is told.
func (p *paths) drainLimit() time.Duration {
	return max(time.Duration(p.DrainSec)*time.Second, time.Millisecond)
}

// exists reports whether the state directory has been made.
func (p *paths) exists() bool {
	_, err := os.Stat(p.MasterKeyFile)
	return err == nil
}

// make makes the state directory. Others may pass through it, since nodes and Postgres run as users of
// their own; what is inside is closed where it has to be.
func (p *paths) make() error {
	for _, dir := range []string{p.StateDir, filepath.Dir(p.RunDir)} {
		if err := makeWay(dir); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
	}
	if err := ownedByUs(p.StateDir); err != nil {
		return err
	}
	if err := os.Chmod(p.StateDir, 0o711); err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if err := p.mark(); err != nil {
		return err
	}
	return p.point()
}

// makeWay makes a directory and those on the way to it. All that root makes can be passed through, whatever its umask is.
func makeWay(dir string) error {
	_, err := os.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeWay(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chmod(dir, 0o711)
}

// marker is in every state directory that qod made in an empty place: only such a one is ever purged.
const marker = "made-by-qod"

func (p *paths) mark() error {
	entries, err := os.ReadDir(p.StateDir)
	if err != nil {
		return fmt.Errorf("look into state directory: %w", err)
	}
	if len(entries) > 0 { // marked before, or somebody else's directory that holds more than qod's state
		return nil
	}
	if err := os.WriteFile(p.in(marker), nil, 0o600); err != nil {
		return fmt.Errorf("mark state directory: %w", err)
	}
	return nil
}

func (p *paths) in(name ...string) string {
	return filepath.Join(append([]string{p.StateDir}, name...)...)
}
