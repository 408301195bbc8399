package terraform

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/qod-io/qod/runtime/client"
	"github.com/qod-io/qod/schema"
)

// Estate has all kinds but a group, which refer to each other as Terraform wants it.
const Estate = `
variable "tenant" {
  default = "acme"
}
variable "db" {
  default = "sales"
}
resource "qod_tenant" "acme" {
  name = var.tenant
}
resource "qod_tenant_db" "sales" {
  tenant        = qod_tenant.acme.name
  name          = var.db
  kind          = "ducklake"
  allow_destroy = true
}
resource "qod_pool" "bi" {
  tenant    = qod_tenant.acme.name
  name      = "bi"
  tenant_db = qod_tenant_db.sales.name
}
resource "qod_role" "analyst" {
  tenant = qod_tenant.acme.name
  name   = "analyst"
}
resource "qod_user" "ana" {
  tenant = qod_tenant.acme.name
  name   = "ana"
  roles  = [qod_role.analyst.name, "qod:reader"]
}
resource "qod_pool_grant" "ana" {
  tenant = qod_tenant.acme.name
  pool   = qod_pool.bi.name
  user   = qod_user.ana.name
}
`

// Suites are what holds of any server, by name.
func Suites() map[string]func(*testing.T, *Place) {
	return map[string]func(*testing.T, *Place){
		"every attribute": EveryAttribute, "imports": Imports, "drift": Drift, "renames": Renames, "killed": Killed,
		"deleted by others and destroyed": DeletedByOthersAndDestroyed,
	}
}

// Renames shows that a name that changes is a rename of the object, and that what refers to it stays what it is: in qod it
// follows by itself.
func Renames(t *testing.T, p *Place) {
	w := New(t, p.Server, p.Token)
	w.Write(t, "main.tf", Estate)
	w.Apply(t)
	w.Unchanged(t)
	before := w.State(t)
	vars := []string{"-var", "tenant=apex", "-var", "db=orders"}
	for _, parallelism := range []string{"1", "16"} {
		w.Apply(t, append(vars, "-parallelism="+parallelism)...)
		if out, code := w.Run(t, append([]string{"plan", "-detailed-exitcode"}, vars...)...); code != 0 {
			t.Errorf("after a rename: %s", out)
		}
		for address, now := range w.State(t) {
			if now["id"] != before[address]["id"] {
				t.Errorf("%s was made anew", address)
			}
		}
		vars = nil
	}
	w.Apply(t, "-destroy")
}

// Killed ends applies at several points, and shows that the next one finds one of each object and replaces nothing.
func Killed(t *testing.T, p *Place) {
	w := New(t, p.Server, p.Token)
	w.Write(t, "main.tf", Estate)
	ids := map[string]string{}
	for after := 300 * time.Millisecond; after < 1500*time.Millisecond; after += 200 * time.Millisecond {
		cmd := exec.CommandContext(t.Context(), w.Program, "apply", "-auto-approve", "-no-color")
		cmd.Dir, cmd.Env = w.Dir, w.Env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.NewTimer(after)
		select {
		case <-timer.C:
		case <-t.Context().Done():
		}
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		for address, id := range p.ids(t) {
			if was, ok := ids[address]; ok && was != id {
				t.Errorf("%s was %s and is %s", address, was, id)
			}
			ids[address] = id
		}
	}
	w.Apply(t)
	w.Unchanged(t)
	now := p.ids(t)
	if got, want := len(now), strings.Count(Estate, "resource "); got != want {
		t.Errorf("there are %d objects, want %d: %v", got, want, slices.Sorted(maps.Keys(now)))
	}
	for address, id := range ids {
		if now[address] != id {
			t.Errorf("%s was made anew", address)
		}
	}
	w.Apply(t, "-destroy")
}

// ids returns what the stack of the workspaces has.
func (p *Place) ids(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, k := range schema.Kinds() {
		for o, err := range Ask(t, p.Server, p.Token).List(t.Context(), k.Name, client.Filter{Stack: "core"}) {
			if err != nil {
				t.Fatal(fmt.Errorf("list %s: %w", k.Name, err))
			}
			out[o.Addr().String()] = o.ID
		}
	}
	return out
}
