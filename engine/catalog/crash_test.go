//go:build crashpoints

package catalog_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/qod-io/qod/engine/crash"
)

const (
	victimVariable = "QOD_TEST_CATALOG_VICTIM" // the id, the data directory and what is done to the lake
	victimPassword = "password-of-the-victim"
)

// TestKilledAtEachPoint kills a process at every boundary of Create and of Delete. Whoever comes next
// must be able to finish either.
func TestKilledAtEachPoint(t *testing.T) {
	if task := os.Getenv(victimVariable); task != "" {
		die(t, strings.Split(task, ","))
		return
	}
	for _, point := range crash.Points() {
		if !strings.HasPrefix(point, "catalog.") {
			continue
		}
		for _, next := range []string{"create", "delete"} {
			t.Run(point+" then "+next, func(t *testing.T) {
				l := newLake(t)
				l.password = []byte(victimPassword)
				victim := exec.Command(os.Args[0], "-test.run=^TestKilledAtEachPoint$")
				victim.Env = append(os.Environ(), "QOD_CRASH_AT="+point, victimVariable+"="+l.object.ID+","+l.host.root)
				out, err := victim.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the victim ends with %v: %s", err, out)
				}
				if next == "create" {
					l.create()
					if got := l.missing(); got != nil {
						t.Errorf("missing: %v", got)
					}
				}
				l.delete()
				if got := l.missing(); len(got) != 3 {
					t.Errorf("missing: %v", got)
				}
			})
		}
	}
}

func die(t *testing.T, task []string) {
	l := newLake(t)
	l.object, l.host.root = object(t, task[0], "sales", "main"), task[1]
	l.password = []byte(victimPassword)
	l.create()
	l.delete()
}
