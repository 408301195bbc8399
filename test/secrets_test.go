package test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/qod-io/qod/engine/store/embedded"
)

// No secret appears, as text, hex or base64, in any output, log, plan file, dump, command line or
// environment.
func TestSecretsStaySecret(t *testing.T) {
	i := install(t, "quickstart")
	out := i.must(t, "plan", "--out", filepath.Join(i.dir, "p.qodplan"))
	out += i.must(t, "show", filepath.Join(i.dir, "p.qodplan")) + i.must(t, "show", "--json", filepath.Join(i.dir, "p.qodplan"))
	i.must(t, "apply", filepath.Join(i.dir, "p.qodplan"))
	out += i.must(t, "show") + i.must(t, "show", "--json") + i.must(t, "validate", "--json")
	s := i.serve(t)
	c := i.login(t, s.Flight, "loader")
	c.run(t, "CREATE TABLE t (x BIGINT)")
	for _, bad := range []string{"SELEC 1", "SELECT * FROM duckdb_secrets()", "SELECT x FROM nowhere", "INSERT INTO t VALUES ('x')"} {
		if _, _, err := c.query(bad); err != nil {
			out += err.Error()
		}
	}
	wrong := i.dial(t, s.Flight)
	if _, err := wrong.Client.Client.AuthenticateBasicToken(wrong.ctx, "analyst@acme/bi", secrets["loader_password"]); err != nil {
		out += err.Error()
	}
	i.edit(t, `variable "memory" {`, "variable \"memory\" {\n  nonsense = 1")
	broken, _ := i.qod(t, "plan")
	out += broken + i.must(t, "status") + i.must(t, "config")

	hidden := map[string][]byte{}
	for name, secret := range secrets {
		hidden[name] = []byte(secret)
	}
	for _, file := range []string{"postgres.password", "master.key"} {
		raw, err := os.ReadFile(i.state(file))
		if err != nil {
			t.Fatal(err)
		}
		hidden[file] = bytes.TrimSpace(raw)
	}
	places := i.places(t)
	places["output"] = []byte(out)
	i.mu.Lock()
	places["all output"] = bytes.Clone(i.out.Bytes())
	i.mu.Unlock()
	for place, content := range places {
		for name, secret := range hidden {
			for form, text := range forms(secret) {
				if bytes.Contains(content, []byte(text)) {
					t.Errorf("%s shows %s as %s", place, name, form)
				}
			}
		}
	}
	if len(places) < 12 {
		t.Errorf("only %d places were searched", len(places))
	}
	checkModes(t, i)
}

func forms(secret []byte) map[string]string {
	b64 := base64.StdEncoding.EncodeToString(secret)
	return map[string]string{
		"text": string(secret), "hex": hex.EncodeToString(secret), "HEX": strings.ToUpper(hex.EncodeToString(secret)),
		"base64": strings.TrimRight(b64, "=")[:len(b64)-4], "base64url": strings.TrimRight(base64.URLEncoding.EncodeToString(secret), "=")[:len(b64)-4],
	}
}

// places gathers everything that somebody might read: logs, plan files, dumps, command lines and
// environments.
func (i *installation) places(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	add := func(name string) {
		if raw, err := os.ReadFile(name); err == nil {
			out[name] = raw
		}
	}
	add(filepath.Join(i.dir, "p.qodplan"))
	add(i.state("serve.log"))
	add(i.state("postgres.log"))
	err := filepath.WalkDir(i.state("nodes"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			add(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // no node ever ran
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := embedded.Find(embedded.Config{StateDir: i.state(), RunDir: filepath.Join(i.root, "run")})
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"qod", i.psql(t, `SELECT datname::text FROM pg_database WHERE datname LIKE 'qod\_%'`)} {
		out["dump of "+database] = i.dumpDatabase(t, server, database)
	}
	pids := []int{server.PID()}
	for _, node := range i.nodePIDs(t) {
		var pid int
		if _, err := fmt.Sscan(node, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		add(fmt.Sprintf("/proc/%d/cmdline", pid))
		add(fmt.Sprintf("/proc/%d/environ", pid))
	}
	for _, s := range i.serves(t) { // its environment is the test's own, which hands it the secrets
		add(fmt.Sprintf("/proc/%d/cmdline", s.PID))
	}
	return out
}

// dumpDatabase is pg_dump, where there is one that fits the server. Elsewhere it is every row of every
// table, which is what could hold a secret.
func (i *installation) dumpDatabase(t *testing.T, server *embedded.Server, database string) []byte {
	t.Helper()
	password, err := server.Password()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("pg_dump", "-h", server.Host, "-U", server.User, database)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password)
	dump, err := cmd.Output()
	if err != nil {
		dump = i.allRows(t, database)
	}
	if len(dump) < 1000 {
		t.Fatalf("the dump of %s has %d bytes", database, len(dump))
	}
	return dump
}

func (i *installation) allRows(t *testing.T, database string) []byte {
	t.Helper()
	c := i.connect(t, database)
	names, err := c.Query(t.Context(), `SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables
		WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(names, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	for _, table := range tables {
		if _, err := c.PgConn().CopyTo(t.Context(), out, "COPY (SELECT * FROM "+table+") TO STDOUT"); err != nil {
			t.Fatalf("copy %s: %v", table, err)
		}
	}
	return out.Bytes()
}

// checkModes shows that files with secrets are closed to others.
func checkModes(t *testing.T, i *installation) {
	t.Helper()
	for _, name := range []string{"master.key", "postgres.password", "tls/edge.key"} {
		info, err := os.Stat(i.state(name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	info, err := os.Stat(filepath.Join(i.dir, "p.qodplan"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the plan has mode %o", info.Mode().Perm())
	}
}
