package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/qod-io/qod/engine/plan"
	"github.com/qod-io/qod/schema"
)

// The first signal ends the context, the second the process.
func TestSignals(t *testing.T) {
	tests := map[string]struct {
		committed bool
		signals   int
		code      int // of the command
		want      int
		says      []string
		silent    bool
	}{
		"none":                    {false, 0, 1, 1, nil, true},
		"before the commit":       {false, 1, 1, 1, nil, true},
		"after the commit":        {true, 1, 1, 1, []string{"no further step starts"}, false},
		"twice":                   {false, 2, 0, 130, []string{"Ended at once."}, false},
		"twice, after the commit": {true, 2, 0, 130, []string{"may be behind", "run qod apply again"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a, stderr := &acting{}, &bytes.Buffer{}
			if tt.committed {
				a.begin()
			}
			ctx, stop := context.WithCancelCause(t.Context())
			signals, code := make(chan os.Signal), make(chan int, 1)
			got := make(chan int, 1)
			go func() { got <- a.await(stop, signals, code, stderr) }()
			for range tt.signals {
				signals <- syscall.SIGINT
			}
			if tt.signals < 2 {
				code <- tt.code
			}
			if c := <-got; c != tt.want {
				t.Errorf("exit code %d, want %d", c, tt.want)
			}
			if ended := errors.Is(context.Cause(ctx), errInterrupted); ended != (tt.signals > 0) {
				t.Errorf("the context ended: %t", ended)
			}
			for _, want := range tt.says {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("%q lacks %q", stderr, want)
				}
			}
			if tt.silent && stderr.Len() > 0 {
				t.Errorf("it says %q", stderr)
			}
		})
	}
}

// Told to end while it still plans, apply says that nothing was changed.
func TestInterruptedBeforeTheCommit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("QOD_STATE_DIR", filepath.Join(dir, "state"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := &bytes.Buffer{}
	a := &app{stdin: strings.NewReader(""), stdout: out, stderr: out, env: os.LookupEnv}
	code := a.run(ctx, []string{"-C", dir, "apply", "--auto-approve"})
	if code != 1 || !strings.Contains(out.String(), "interrupted: nothing was changed") || strings.Contains(out.String(), "Committed") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// What takes long is told again every ten seconds, and what is pending only where it is new.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &bytes.Buffer{}
		p := newProgress(&text{app: &app{}, out: out})
		db := plan.Finding{Addr: schema.NewAddr("tenant_db", "acme", "sales"), Message: "not provisioned yet"}
		pool := plan.Finding{Addr: schema.NewAddr("pool", "acme", "bi"), Message: "1 of 1 nodes missing"}
		p.pending([]plan.Finding{db, pool})
		after(25 * time.Second)
		p.pending([]plan.Finding{pool})
		after(6 * time.Second)
		p.Close()
		want := `  tenant_db.acme/sales: not provisioned yet [0s]
  pool.acme/bi: 1 of 1 nodes missing [0s]
Still provisioning tenant_db.acme/sales... [10s elapsed]
Still bringing up the nodes of pool.acme/bi... [10s elapsed]
Still provisioning tenant_db.acme/sales... [20s elapsed]
Still bringing up the nodes of pool.acme/bi... [20s elapsed]
Still bringing up the nodes of pool.acme/bi... [30s elapsed]
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Error(diff)
		}
	})
}

func after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}
