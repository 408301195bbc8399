package test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pipe runs a command with an input, and returns what it printed and its exit code.
func (i *installation) pipe(t *testing.T, input string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := i.command(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("run qod %v: %v", args, err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

// What is exported is the configuration: applying it changes nothing, and exporting again writes the same.
func TestExportedConfiguration(t *testing.T) {
	i := install(t, "quickstart")
	i.expect(t, 1, []string{"FAIL  state: there is none yet"}, "verify", "--state-dir", filepath.Join(i.root, "elsewhere"))
	i.must(t, "apply", "--auto-approve")
	i.must(t, "wait", "--timeout", "30s")
	if out := i.must(t, "verify"); strings.Contains(out, "FAIL") || !strings.Contains(out, "ok    tenant_db.tpch") {
		t.Errorf("verify says\n%s", out)
	}
	first := filepath.Join(i.root, "first.qod.hcl")
	i.must(t, "export", "-o", first)
	i.expect(t, 1, []string{"is not overwritten"}, "export", "-o", first)
	i.expect(t, 1, []string{`Did you mean "quickstart"?`}, "export", "--stack", "quikstart")
	i.must(t, "export", "-o", "beside.txt")
	if _, err := os.Stat(filepath.Join(i.dir, "beside.txt")); err != nil {
		t.Errorf("a relative name is not in the directory of -C: %v", err)
	}
	exported, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range secrets {
		if bytes.Contains(exported, []byte(secret)) {
			t.Errorf("the export has the secret %s", name)
		}
	}
	for _, flags := range [][]string{nil, {"--json"}} {
		name := filepath.Join(i.dir, map[bool]string{true: "main.qod.hcl", false: "main.qod.json"}[len(flags) == 0])
		for _, old := range []string{"main.qod.hcl", "main.qod.json"} {
			if err := os.RemoveAll(filepath.Join(i.dir, old)); err != nil {
				t.Fatal(err)
			}
		}
		i.must(t, append([]string{"export", "--stack", "quickstart", "-o", name}, flags...)...)
		i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
		i.expect(t, 0, []string{"No changes."}, "apply", "--auto-approve")
		again := filepath.Join(i.root, "again"+filepath.Ext(name)+".qod.hcl")
		i.must(t, "export", "-o", again)
		if second, err := os.ReadFile(again); err != nil || !bytes.Equal(exported, second) {
			t.Errorf("the second export differs (%v):\n%s", err, second)
		}
	}
	i.expect(t, 1, []string{"tenant_db.acme/tpch: it exists"}, "wait", "tenant_db.tpch", "--for", "gone", "--timeout", "0")
	i.must(t, "destroy", "--auto-approve")
	i.must(t, "wait", "--for", "gone", "--timeout", "10s")
}

// Statements that are piped in run in one session, and the first error ends it with its line.
func TestPipedStatements(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	i.serve(t)
	login := []string{"sql", "--user", "loader@acme/bi", "--password-file", i.secretFile(t, "loader_password"), "--format", "csv"}
	out, code := i.pipe(t, `-- a comment; with a semicolon
CREATE TABLE t (a INTEGER, b VARCHAR);
BEGIN; INSERT INTO t
  VALUES (1, 'x;y'); SELECT b, $$;$$ AS d FROM t;
ROLLBACK;
\d t
SELECT 'rows', count(*) FROM t`, login...)
	for _, want := range []string{"x;y,;\n", "a,INTEGER", "rows,0"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	file := filepath.Join(i.root, "bad.sql")
	if err := os.WriteFile(file, []byte("SELECT 'before';\n\n/* ; */ SELECT\n  nope;\nSELECT 'after';\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed := i.expect(t, 1, []string{"before", "bad.sql, line 3: "}, append(login, "-f", file)...)
	if strings.Contains(failed, "after") {
		t.Error("statements after the error have run")
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, failed)
	}
}
