// Command estate measures plan and apply on an estate of thousands of objects, through the binary as its
// users run it: how long they take, how much memory, and whether ten times the objects take ten times as
// long. It prints a table and judges nothing.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	qod := flag.String("qod", "", "the binary")
	extensions := flag.String("extensions", "", "directory of DuckDB's extensions")
	root := flag.String("root", "", "directory for state and configurations")
	flag.Parse()
	if err := run(*qod, *extensions, *root); err != nil {
		fmt.Fprintln(os.Stderr, "estate:", err)
		os.Exit(1)
	}
}

// plans is how often each plan is timed; the median counts.
const plans = 3

type figures struct {
	objects                            int
	load, plan, change, commit, settle time.Duration
	databases                          int
	planRSS, applyRSS                  int64 // MiB
}

func run(qod, extensions, root string) error {
	var all []figures
	for _, tenants := range []int{5, 50} {
		e, err := found(qod, root, tenants)
		if err != nil {
			return err
		}
		f, err := e.measure(extensions)
		if _, downErr := e.qod("down", "--purge"); downErr != nil && err == nil {
			err = downErr
		}
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	small, large := all[0], all[1]
	fmt.Printf("%-38s %14s %14s %8s\n", "estate", fmt.Sprintf("%d objects", small.objects), fmt.Sprintf("%d objects", large.objects), "ratio")
	for _, r := range []struct {
		name string
		of   func(figures) time.Duration
	}{
		{"load and evaluate (validate)", func(f figures) time.Duration { return f.load }},
		{"plan, nothing changed", func(f figures) time.Duration { return f.plan }},
		{"plan, one object changed", func(f figures) time.Duration { return f.change }},
		{"  of that beyond loading", func(f figures) time.Duration { return f.change - f.load }},
		{"first apply, to its commit", func(f figures) time.Duration { return f.commit }},
		{"databases after the commit", func(f figures) time.Duration { return f.settle }},
		{"  of that each", func(f figures) time.Duration { return f.settle / time.Duration(f.databases) }},
	} {
		a, b := r.of(small), r.of(large)
		fmt.Printf("%-38s %14s %14s %8.1f\n", r.name, a.Round(time.Millisecond), b.Round(time.Millisecond), float64(b)/float64(a))
	}
	fmt.Printf("%-38s %10d MiB %10d MiB\n", "memory of plan, at most", small.planRSS, large.planRSS)
	fmt.Printf("%-38s %10d MiB %10d MiB\n", "memory of the first apply, at most", small.applyRSS, large.applyRSS)
	return nil
}

// estate is a working directory with a state of its own.
type estate struct {
	bin, dir string
	env      []string
	tenants  int
}

func found(bin, root string, tenants int) (*estate, error) {
	e := &estate{bin: bin, dir: filepath.Join(root, fmt.Sprintf("estate-%d", tenants)), tenants: tenants}
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		return nil, err
	}
	state := filepath.Join(root, fmt.Sprintf("state-%d", tenants))
	run := filepath.Join(root, fmt.Sprintf("run-%d", tenants))
	e.env = append(os.Environ(), "QOD_STATE_DIR="+state, "QOD_RUN_DIR="+run)
	return e, writeEstate(e.dir, tenants)
}

func (e *estate) measure(extensions string) (figures, error) {
	f := figures{objects: objectsPerTenant * e.tenants, databases: e.tenants}
	if _, err := e.qod("init", "--extensions-from", extensions); err != nil {
		return f, err
	}
	var err error
	if f.commit, f.settle, f.applyRSS, err = e.apply(); err != nil {
		return f, err
	}
	if f.load, _, err = e.times("validate"); err != nil {
		return f, err
	}
	if f.plan, f.planRSS, err = e.times("plan", "--detailed-exitcode"); err != nil {
		return f, err
	}
	f.change, _, err = e.times("plan", "--var", "title=changed")
	return f, err
}

// times returns the median time of a command and the most memory that it took, in MiB.
func (e *estate) times(args ...string) (time.Duration, int64, error) {
	var times []time.Duration
	var most int64
	for range plans {
		start := time.Now()
		state, err := e.qod(args...)
		if err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(start))
		most = max(most, rss(state))
	}
	slices.Sort(times)
	return times[len(times)/2], most, nil
}

func rss(state *os.ProcessState) int64 { return state.SysUsage().(*syscall.Rusage).Maxrss >> 10 }

func (e *estate) command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.bin, append([]string{"-C", e.dir}, args...)...)
	cmd.Env = e.env
	return cmd
}

func (e *estate) qod(args ...string) (*os.ProcessState, error) {
	cmd := e.command(args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		tail := string(out[max(0, len(out)-2000):])
		return nil, fmt.Errorf("qod %s: %w\n%s", strings.Join(args, " "), err, tail)
	}
	return cmd.ProcessState, nil
}

// apply times the first apply: up to the line that says it is committed, and from there to its end.
func (e *estate) apply() (commit, settle time.Duration, most int64, err error) {
	cmd := e.command("apply", "--auto-approve")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, 0, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "Committed.") {
			commit = time.Since(start)
			break
		}
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		return 0, 0, 0, err
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return 0, 0, 0, fmt.Errorf("first apply: %w", err)
	}
	if commit == 0 {
		return 0, 0, 0, errors.New("the first apply never said that it was committed")
	}
	return commit, time.Since(start) - commit, rss(cmd.ProcessState), nil
}
