package node

import (
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/qod-io/qod/runtime/wire"
)

// TestLockdownWithoutGuard attacks the engine as if the guard were not there.
func TestLockdownWithoutGuard(t *testing.T) {
	lake := newLake(t)
	elsewhere := t.TempDir()
	e, err := openLake(t.Context(), wire.NodeConfig{Lake: lake, ExtensionDir: extensionDir(t), TempDir: filepath.Join(elsewhere, "tmp")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, sql := range []string{ // must work
		home(lake), "CREATE TABLE t AS SELECT range AS i FROM range(1000)", "INSERT INTO t VALUES (1)",
		"UPDATE t SET i = 5 WHERE i = 4", "DELETE FROM t WHERE i = 7", "SELECT sum(i) FROM t", "DROP TABLE t",
	} {
		if err := c.run(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	extension := ExtensionPath(extensionDir(t), "tpch")
	for _, sql := range []string{ // must not
		"SELECT * FROM read_text('/etc/passwd')", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_blob('/etc/hostname')",
		"SELECT * FROM read_text('" + lake.DataPath + "/../../etc/passwd')", "SELECT * FROM '/etc/passwd'",
		"COPY (SELECT 1) TO '" + elsewhere + "/x.csv'", "EXPORT DATABASE '" + elsewhere + "'",
		"ATTACH '" + elsewhere + "/x.db' AS x", "ATTACH 'host=" + lake.Host + "' AS p (TYPE postgres)",
		"ATTACH 'ducklake:" + elsewhere + "/m.ducklake' AS x", "INSTALL httpfs", "LOAD '" + extension + "'", "LOAD tpch",
		"SET memory_limit='10GB'", "SET threads=64", "RESET memory_limit", "SET lock_configuration=false",
		"SET enable_external_access=true", "SET allowed_directories=['/']", "SET temp_directory='/etc'",
		"CREATE PERSISTENT SECRET s (TYPE postgres, HOST 'x')", "SELECT * FROM duckdb_secrets(redact=false)",
		"CALL ducklake_add_data_files('sales-eu', 't', '/etc/passwd')", "SET autoload_known_extensions=true",
		"SET allow_unsigned_extensions=true", "RESET allow_unsigned_extensions",
	} {
		if err := c.run(t.Context(), sql); err == nil {
			t.Errorf("not blocked: %s", sql)
		}
	}
	rows, err := c.collect(t.Context(), "SELECT name FROM duckdb_secrets()")
	if err != nil || len(rows) != 0 {
		t.Errorf("secrets are left: %v, %v", rows, err)
	}
	paths, err := c.textRows(t.Context(), "SELECT path FROM duckdb_databases() WHERE database_name = $1", lake.Name)
	if err != nil || len(paths) != 1 || paths[0][0] != "" {
		t.Errorf("the lake's path is %v, %v", paths, err)
	}
}

// TestWhatSettingsLeaveOpen: the engine's settings do not stop these; the guard does.
func TestWhatSettingsLeaveOpen(t *testing.T) {
	n := startNode(t, newLake(t))
	c := n.client("s1")
	c.exec("CREATE TABLE t (i INTEGER)")
	hidden := "__ducklake_metadata_sales-eu"
	for _, sql := range []string{
		"SELECT * FROM postgres_query('" + hidden + "', 'SELECT 1')",
		"CALL postgres_execute('" + hidden + "', 'SELECT 1')",
		"SELECT * FROM postgres_scan('host=10.0.0.5', 'public', 't')",
		"SELECT * FROM system.main.postgres_query('" + hidden + "', 'SELECT 1')",
		`SELECT * FROM "` + hidden + `".public.ducklake_table`, `DELETE FROM "` + hidden + `".public.ducklake_table`,
		"SELECT * FROM glob('" + n.cfg.Lake.DataPath + "/**')", "SELECT * FROM read_parquet('" + n.cfg.Lake.DataPath + "/*.parquet')",
		"COPY t TO '" + n.cfg.Lake.DataPath + "/x.csv'", "ATTACH '" + n.cfg.Lake.DataPath + "/x.db' AS x", "ATTACH ':memory:' AS m",
		"CALL enable_logging(storage='file')", "DETACH \"sales-eu\"", `USE "` + hidden + `"`, "USE memory", "USE system.main",
		"CREATE SECRET s (TYPE postgres, HOST 'x')", "SET VARIABLE x = 1", "PREPARE p AS SELECT 1", "EXECUTE p",
		"CALL ducklake_expire_snapshots('sales-eu', older_than => now())", "SELECT * FROM duckdb_secrets()",
		"SELECT * FROM duckdb_settings()", "SELECT path FROM duckdb_databases()", "IMPORT DATABASE '/tmp'",
		"SELECT current_setting('temp_directory')", "PRAGMA database_list",
		"SELECT * FROM query('SELECT 1')", "INSTALL httpfs", "LOAD tpch",
	} {
		_, err := c.tryQuery(sql)
		if err == nil {
			t.Errorf("not refused: %s", sql)
			continue
		}
		if got := c.trailer(wire.ReasonKey); got != string(wire.Denied) {
			t.Errorf("%s: not the guard's refusal but %q: %v", sql, got, err)
		}
	}
	if got := c.one("SELECT count(*) FROM t"); got != "0" {
		t.Errorf("afterwards the lake has %s rows", got)
	}
}

// TestReadsCannotWrite runs a write where reads run, as if the guard had taken it for one.
func TestReadsCannotWrite(t *testing.T) {
	lake := newLake(t)
	n := startNode(t, lake)
	n.client("s1").exec("CREATE TABLE t (i INTEGER)")
	e, err := openLake(t.Context(), n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	c, err := e.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.runAll(t.Context(), home(lake), "BEGIN TRANSACTION READ ONLY"); err != nil {
		t.Fatal(err)
	}
	if err := c.run(t.Context(), "INSERT INTO t VALUES (1)"); err == nil || asFault(err).code != codes.Aborted {
		t.Errorf("a write in a read's transaction: %v", err)
	}
}

func TestErrorsHoldNoPassword(t *testing.T) {
	lake := newLake(t)
	lake.Password = "s3cr3t-pass'word"
	_, err := openLake(t.Context(), wire.NodeConfig{Lake: lake, ExtensionDir: extensionDir(t)})
	if err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("error is %v", err)
	}
	for in, want := range map[string]string{
		`host=x password=abc user=y`:        `host=x password=*** user=y`,
		`Password='a \' b' port=1`:          `password=*** port=1`,
		`no secret here`:                    `no secret here`,
		strings.Repeat("é", maxMessage):     strings.Repeat("é", (maxMessage-3)/2) + "...",
		"IO Error: \"PASSWORD=x\" \xff end": "IO Error: \"password=*** ? end",
	} {
		if got := trim(in); got != want {
			t.Errorf("%.40q becomes %.60q, want %.60q", in, got, want)
		}
	}
}
