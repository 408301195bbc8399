package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/qod-io/qod/runtime/wire"
)

// InitLake makes the database's data directory and, in a process of the database's user, the lake. It
// is idempotent. The task's temporary directory is set here, and so is its data path if it is empty.
func (b *Backend) InitLake(ctx context.Context, task wire.LakeTask) error {
	o, err := b.makeData(ctx, task.Lake.DatabaseID)
	if err == nil {
		_, err = b.runTask(ctx, o, "--init-lake", task)
	}
	if err != nil {
		return fmt.Errorf("make lake %s: %w", task.Lake.Name, err)
	}
	return nil
}

// LoadTPCH fills the lake with TPC-H data and returns what the task printed.
func (b *Backend) LoadTPCH(ctx context.Context, task wire.LakeTask) (string, error) {
	o, err := b.dataOwner(task.Lake.DatabaseID)
	if err != nil {
		return "", fmt.Errorf("load tpch into %s: %w", task.Lake.Name, err)
	}
	out, err := b.runTask(ctx, o, "--load-tpch", task)
	if err != nil {
		return "", fmt.Errorf("load tpch into %s: %w", task.Lake.Name, err)
	}
	return out, nil
}

// runTask runs `qod node FLAG` with the task on descriptor 3. When ctx ends it is killed.
func (b *Backend) runTask(ctx context.Context, o owner, flag string, task wire.LakeTask) (string, error) {
	if err := b.checkDataPath(&task.Lake); err != nil {
		return "", err
	}
	path, err := b.executable()
	if err != nil {
		return "", err
	}
	dir, err := b.makeTaskDir(o)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	task.TempDir = filepath.Join(dir, "tmp")
	config, err := sealedFile(task)
	if err != nil {
		return "", err
	}
	defer config.Close()
	var stdout bytes.Buffer
	var stderr tail
	cmd := exec.CommandContext(ctx, path, "node", flag)
	cmd.Dir, cmd.Env = dir, environment()
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.ExtraFiles = []*os.File{config}
	cmd.SysProcAttr = o.attributes()
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return "", taskError(ctx, err, shorten(scrub(string(stderr.kept), task.Lake.Password)))
	}
	return stdout.String(), nil
}

func (b *Backend) checkDataPath(lake *wire.Lake) error {
	want := b.DataPath(lake.DatabaseID)
	if lake.DataPath == "" {
		lake.DataPath = want
	}
	if filepath.Clean(lake.DataPath) != want {
		return fmt.Errorf("data path %s is not that of database %s", lake.DataPath, lake.DatabaseID)
	}
	return nil
}

// makeTaskDir makes a directory for one task, whose part tmp belongs to the owner.
func (b *Backend) makeTaskDir(o owner) (string, error) {
	if err := b.makeStateDir("tasks"); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Join(b.cfg.StateDir, "tasks"), "task-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(dir, 0o711), o.mkdir(filepath.Join(dir, "tmp"))); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func taskError(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the task was ended: %w", context.Cause(ctx))
	}
	if said == "" {
		return err
	}
	return fmt.Errorf("%s (%w)", said, err)
}

// scrub takes a secret out of a text, also where it is quoted for SQL.
func scrub(text, secret string) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if secret == "" {
		return text
	}
	text = strings.ReplaceAll(text, strings.ReplaceAll(secret, "'", "''"), "[hidden]")
	return strings.ReplaceAll(text, secret, "[hidden]")
}

// shorten keeps the end of a text. It comes after scrub: half a secret would not be found.
func shorten(text string) string {
	const most = 2 << 10
	return strings.ToValidUTF8(text[max(0, len(text)-most):], "")
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}
