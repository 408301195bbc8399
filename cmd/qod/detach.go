package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	detachLimit = 60 * time.Second
	detachEvery = 50 * time.Millisecond
)

// detach starts serve in a session of its own and returns once it is healthy.
func (a *app) detach(ctx context.Context) error {
	if err := a.paths.make(); err != nil {
		return err
	}
	logFile := a.paths.in("serve.log")
	out, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer out.Close()
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own binary: %w", err)
	}
	cmd := exec.Command(binary, withoutDetach(os.Args[1:])...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start serve: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, detachLimit)
	defer cancel()
	for {
		if s, ok := a.paths.serve(cmd.Process.Pid); ok && healthy(ctx, s.HTTP) {
			a.printf("serve runs as process %d: Flight SQL on %s, HTTP on %s, log in %s\n", s.PID, s.Flight, s.HTTP, logFile)
			return nil
		}
		select {
		case err := <-exited:
			return fmt.Errorf("%sserve ended at once (%w); the end of its log %s:\n%s", another(a.paths.serves()), cmp.Or(err, errUnexpected),
				logFile, tail(logFile))
		case <-ctx.Done():
			return fmt.Errorf("serve is not healthy after %s: see %s and run qod down", detachLimit, filepath.Clean(logFile))
		case <-time.After(detachEvery):
		}
	}
}

// another says that a serve runs already, which is likely why one more does not.
func another(serves []presence) string {
	if len(serves) == 0 {
		return ""
	}
	s := serves[0]
	return fmt.Sprintf("serve runs here already, as process %d with Flight SQL on %s; qod down ends it. The new ", s.PID, s.Flight)
}

// serve returns the presence of the serve that runs as this process.
func (p *paths) serve(pid int) (presence, bool) {
	for _, s := range p.serves() {
		if s.PID == pid {
			return s, true
		}
	}
	return presence{}, false
}

func withoutDetach(args []string) []string {
	var out []string
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if name != "--detach" && name != "-detach" { // with one dash as well: the child must not detach again
			out = append(out, arg)
		}
	}
	return out
}

func healthy(ctx context.Context, addr string) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	return errors.Join(answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
}

const tailBytes = 2048

// tail returns the end of a log for a message.
func tail(name string) string {
	raw, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(raw[max(0, len(raw)-tailBytes):])
}
