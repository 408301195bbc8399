package embedded

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// postmaster is what postmaster.pid says. The file is written by the server and may be stale.
type postmaster struct {
	pid    int
	socket string // directory
	status string // starting, ready, stopping
}

// readPostmaster returns false where there is no file or not yet all of its first line.
func readPostmaster(data string) (postmaster, bool) {
	raw, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return postmaster{}, false
	}
	lines := strings.Split(string(raw), "\n")
	line := func(n int) string {
		if len(lines) < n {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, err := strconv.Atoi(line(1))
	if err != nil || pid <= 0 {
		return postmaster{}, false
	}
	return postmaster{pid: pid, socket: line(5), status: line(8)}, true
}

// process is a server process held by a descriptor, so that a signal never reaches a later process of
// the same pid.
type process struct {
	*os.Process
	pid int
}

// hold returns the process of that pid if it is the postmaster of the cluster with that id: it runs
// postgres, on our data directory, with our id on its command line.
func (c *cluster) hold(pid int, id string) (*process, bool) {
	reap(pid)
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, false
	}
	held := &process{Process: p, pid: pid}
	if !runsPostgres(pid) || held.ended() || !c.named(pid, id) {
		held.Release()
		return nil, false
	}
	return held, true
}

func (c *cluster) named(pid int, id string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	var args []string
	for arg := range bytes.SplitSeq(raw, []byte{0}) {
		args = append(args, string(arg))
	}
	at := slices.Index(args, "-D")
	return at >= 0 && at+1 < len(args) && args[at+1] == c.data && slices.Contains(args, "cluster_name="+clusterName(id))
}

func clusterName(id string) string { return "qod_" + id }

// runsPostgres says whether the process runs a program called postgres. A process that may not be
// looked into is none of ours.
func runsPostgres(pid int) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == "postgres"
}

// ended says whether the process is gone. A zombie is: it only waits for its parent.
func (p *process) ended() bool {
	reap(p.pid)
	if p.Signal(syscall.Signal(0)) != nil {
		return true
	}
	_, state := stat(p.pid)
	return state == "" || state == "Z"
}

// reap collects the process if it is an ended server that was our child.
func reap(pid int) {
	if name, state := stat(pid); name != "postgres" || state != "Z" {
		return
	}
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
}

// stat returns the name of the process's program and its state, both empty for one that is gone.
func stat(pid int) (name, state string) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndex(raw, []byte(") "))
	if open < 0 || end < open || end+2 >= len(raw) {
		return "", ""
	}
	return string(raw[open+1 : end]), string(raw[end+2 : end+3])
}

// users lists the processes that run postgres in the data directory: the backends of a postmaster that
// was killed go on for a moment, and a new one must not start beside them.
func (c *cluster) users() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if err == nil && cwd == c.data && runsPostgres(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}
