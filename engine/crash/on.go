//go:build crashpoints

package crash

import (
	"os"
	"syscall"
)

// Point kills the process without further ado when it is the boundary asked for.
func Point(name string) {
	if os.Getenv("QOD_CRASH_AT") == name {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}
