package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Each way in which the world and the file can part gives a plan that says so, and an apply after which
// the second plan is empty and nothing is written.
func TestPlansTellTheTruth(t *testing.T) {
	i := install(t, "quickstart")
	i.must(t, "apply", "--auto-approve")
	t.Run("memory in the file", func(t *testing.T) {
		i.edit(t, "memory    = var.memory", `memory    = "512MiB"`)
		i.expect(t, 2, []string{`"1GiB" -> "512MiB"`}, "plan", "--detailed-exitcode")
		i.mended(t)
	})
	t.Run("a row behind its back", func(t *testing.T) {
		i.execute(t, "qod", `UPDATE qodstate_object SET spec = jsonb_set(spec, '{threads}', '3') WHERE kind = 'pool'`)
		i.expect(t, 2, []string{"Changed outside", "~ threads = 1 -> 3", "~ threads = 3 -> 1"}, "plan", "--detailed-exitcode")
		i.mended(t)
	})
	t.Run("a row deleted behind its back", i.deletedRow)
	t.Run("a node killed while nobody serves", func(t *testing.T) {
		var pid int
		if _, err := fmt.Sscan(i.nodePIDs(t)[0], &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		i.expect(t, 2, []string{"pool.acme/bi: 1 of 2 nodes missing"}, "plan", "--detailed-exitcode")
		i.mended(t)
	})
	t.Run("something that no object has", i.replacedForSetting)
	t.Run("the pool has another label, then another name", func(t *testing.T) {
		i.edit(t, "pool \"bi\" {", "pool \"reports\" {")
		i.edit(t, "pool.bi", "pool.reports")
		i.edit(t, "tenant_db = tenant_db.tpch\n  memory", "tenant_db = tenant_db.tpch\n  name      = \"bi\"\n  memory")
		i.expect(t, 2, []string{"has moved from pool.bi to pool.reports"}, "plan", "--detailed-exitcode")
		i.mended(t)
		i.edit(t, "name      = \"bi\"\n", "name      = \"reports\"\n")
		i.expect(t, 2, []string{"pool.acme/reports will be renamed from pool.acme/bi"}, "plan", "--detailed-exitcode")
		before := strings.Join(i.nodePIDs(t), " ")
		i.mended(t)
		if after := strings.Join(i.nodePIDs(t), " "); after != before {
			t.Errorf("a rename restarted nodes: %s, now %s", before, after)
		}
	})
	t.Run("the tenant is renamed", func(t *testing.T) {
		i.edit(t, `tenant "acme" {`, "tenant \"acme\" {\n  name = \"acme2\"")
		out := i.expect(t, 2, []string{"tenant.acme2 will be renamed from tenant.acme", "the name changes in what refers to it as well: ", "0 to add, 1 to change, 0 to destroy"}, "plan", "--detailed-exitcode")
		if strings.Contains(out, "rolls") {
			t.Errorf("a rename rolls nodes:\n%s", out)
		}
		i.mended(t)
	})
	t.Run("the pool leaves the file", func(t *testing.T) {
		i.cut(t, `pool "reports"`, `pool_grant "owners"`)
		i.expect(t, 2, []string{"pool.acme2/reports will be destroyed", "pool_grant.acme2/reports/role:owner will be destroyed",
			"0 to add, 0 to change, 2 to destroy"}, "plan", "--detailed-exitcode")
		i.mended(t)
		if got := i.psql(t, "SELECT count(*)::text FROM qodstate_node"); got != "0" {
			t.Errorf("%s nodes are left", got)
		}
	})
	i.must(t, "destroy", "--auto-approve")
	i.nothingLeft(t)
}

// deletedRow has a row go by hand, twice: the first time a refresh accepts it, the second time an apply makes it
// anew at once.
func (i *installation) deletedRow(t *testing.T) {
	i.execute(t, "qod", `DELETE FROM qodstate_object WHERE kind = 'pool_grant'`)
	out := i.expect(t, 2, []string{"Changed outside", "pool_grant.acme/bi/role:owner has been deleted", "1 to add"}, "plan", "--detailed-exitcode")
	if strings.Count(out, "has been deleted") != 1 {
		t.Errorf("more is told as deleted:\n%s", out)
	}
	i.expect(t, 2, []string{`"deleted": true`}, "drift", "--json")
	i.must(t, "plan", "--out", "anew.qodplan")
	i.expect(t, 0, []string{"has been deleted"}, "show", "anew.qodplan")
	i.must(t, "apply", "--refresh-only", "--auto-approve")
	i.expect(t, 0, []string{"Nobody changed"}, "drift")
	out = i.expect(t, 2, []string{"1 to add"}, "plan", "--detailed-exitcode")
	if strings.Contains(out, "Changed outside") {
		t.Errorf("a deletion that was accepted is drift:\n%s", out)
	}
	i.mended(t)
	i.execute(t, "qod", `DELETE FROM qodstate_object WHERE kind = 'pool_grant'`)
	i.mended(t)
	i.expect(t, 0, []string{"Nobody changed"}, "drift")
}

// mended applies, and shows that nothing is left to do and that to apply again writes nothing.
func (i *installation) mended(t *testing.T) {
	t.Helper()
	i.must(t, "apply", "--auto-approve")
	i.expect(t, 0, []string{"No changes."}, "plan", "--detailed-exitcode")
	before := i.versions(t)
	i.expect(t, 0, []string{"No changes."}, "apply", "--auto-approve")
	if after := i.versions(t); after != before {
		t.Errorf("an apply without changes wrote rows:\n%s\n%s", before, after)
	}
}

// replacedForSetting sees that nodes are not replaced without a reason that people can read.
func (i *installation) replacedForSetting(t *testing.T) {
	i.expect(t, 2, []string{"pool.acme/bi: 2 nodes to replace (extension directory: "},
		"plan", "--detailed-exitcode", "--extension-dir", t.TempDir())
	i.expect(t, 2, []string{`"message": "2 nodes to replace (extension directory: `},
		"plan", "--json", "--detailed-exitcode", "--extension-dir", t.TempDir())
}

// cut takes blocks out of the configuration.
func (i *installation) cut(t testing.TB, headers ...string) {
	t.Helper()
	for _, header := range headers {
		i.cutOne(t, header)
	}
}

func (i *installation) cutOne(t testing.TB, header string) {
	t.Helper()
	name := filepath.Join(i.dir, "main.qod.hcl")
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, diags := hclwrite.ParseConfig(src, name, hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	for _, b := range f.Body().Blocks() {
		if fmt.Sprintf("%s %q", b.Type(), strings.Join(b.Labels(), " ")) == header {
			f.Body().RemoveBlock(b)
			if err := os.WriteFile(name, f.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("the configuration has no block %s", header)
}

// versions are the physical row versions of what a plan without changes must not touch.
func (i *installation) versions(t testing.TB) string {
	t.Helper()
	var out []string
	for _, table := range []string{"qodstate_object", "qodstate_object_ref", "qodstate_secret", "qodstate_lost"} {
		out = append(out, i.psql(t, fmt.Sprintf("SELECT coalesce(string_agg(ctid::text || xmin::text, ' ' ORDER BY ctid::text), '') FROM %s", table)))
	}
	node := `SELECT coalesce(string_agg(concat_ws(' ', id, pid, phase, spec_hash, endpoint), ';' ORDER BY id), '') FROM qodstate_node`
	return strings.Join(append(out, i.psql(t, node)), "\n")
}
