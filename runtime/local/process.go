package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process identifies a process for ever: pids are used again, but not with the same start time in the
// same boot.
type process struct {
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"` // in clock ticks after boot
	Boot  string `json:"boot,omitempty"`
}

// killWait is how long a process may take to vanish after SIGKILL: a sick disk can hold it.
const killWait = 10 * time.Second

// absent reports whether an error of reading from /proc means that there is no such process. No other
// error means that.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// lookup returns the process that has the pid now, or an error that is absent. It is alive until it is
// a zombie.
func lookup(pid int) (p process, alive bool, err error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return process{}, false, err
	}
	// The second field is the name in parentheses, and may hold anything, also parentheses.
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(fields) < 20 {
		return process{}, false, fmt.Errorf("the state of process %d has %d fields", pid, len(fields))
	}
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return process{}, false, fmt.Errorf("read start of process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, false, fmt.Errorf("read boot: %v", err) // not wrapped: it says nothing of the process
	}
	alive = fields[0] != "Z" && fields[0] != "X"
	return process{PID: pid, Start: start, Boot: string(bytes.TrimSpace(boot))}, alive, nil
}

// is reports whether the process still runs and says it is that node.
func (p process) is(node string) (bool, error) {
	now, alive, err := lookup(p.PID)
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up process %d: %w", p.PID, err)
	}
	if !alive || now != p {
		return false, nil
	}
	id, err := nodeArgument(p.PID)
	return id == node, err
}

// nodeArguments are those of a node's process, for people who read a list of processes and for scan.
func nodeArguments(id string) []string { return []string{"qod", "node", "--id", id} }

// nodeArgument returns the node that the process says it is, or nothing.
func nodeArgument(pid int) (string, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if absent(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read arguments of process %d: %w", pid, err)
	}
	args := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	if len(args) != 4 || args[1] != "node" || args[2] != "--id" || checkID(args[3]) != nil {
		return "", nil
	}
	return args[3], nil
}

// scan looks through all processes for nodes of this state directory, by arguments and working directory.
func (b *Backend) scan() (map[string]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	found := map[string]process{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		id, p, err := b.nodeOf(pid)
		if err != nil {
			return nil, err
		}
		if id != "" {
			found[id] = p
		}
	}
	return found, nil
}

// nodeOf returns the node of this state directory that the process is, or nothing.
func (b *Backend) nodeOf(pid int) (string, process, error) {
	id, err := nodeArgument(pid)
	if errors.Is(err, os.ErrPermission) { // another user's on a host that hides these: no node of ours
		return "", process{}, nil
	}
	if err != nil || id == "" {
		return "", process{}, err
	}
	if ours, err := b.worksFor(pid, id); err != nil || !ours {
		return "", process{}, err
	}
	p, alive, err := lookup(pid)
	switch {
	case absent(err), err == nil && !alive:
		return "", process{}, nil
	case err != nil:
		return "", process{}, fmt.Errorf("look up process %d: %w", pid, err)
	}
	return id, p, nil
}

// worksFor reports whether the process runs in the node's directory. That cannot be read of every
// process; then the node's record has to vouch for it.
func (b *Backend) worksFor(pid int, id string) (bool, error) {
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if errors.Is(err, os.ErrPermission) {
		if _, err = os.Stat(b.recordPath(id)); err == nil {
			return true, nil
		}
	}
	var want string
	if err == nil {
		want, err = filepath.EvalSymlinks(b.cfg.StateDir)
	}
	if absent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find where process %d works: %w", pid, err)
	}
	return strings.TrimSuffix(dir, " (deleted)") == filepath.Join(want, "nodes", id), nil
}

// open returns a descriptor of the process, or nil when it has ended or is not that node. What the
// descriptor names cannot change any more.
func (p process) open(node string) (*os.File, error) {
	fd, err := unix.PidfdOpen(p.PID, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", p.PID, err)
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	ok, err := p.is(node)
	if err != nil || !ok {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// end asks the process to end, and kills it after grace.
func (p process) end(ctx context.Context, node string, grace time.Duration) error {
	f, err := p.open(node)
	if err != nil || f == nil {
		return err
	}
	defer f.Close()
	if err := signal(f, unix.SIGTERM); err != nil {
		return err
	}
	waited, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if awaitExit(waited, f) == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := signal(f, unix.SIGKILL); err != nil {
		return err
	}
	killed, cancelKilled := context.WithTimeout(ctx, killWait)
	defer cancelKilled()
	if err := awaitExit(killed, f); err != nil {
		return fmt.Errorf("process %d does not end after SIGKILL: %w", p.PID, err)
	}
	return nil
}

func signal(f *os.File, sig unix.Signal) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if sent != nil && !errors.Is(sent, unix.ESRCH) {
		return fmt.Errorf("signal process: %w", sent)
	}
	return nil
}

// awaitExit waits until the process of the descriptor has ended, whoever its parent is.
func awaitExit(ctx context.Context, f *os.File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := f.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	err = conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n == 1
	})
	if ctx.Err() != nil && err != nil {
		return ctx.Err()
	}
	return err
}

// reapWait is how long a process that has ended may take until its last thread is gone.
const reapWait = time.Second

// reap frees what is left of a node that this Backend started and that has ended, and keeps why. A pid
// of our own child is not used again before that, so nobody else's child is ever taken.
func (b *Backend) reap(id string) {
	b.reaping.Lock()
	defer b.reaping.Unlock()
	b.mu.Lock()
	pid, ours := b.children[id]
	b.mu.Unlock()
	if !ours {
		return
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	ctx, cancel := context.WithTimeout(context.Background(), reapWait)
	defer cancel()
	if awaitExit(ctx, f) != nil {
		return
	}
	var status unix.WaitStatus
	if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil || got != pid {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.children, id)
	if status.Signaled() {
		b.reasons[id] = "killed by signal " + status.Signal().String()
	} else {
		b.reasons[id] = fmt.Sprintf("exit status %d", status.ExitStatus())
	}
}
