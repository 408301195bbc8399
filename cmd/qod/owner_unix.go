package main

import (
	"fmt"
	"os"
	"syscall"
)

// ownedByUs refuses a directory that somebody else made at a place we chose.
func ownedByUs(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() {
		return fmt.Errorf("%s belongs to user %d, not to %d: set QOD_STATE_DIR to a directory of your own", dir, st.Uid, os.Getuid())
	}
	return nil
}
