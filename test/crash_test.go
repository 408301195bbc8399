package test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/crash"
)

// endState is what an apply has to leave: the objects, with what was written and how far they are.
func (i *installation) endState(t testing.TB) string {
	t.Helper()
	return i.psql(t, `SELECT string_agg(kind || ' ' || key || ' ' || spec::text || ' ' || coalesce(status->>'phase', ''), E'\n' ORDER BY kind, key)
		FROM qodstate_object WHERE stack <> 'system' AND kind <> 'user'`) +
		i.psql(t, `SELECT count(*)::text FROM qodstate_node`) +
		i.psql(t, `SELECT count(*)::text FROM pg_database WHERE datname LIKE 'qod\_%'`)
}

// whole shows that an apply after a crash reached the state of one that was not interrupted.
func (i *installation) whole(t testing.TB, want string) {
	t.Helper()
	i.must(t, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	if diff := cmp.Diff(want, i.endState(t)); diff != "" {
		t.Errorf("end state differs (-uninterrupted +after the crash):\n%s", diff)
	}
}

// A build that kills itself at each named boundary: the next apply, or destroy, finishes.
func TestCrashPoints(t *testing.T) {
	i := install(t, "quickstart")
	i.edit(t, "dual = 2", "dual = 1")
	i.must(t, "apply", "--auto-approve")
	want := i.endState(t)
	i.must(t, "destroy", "--auto-approve")
	i.nothingLeft(t)
	deadly := buildOnce(t, "qod-crash", "duckdb_arrow,crashpoints")
	for _, point := range crash.Points() {
		t.Run(point, func(t *testing.T) {
			reached := i.dieAt(t, deadly, point, "apply")
			i.whole(t, want)
			reached = i.dieAt(t, deadly, point, "destroy") || reached
			i.must(t, "destroy", "--auto-approve")
			i.nothingLeft(t)
			if !reached {
				t.Errorf("neither apply nor destroy came by %s", point)
			}
		})
	}
}

// dieAt runs a command that kills itself at a boundary, and says whether it came that far.
func (i *installation) dieAt(t testing.TB, bin, point, command string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "-C", i.dir, command, "--auto-approve")
	cmd.Env = append(i.env, "QOD_CRASH_AT="+point)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s hung at %s\n%s", command, point, out)
	}
	return killed(cmd, err)
}

func killed(cmd *exec.Cmd, err error) bool {
	if err == nil {
		return false
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// points is how many times an apply of thirty objects is interrupted.
const points = 54

// The ordinary binary, killed and interrupted at seeded times while it applies: it goes to and fro between
// a configuration of thirty objects and one of eight. The next apply always ends where an apply that was
// left alone does, with one of each object, and the pool that is in both never notices.
func TestInterruptedApplies(t *testing.T) {
	i := install(t, "quickstart")
	source, err := os.ReadFile("testdata/thirty.qod.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(i.dir, "main.qod.hcl"), source, 0o644); err != nil {
		t.Fatal(err)
	}
	i.expect(t, 0, []string{"30 added"}, "apply", "--auto-approve")
	want := map[bool]string{true: i.endState(t)}
	took := map[bool]time.Duration{}
	for _, more := range []bool{false, true} {
		start := time.Now()
		i.must(t, "apply", "--auto-approve", more30(more))
		took[more] = time.Since(start)
		want[more] = i.endState(t)
	}
	bystander := i.bystander(t)
	random := rand.New(rand.NewPCG(20261130, 4))
	ended := map[syscall.Signal]int{}
	for n := range points {
		more, signal := n%2 == 1, syscall.SIGKILL
		if n%3 == 2 {
			signal = syscall.SIGINT
		}
		after := time.Duration(random.Int64N(int64(took[more])))
		t.Run(fmt.Sprintf("%02d %s after %s", n, signal, after.Round(time.Millisecond)), func(t *testing.T) {
			if i.signalAfter(t, signal, after, "apply", "--auto-approve", more30(more)) {
				ended[signal]++
			}
			i.must(t, "apply", "--auto-approve", more30(more))
			i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode", more30(more))
			if diff := cmp.Diff(want[more], i.endState(t)); diff != "" {
				t.Errorf("end state differs (-uninterrupted +after %s):\n%s", signal, diff)
			}
			if got := i.bystander(t); got != bystander {
				t.Errorf("the node of a pool that did not change was %s and is %s", bystander, got)
			}
		})
	}
	if ended[syscall.SIGKILL] < points/3 || ended[syscall.SIGINT] < points/12 {
		t.Errorf("too few of %d applies were cut short: %v", points, ended)
	}
	i.must(t, "destroy", "--auto-approve")
	i.nothingLeft(t)
}

func more30(more bool) string { return fmt.Sprintf("--var=more=%t", more) }

// bystander is the node of the pool that both configurations have.
func (i *installation) bystander(t testing.TB) string {
	t.Helper()
	return i.processOf(t, "acme/main")
}

// processOf is the one node of a pool: its process and incarnation.
func (i *installation) processOf(t testing.TB, pool string) string {
	t.Helper()
	return i.psql(t, `SELECT n.pid || ' ' || n.incarnation FROM qodstate_node n JOIN qodstate_object o ON o.id::text = n.pool_id
		WHERE o.key = '`+pool+`'`)
}

// signalAfter signals a command at a time, and says whether that cut it short.
func (i *installation) signalAfter(t testing.TB, signal syscall.Signal, after time.Duration, args ...string) bool {
	t.Helper()
	cmd := i.command(t.Context(), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Signal(signal) }) // it may have ended
	err := cmd.Wait()
	timer.Stop()
	return err != nil
}

// Two applies over one object: one wins, and the other names the object. Over disjoint objects both do.
func TestTwoApplies(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	i.edit(t, `display_name = "Acme"`, `display_name = "Acme One"`)
	i.must(t, "plan", "--out", "one.qodplan") // files lie where -C says
	i.edit(t, `display_name = "Acme One"`, `display_name = "Acme Two"`)
	i.must(t, "plan", "--out", "two.qodplan")
	i.edit(t, `display_name = "Acme Two"`, `display_name = "Acme"`)
	i.edit(t, `description = "May do all in the database."`, `description = "May do everything."`)
	i.must(t, "plan", "--out", "other.qodplan")

	i.expect(t, 0, []string{"Plan: 0 to add, 1 to change", `-> "Acme One"`}, "show", "one.qodplan")
	i.must(t, "apply", "one.qodplan")
	i.expect(t, 0, []string{"Acme One", "has changed since"}, "show", "one.qodplan")
	i.expect(t, 0, []string{`"format_version": "1.1"`, `"Plan cannot be applied"`}, "show", "--json", "two.qodplan")
	i.expect(t, 1, []string{"nothing was changed", "tenant.acme", "Acme One"}, "apply", "two.qodplan")
	i.must(t, "apply", "other.qodplan")
	i.expect(t, 1, []string{"applied already"}, "apply", "one.qodplan")
	if got := i.psql(t, "SELECT display_name FROM qodstate_tenant"); got != "Acme One" {
		t.Errorf("display_name is %q", got)
	}
	if got := i.psql(t, "SELECT description FROM qodstate_role"); !strings.Contains(got, "everything") {
		t.Errorf("description is %q", got)
	}
}
