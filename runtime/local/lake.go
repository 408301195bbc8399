package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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

// runTask runs `qod node FLAG` with the task on descriptor 3, and on 4 the lock of its directory. When ctx ends it is killed.
func (b *Backend) runTask(ctx context.Context, o owner, flag string, task wire.LakeTask) (string, error) {
	if err := b.checkDataPath(&task.Lake); err != nil {
		return "", err
	}
	path, err := b.executable()
	if err != nil {
		return "", err
	}
	dir, lock, err := b.makeTaskDir(ctx, o)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	defer lock.Close()
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
	cmd.ExtraFiles = []*os.File{config, lock} // a task that outlives us keeps what it works in
	cmd.SysProcAttr = o.attributes()
	cmd.WaitDelay = 5 * time.Second
	if err := keepDescriptors(); err != nil {
		return "", err
	}
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

// makeTaskDir makes a directory for one task, whose part tmp belongs to the owner. It is locked for as
// long as somebody holds the file. Directories that nobody holds any more are removed.
func (b *Backend) makeTaskDir(ctx context.Context, o owner) (string, *os.File, error) {
	if err := b.makeStateDir("tasks"); err != nil {
		return "", nil, err
	}
	tasks := filepath.Join(b.cfg.StateDir, "tasks")
	all, err := os.Open(tasks)
	if err != nil {
		return "", nil, err
	}
	unlock, err := lockFile(ctx, all)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	if err := sweepTasks(tasks); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(tasks, "task-")
	if err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, taskLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := errors.Join(flock(lock), os.Chmod(dir, 0o711), o.mkdir(filepath.Join(dir, "tmp"))); err != nil {
		return "", nil, errors.Join(err, lock.Close(), os.RemoveAll(dir))
	}
	return dir, lock, nil
}

const taskLock = "lock"

// sweepTasks removes what tasks have left whose runner was killed, and that have ended themselves.
func sweepTasks(tasks string) error {
	dirs, err := filepath.Glob(filepath.Join(tasks, "task-*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := sweepTask(dir); err != nil {
			return fmt.Errorf("remove remains of a task: %w", err)
		}
	}
	return nil
}

func sweepTask(dir string) error {
	lock, err := os.OpenFile(filepath.Join(dir, taskLock), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) { // cut short before it was locked
		return os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	err = flock(lock)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
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
