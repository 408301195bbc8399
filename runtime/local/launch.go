package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/qod-io/qod/runtime/backend"
	"github.com/qod-io/qod/runtime/wire"
)

// logLimit is the size in bytes at which a node's log is put aside when the node starts.
const logLimit = 8 << 20

// launch starts the node's process and completes the record. A failure leaves nothing behind.
func (b *Backend) launch(r *record, spec backend.Spec) (err error) {
	owner, err := b.dataOwner(spec.Lake.DatabaseID)
	if err != nil {
		return err
	}
	if r.Binary, err = b.executable(); err != nil {
		return err
	}
	if err := b.makeNodeDir(r.ID, owner); err != nil {
		return err
	}
	started := false
	defer func() {
		if err != nil && !started {
			err = errors.Join(err, os.RemoveAll(b.nodeDir(r.ID)))
		}
	}()
	if err := b.writeRecord(*r); err != nil {
		return err
	}
	listener, err := b.listen(r.ID)
	if err != nil {
		return err
	}
	defer listener.Close()
	config, err := sealedFile(b.nodeConfig(r.ID, spec))
	if err != nil {
		return err
	}
	defer config.Close()
	log, err := openLog(b.logPath(r.ID))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := &exec.Cmd{
		Path: r.Binary, Args: nodeArguments(r.ID), Dir: b.nodeDir(r.ID),
		Env:    append(environment(), "QOD_NODE_ID="+r.ID),
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{config, listener},
		SysProcAttr: owner.attributes(),
	}
	if err := b.spawn(cmd, r); err != nil {
		return errors.Join(err, os.Remove(b.socket(r.ID)))
	}
	started = true
	return b.writeRecord(*r)
}

// spawn starts the process as a child that this Backend reaps; nothing waits for it meanwhile.
func (b *Backend) spawn(cmd *exec.Cmd, r *record) error {
	if err := keepDescriptors(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	delete(b.reasons, r.ID)
	b.children[r.ID] = cmd.Process.Pid
	p, _, err := lookup(cmd.Process.Pid)
	if err != nil {
		return errors.Join(fmt.Errorf("look up process %d: %w", cmd.Process.Pid, err), cmd.Process.Kill())
	}
	r.Process = p
	return cmd.Process.Release()
}

// keepDescriptors keeps from nodes what this process itself inherited, such as the pipe to a shell: a
// node that holds it outlives the process and keeps the reader waiting.
func keepDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("mark descriptors: %w", err)
	}
	return nil
}

func (b *Backend) nodeConfig(id string, spec backend.Spec) wire.NodeConfig {
	keys := make([]wire.Key, len(spec.PoolKeys))
	for i, k := range spec.PoolKeys {
		keys[i] = wire.Key(k)
	}
	l := spec.Lake
	return wire.NodeConfig{
		Version: wire.Version, ID: id, PoolID: spec.PoolID, Role: string(spec.Role), SpecHash: spec.Hash(),
		Lake: wire.Lake{
			Name: l.Name, DatabaseID: l.DatabaseID, DefaultSchema: l.DefaultSchema, DataPath: l.DataPath,
			Host: l.Host, Port: l.Port, Database: l.Database, User: l.User, Password: l.Password,
		},
		MemoryBytes: spec.MemoryBytes, Threads: spec.Threads,
		TempDir: b.tempDir(id), ExtensionDir: spec.ExtensionDir,
		Keys: keys, Live: wire.Live(spec.Live), DrainLimit: b.cfg.DrainLimit,
	}
}

func (b *Backend) tempDir(id string) string { return filepath.Join(b.nodeDir(id), "tmp") }

// makeNodeDir makes the node's directory, which only the temporary part of is the node's own.
func (b *Backend) makeNodeDir(id string, owner owner) error {
	if err := b.makeStateDir("nodes"); err != nil {
		return err
	}
	if err := os.Mkdir(b.nodeDir(id), 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(b.nodeDir(id), 0o711); err != nil { // whatever the umask is
		return err
	}
	if err := os.RemoveAll(b.tempDir(id)); err != nil { // of an earlier start of the same node
		return err
	}
	return owner.mkdir(b.tempDir(id))
}

// makeStateDir makes a part of the state directory. Users of nodes may pass through, and see nothing.
func (b *Backend) makeStateDir(part string) error {
	dir := filepath.Join(b.cfg.StateDir, part)
	if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)); err != nil { // whatever the umask is
		return err
	}
	if !b.root {
		return nil
	}
	if err := os.Chmod(b.cfg.StateDir, 0o711); err != nil {
		return err
	}
	return passable(b.cfg.StateDir)
}

// makeDir makes a directory and gives it exactly the mode, whatever the umask is.
func makeDir(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// passable says which directory on the way keeps the users of nodes out.
func passable(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("nodes run under users of their own, which cannot enter %s: "+
				"allow it (chmod o+x %s), or keep state elsewhere", path, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// listen binds the node's socket, in a directory that only the manager can enter.
func (b *Backend) listen(id string) (*os.File, error) {
	if err := os.MkdirAll(b.socketDir(), 0o700); err != nil {
		return nil, err
	}
	if err := private(b.socketDir()); err != nil {
		return nil, err
	}
	records, err := b.records()
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.ID != id && r.Endpoint == b.endpoint(id) {
			return nil, fmt.Errorf("socket %s is that of node %s", b.socket(id), r.ID)
		}
	}
	if err := os.Remove(b.socket(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: b.socket(id)})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	l.SetUnlinkOnClose(false)
	return l.File()
}

// private refuses a directory that others own or can enter: whoever can, reaches the sockets in it.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	o, err := ownerOf(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || int(o) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s must be a directory that only the user who runs qod can enter", dir)
	}
	return nil
}

// sealedFile puts v as JSON into a file without a name, which nobody can change, and which lives as
// long as someone holds it.
func sealedFile[T any](v T) (*os.File, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	fd, err := unix.MemfdCreate("qod-config", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "qod-config")
	_, err = f.Write(raw)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err == nil {
		seals := unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write file in memory: %w", err), f.Close())
	}
	return f, nil
}

func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// environment is all that processes of nodes inherit.
func environment() []string {
	var env []string
	for _, name := range []string{"PATH", "TZ", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// owner is the user that a database's data, nodes and tasks belong to: -1 stands for this process's own.
type owner int

const self owner = -1

func (o owner) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if o != self {
		attr.Credential = &syscall.Credential{Uid: uint32(o), Gid: uint32(o)}
	}
	return attr
}

// mkdir makes a directory that only the owner can enter.
func (o owner) mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	if o == self {
		return nil
	}
	return os.Lchown(path, int(o), int(o))
}
