package test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// canary is in all that the user "reader" must not receive.
const canary = "canary"

func contextBackground() context.Context { return context.Background() }

func TestPythonADBC(t *testing.T) {
	python := []string{needed(t, "QOD_TEST_PYTHON"), "-B"}
	runSuites(t, append(python, "clients/adbc_suite.py"), append(python, "clients/adbc_reader.py"))
}

func TestJDBC(t *testing.T) {
	sources, err := filepath.Glob("clients/*.java")
	if err != nil {
		t.Fatal(err)
	}
	classes := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "javac", append([]string{"-d", classes}, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	java := []string{"java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", classes + ":" + needed(t, "QOD_TEST_JDBC")}
	runSuites(t, append(java, "JdbcSuite"), append(java, "JdbcReader"))
}

// runSuites runs the checks of a client as the owner of a database, and as somebody who may see a part of
// it, with a look at every byte that he receives.
func runSuites(t *testing.T, owner, reader []string) {
	i, s := shared(t)
	t.Run("owner", func(t *testing.T) { runSuite(t, i.clientEnv(s.Flight, "loader"), owner) })
	t.Run("reader", func(t *testing.T) {
		p := i.startTap(t, s)
		runSuite(t, i.clientEnv(p.address, "reader"), reader)
		for _, at := range p.heard(t, canary) {
			t.Errorf("received what is hidden: %s", at)
		}
		if len(p.heard(t, "order_lines")) == 0 {
			t.Error("the tap heard nothing")
		}
	})
}

// TestTapHears shows that a tap hears hidden values, hidden names and errors of who receives them.
func TestTapHears(t *testing.T) {
	i, s := shared(t)
	for what, sql := range map[string]string{
		"value":  "SELECT card FROM shop.orders WHERE id = 1",
		"name":   "SELECT column_name FROM information_schema.columns WHERE table_name = 'payroll'",
		"column": "SELECT * FROM shop.payroll WHERE false",
		"error":  "SELECT error(min(card)) FROM shop.orders",
	} {
		t.Run(what, func(t *testing.T) {
			p := i.startTap(t, s)
			_, _, err := i.login(t, p.address, "loader").query(sql)
			if failed := err != nil; failed != (what == "error") {
				t.Error(err)
			}
			if len(p.heard(t, canary)) == 0 {
				t.Errorf("%s: not heard", sql)
			}
		})
	}
}

// runSuite runs a client's checks; each prints a line that begins with ok or FAIL.
func runSuite(t *testing.T, env, command []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = env
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	if err != nil || strings.Contains(out, "FAIL ") || strings.Count(out, "\nok ") < 5 {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
	for name, secret := range secrets {
		if strings.Contains(out, secret) {
			t.Errorf("the output shows %s", name)
		}
	}
}
