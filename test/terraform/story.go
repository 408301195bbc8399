package terraform

import (
	"fmt"
	"testing"

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

// Suites are what holds of any server, by name. They run with the provider's double one at a time and in order, and 16 at
// once while the answers are shuffled (provider/acceptance_test.go), and with a real serve (test/terraform_test.go). After
// each apply nothing is left to do and the state has no secret. For all kinds of schema.Kinds, with the values of package
// samples, of which an attribute without one fails:
//
//   - create, update of each attribute, replace: "every attribute". What would destroy data is refused by the plan, which
//     provider/story_test.go shows, and a kind's name is changed with all else in place
//   - rename, with all that follows it: "renames"
//   - import: "imports", by key; by identity needs Terraform 1.12
//   - drift: "drift"
//   - deletion by others, and destroy: "deleted by others and destroyed"
//
// Applies that end before their time are "killed" and "interrupted".
func Suites() map[string]func(*testing.T, *Place) {
	return map[string]func(*testing.T, *Place){
		"every attribute": EveryAttribute, "imports": Imports, "drift": Drift, "renames": Renames, "killed": Killed, "interrupted": Interrupted,
		"deleted by others and destroyed": DeletedByOthersAndDestroyed,
	}
}

// Renames shows that a name that changes is a rename of the object, and that what refers to it stays what it is: in qod it
// follows by itself.
func Renames(t *testing.T, p *Place) {
	w := p.workspace(t, p.Server)
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
