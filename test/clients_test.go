package test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func contextBackground() context.Context { return context.Background() }

func TestPythonADBC(t *testing.T) {
	i, s := shared(t)
	runSuite(t, i.clientEnv(s, "loader"), needed(t, "QOD_TEST_PYTHON"), "clients/adbc_suite.py")
}

func TestJDBC(t *testing.T) {
	i, s := shared(t)
	runSuite(t, i.clientEnv(s, "loader"), "java", "--add-opens=java.base/java.nio=ALL-UNNAMED",
		"-cp", needed(t, "QOD_TEST_JDBC"), "clients/JdbcSuite.java")
}

// runSuite runs a client's checks; each prints a line that begins with ok or FAIL.
func runSuite(t *testing.T, env []string, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	if err != nil || strings.Contains(out, "FAIL ") || strings.Count(out, "\nok ") < 5 {
		t.Errorf("%s: %v\n%s", program, err, out)
	}
	for name, secret := range secrets {
		if strings.Contains(out, secret) {
			t.Errorf("the output shows %s", name)
		}
	}
}
