package embedded

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const idFile = "qod.cluster" // in the data directory

// identity returns the id of the existing cluster, or ErrAbsent.
func (c *cluster) identity() (string, error) {
	inData, err := os.ReadFile(filepath.Join(c.data, idFile))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(c.data); err == nil {
			return "", fmt.Errorf("check %s: it carries no id: %w", c.data, ErrNotOurs)
		}
		return "", ErrAbsent
	}
	if err != nil {
		return "", fmt.Errorf("check cluster: %w", err)
	}
	recorded, err := os.ReadFile(c.id)
	if err != nil {
		return "", fmt.Errorf("check cluster: %w", err)
	}
	id := strings.TrimSpace(string(recorded))
	if id == "" || id != strings.TrimSpace(string(inData)) {
		return "", fmt.Errorf("check %s: it carries another id than %s: %w", c.data, c.id, ErrNotOurs)
	}
	return id, nil
}

// initialise makes the cluster beside its place and moves it there once it is whole.
func (c *cluster) initialise(ctx context.Context, bin string, lock *os.File) (string, error) {
	id, err := kept(c.id, func() string { return random(8) })
	if err != nil {
		return "", fmt.Errorf("keep cluster id: %w", err)
	}
	password, err := kept(c.password, func() string { return random(24) })
	if err != nil {
		return "", fmt.Errorf("keep superuser's password: %w", err)
	}
	tmp := c.data + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return "", fmt.Errorf("remove half-made cluster: %w", err)
	}
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return "", fmt.Errorf("make data directory: %w", err)
	}
	if err := c.give(tmp); err != nil {
		return "", err
	}
	if err := c.initdb(ctx, bin, tmp, password, lock); err != nil {
		return "", err
	}
	if err := c.harden(ctx, bin, tmp, lock); err != nil {
		return "", err
	}
	if err := keep(filepath.Join(tmp, idFile), id+"\n", c.account); err != nil {
		return "", fmt.Errorf("mark cluster: %w", err)
	}
	if err := os.Rename(tmp, c.data); err != nil {
		return "", fmt.Errorf("put cluster in place: %w", err)
	}
	c.log.Info("private Postgres initialised", "data", c.data)
	return id, syncDir(c.root)
}

func (c *cluster) initdb(ctx context.Context, bin, data, password string, lock *os.File) error {
	secret := filepath.Join(c.root, "initdb.password")
	defer os.Remove(secret)
	if err := keep(secret, password+"\n", c.account); err != nil {
		return fmt.Errorf("write password for initdb: %w", err)
	}
	args := []string{
		"--pgdata=" + data, "--username=" + superuser, "--pwfile=" + secret,
		"--auth-local=scram-sha-256", "--auth-host=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-instructions",
	}
	if c.NoSync {
		args = append(args, "--no-sync")
	}
	return c.run(ctx, filepath.Join(bin, "initdb"), data, "", lock, args...)
}

// harden makes the database of the state, and keeps the roles of lakes out of every other.
func (c *cluster) harden(ctx context.Context, bin, data string, lock *os.File) error {
	statements := strings.Join([]string{
		"CREATE DATABASE " + database + " TEMPLATE template0",
		"REVOKE ALL ON DATABASE " + database + " FROM PUBLIC",
		"REVOKE ALL ON DATABASE postgres FROM PUBLIC",
		"REVOKE ALL ON DATABASE template1 FROM PUBLIC",
		"",
	}, "\n")
	args := []string{"--single", "-D", data, "-c", "exit_on_error=on", "-c", "log_min_messages=warning"}
	if c.NoSync {
		args = append(args, "-F")
	}
	return c.run(ctx, filepath.Join(bin, "postgres"), data, statements, lock, append(args, "postgres")...)
}

func (c *cluster) run(ctx context.Context, program, dir, input string, lock *os.File, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, c.environment(), c.attributes()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	cmd.ExtraFiles = []*os.File{lock}
	cmd.WaitDelay = pollEvery
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w: %s", program, err, lastLines(out.String(), 5))
	}
	return nil
}

func random(bytes int) string {
	raw := make([]byte, bytes)
	rand.Read(raw)
	return hex.EncodeToString(raw)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
