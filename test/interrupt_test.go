package test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// running is a command whose output is read while it runs. Both streams are one.
type running struct {
	*exec.Cmd
	out  *bufio.Reader
	seen bytes.Buffer
}

func (i *installation) start(t testing.TB, args ...string) *running {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &running{Cmd: i.command(t.Context(), args...), out: bufio.NewReader(r)}
	p.Stdout, p.Stderr = w, w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() { r.Close() })
	return p
}

// until reads what the command prints up to a line with the words.
func (p *running) until(t testing.TB, words string) {
	t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		p.seen.WriteString(line)
		if strings.Contains(line, words) {
			return
		}
		if err != nil {
			t.Fatalf("it ended without saying %q:\n%s", words, &p.seen)
		}
	}
}

func (p *running) interrupt(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// ends waits for the end and returns the exit code, and all that was said.
func (p *running) ends(t testing.TB) (int, string) {
	t.Helper()
	if _, err := io.Copy(&p.seen, p.out); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() // the exit code says it
	return p.ProcessState.ExitCode(), p.seen.String()
}

// The first Ctrl-C has the running step end and says what is left; the second ends the process at once.
// The next apply finishes either way.
func TestInterruptedApply(t *testing.T) {
	i := install(t, "quickstart")
	t.Run("before the commit", func(t *testing.T) {
		p := i.start(t, "apply", "--auto-approve")
		p.interrupt(t)
		code, out := p.ends(t)
		if strings.Contains(out, "Committed.") {
			t.Skip("the signal came after the commit")
		}
		if code == 0 || i.psql(t, "SELECT count(*)::text FROM qodstate_object WHERE stack <> 'system'") != "0" {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	t.Run("once", func(t *testing.T) {
		p := i.start(t, "apply", "--auto-approve")
		p.until(t, "not provisioned yet")
		p.interrupt(t)
		code, out := p.ends(t)
		for _, want := range []string{"no further step starts", "committed, not converged:", "pool.acme/bi", "run qod apply again"} {
			if !strings.Contains(out, want) {
				t.Errorf("it does not say %q:\n%s", want, out)
			}
		}
		if code != 1 {
			t.Errorf("exit code %d", code)
		}
		if got := i.psql(t, "SELECT string_agg(status->>'phase', ' ') FROM qodstate_object WHERE kind = 'tenant_db'"); got != "ready" {
			t.Errorf("the step that ran did not end: the database is %s", got)
		}
		i.finishes(t)
	})
	i.must(t, "destroy", "--auto-approve")
	t.Run("twice", func(t *testing.T) {
		p := i.start(t, "apply", "--auto-approve")
		p.until(t, "not provisioned yet")
		p.interrupt(t)
		p.until(t, "no further step starts")
		p.interrupt(t)
		if code, out := p.ends(t); code != 130 || !strings.Contains(out, "run qod apply again, it finishes") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
		i.finishes(t)
	})
	i.must(t, "destroy", "--auto-approve")
	i.nothingLeft(t)
}

func (i *installation) finishes(t testing.TB) {
	t.Helper()
	i.must(t, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	if got := i.psql(t, `SELECT count(*)::text FROM pg_database WHERE datname LIKE 'qod\_%'`); got != "1" {
		t.Errorf("there are %s databases", got)
	}
}
