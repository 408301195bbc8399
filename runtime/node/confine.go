package node

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// headroom is what a node's process may take beside twice the memory of its pool, in bytes: stacks, the
// guard, buffers of calls.
const headroom = 1 << 30

// Confine bounds the memory of the process that is about to be a node of that much memory. DuckDB keeps to
// its own limit with what it buffers, but not with every value that a function makes: at this limit the
// allocation fails, and with it the statement, or at worst this node. Without a memory there is no bound.
func Confine(memory int64) error {
	if memory <= 0 {
		return nil
	}
	bound := uint64(2*memory + headroom)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("confine node: %w", err)
	}
	if limit.Max < bound {
		return nil // whoever set it wants less
	}
	limit.Cur, limit.Max = bound, bound
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &limit); err != nil {
		return fmt.Errorf("confine node: %w", err)
	}
	return nil
}
