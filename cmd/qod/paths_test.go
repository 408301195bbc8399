package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Under root's umask of 077 nodes and Postgres would not come to what is theirs.
func TestWayIsAsOpenUnderAnyUmask(t *testing.T) {
	root := t.TempDir()
	p := &paths{Dir: t.TempDir(), Settings: &Settings{
		StateDir: filepath.Join(root, "lib", "qod", "state"), RunDir: filepath.Join(root, "run", "qod", "sockets"),
	}}
	old := syscall.Umask(0o077)
	err := p.make()
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	want := os.FileMode(0o711)
	if os.Geteuid() != 0 {
		want = 0o700 // of a user whose nodes run as that user, the umask is kept
	}
	for _, dir := range []string{"lib", "lib/qod", "run", "run/qod"} {
		info, err := os.Stat(filepath.Join(root, dir))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %#o", dir, info, err, want)
		}
	}
	if _, err := os.Stat(p.RunDir); err == nil {
		t.Error("the directory of sockets is made by who fills it")
	}
}
