package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/qod-io/qod/schema"
	"github.com/qod-io/qod/test/terraform"
)

func TestChecksOfTheKinds(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"attribute": {`resource "qod_tenant" "a" { name = "No Name" }`, `"No Name" is not a name`},
		"in a set": {`resource "qod_role" "a" {
  tenant = "a"
  name   = "r"
  permission = [{ privileges = ["read"] }]
}`, `"read" is not known: want`},
		"whole": {`resource "qod_user" "a" { name = "ana" }`, "tenant is required, unless system = true"},
		"secret": {`resource "qod_user" "a" {
  tenant   = "acme"
  name     = "ana"
  password = "s3cr3t"
}`, "a password has 8 to 1024 bytes"},
		"block": {`resource "qod_pool" "a" {
  tenant    = "acme"
  name      = "bi"
  tenant_db = "sales"
  nodes     = { read = 65 }
}`, "65 is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newStory(t, test.text)
			if out := w.Fails(t, test.want, "validate"); strings.Contains(out, "s3cr3t\"") && !strings.Contains(out, "sensitive") && strings.Contains(terraform.Flat(out), "is s3cr3t") {
				t.Errorf("a secret is shown:\n%s", out)
			}
		})
	}
}

// What only the server finds wrong is shown at the argument that it is about.
func TestErrorsAreAtTheirArguments(t *testing.T) {
	w, _ := newStory(t, `
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_tenant" "good" { name = "good" }
resource "qod_user" "ana" {
  tenant = "acme"
  name   = "ana"
  roles  = ["nobody"]
  depends_on = [qod_tenant.acme]
}
`)
	if out := w.Must(t, "plan"); !strings.Contains(terraform.Flat(out), "There is no role.acme/nobody") {
		t.Errorf("the plan does not warn:\n%s", out)
	}
	out := w.Fails(t, "There is no role.acme/nobody.", "apply", "-auto-approve")
	if !strings.Contains(out, `roles  = ["nobody"]`) || !strings.Contains(out, "Cannot create user.acme/ana") {
		t.Errorf("the argument is not shown:\n%s", out)
	}
	if _, ok := w.State(t)["qod_tenant.good"]; !ok {
		t.Error("what was good was not made")
	}
}

// Where the server is not known yet, the plan is made without it.
func TestUnknownProviderConfiguration(t *testing.T) {
	w, d := newStory(t, "")
	w.Write(t, "head.tf", fmt.Sprintf(`%s
resource "terraform_data" "server" { input = %q }
provider "qod" {
  server = terraform_data.server.output
  stack  = "core"
}
resource "qod_tenant" "acme" { name = "acme" }
`, terraform.Head, d.URL))
	if out := w.Must(t, "plan"); !strings.Contains(out, "qod_tenant.acme will be created") {
		t.Errorf("the plan:\n%s", out)
	}
	w.Apply(t)
	w.Unchanged(t)
	w.Must(t, "apply", "-auto-approve", "-replace=terraform_data.server")
	w.Unchanged(t)
}

func TestProviderConfiguration(t *testing.T) {
	for name, test := range map[string]struct{ block, want string }{
		"no stack":   {``, `"stack" is required`},
		"odd stack":  {`stack = "No Stack"`, "not the name of a stack"},
		"two ways":   {"stack = \"core\"\n token = \"t\"\n user = \"u\"\n password = \"p\"", "token or user, not both"},
		"half a way": {"stack = \"core\"\n user = \"u\"", "A user without a password"},
		"clear text": {"stack = \"core\"\n server = \"http://qod.example.com\"", "is not safe to send credentials to"},
		"bad token":  {"stack = \"core\"\n token = \"wrong\"", "Check the provider's token"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := newStory(t, `data "qod_tenants" "all" {}`)
			w.Write(t, "head.tf", terraform.Head+"provider \"qod\" {\n"+test.block+"\n}\n")
			w.Fails(t, test.want, "plan")
		})
	}
}

func TestPasswords(t *testing.T) {
	const text = `
variable "rev" { default = 1 }
variable "password" {
  default   = "first-s3cret"
  ephemeral = true
}
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_user" "ana" {
  tenant           = qod_tenant.acme.name
  name             = "ana"
  password         = var.password
  password_version = var.rev
}
`
	w, d := newStory(t, text)
	w.Apply(t)
	w.Unchanged(t)
	// Without a new version another password is not read.
	if out, code := w.Run(t, "plan", "-detailed-exitcode", "-var", "password=second-s3cret"); code != 0 {
		t.Errorf("ended with %d:\n%s", code, out)
	}
	w.Apply(t, "-var", "password=second-s3cret", "-var", "rev=2")
	if last := d.last(); last != "second-s3cret" {
		t.Errorf("sent %q last", last)
	}
	w.KeepsNoSecret(t, []string{"first-s3cret", "second-s3cret", doubleToken})
}

func TestEphemeralToken(t *testing.T) {
	w, d := newStory(t, `
ephemeral "qod_token" "ci" {
  user     = "ana"
  lifetime = "10m"
}
resource "qod_tenant" "acme" { name = "acme" }
resource "qod_user" "ana" {
  tenant           = qod_tenant.acme.name
  name             = "ana"
  password         = ephemeral.qod_token.ci.token
  password_version = 1
}
`)
	w.Apply(t)
	w.KeepsNoSecret(t, []string{"qod_pat_ephemeral"})
	d.with(func() {
		if len(d.tokens) == 0 {
			t.Error("no token was made")
		}
		for id, alive := range d.tokens {
			if alive {
				t.Errorf("%s was not revoked", id)
			}
		}
	})
	if last := d.last(); last != "qod_pat_ephemeral" {
		t.Errorf("the token did not arrive: %q", last)
	}
}

func TestFunctionsAndData(t *testing.T) {
	w, d := newStory(t, `
data "qod_pool" "bi" {
  tenant = "acme"
  name   = "bi"
}
data "qod_users" "acme" { tenant = "acme" }
data "qod_pools" "none" { stack = "core" }
output "key"   { value = provider::qod::key("pool_grant", { tenant = "acme", pool = "bi", user = "a/b" }) }
output "parts" { value = provider::qod::parse_key("pool_grant", "acme/bi/user:a%2Fb") }
output "pool"  { value = data.qod_pool.bi }
output "users" { value = keys(data.qod_users.acme.objects) }
output "none"  { value = length(data.qod_pools.none.objects) }
`)
	d.putAs(t, "base", "tenant", `{"name":"acme"}`)
	d.putAs(t, "base", "tenant_db", `{"tenant":"acme","name":"sales","kind":"ducklake"}`)
	d.putAs(t, "base", "pool", `{"tenant":"acme","name":"bi","tenant_db":"sales"}`)
	d.putAs(t, "base", "user", `{"tenant":"acme","name":"ana","password":"first-s3cret"}`)
	w.Apply(t)
	var doc struct {
		Values struct {
			Outputs map[string]struct{ Value any } `json:"outputs"`
		} `json:"values"`
	}
	w.Show(t, &doc)
	got := fmt.Sprint(doc.Values.Outputs)
	for _, want := range []string{
		"acme/bi/user:a%2Fb", "map[pool:bi tenant:acme user:a/b]", "[acme/ana]", "memory:1GiB", "max_concurrent_per_node:16", "stack:base",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the outputs lack %q: %s", want, got)
		}
	}
	w.KeepsNoSecret(t, []string{"first-s3cret"})
	for text, want := range map[string]string{
		`provider::qod::key("pol", {})`:                     `Did you mean "pool"?`,
		`provider::qod::key("pool", { name = "bi" })`:       "want TENANT/NAME",
		`provider::qod::key("pool", { memory = "1GiB" })`:   "not part of the key",
		`provider::qod::parse_key("pool", "acme")`:          "want TENANT/NAME",
		`provider::qod::parse_key("pool_grant", "a/b/c:d")`: "want TENANT/POOL/user:NAME",
	} {
		w.Write(t, "main.tf", "output \"o\" { value = "+text+" }")
		w.Fails(t, want, "plan")
	}
}

// Imports of what is not there, or not called so, say so.
func TestImportsThatFail(t *testing.T) {
	w, _ := newStory(t, terraform.Estate)
	w.Fails(t, "want TENANT/NAME", "import", "qod_pool.bi", "bi")
	w.Fails(t, "There is no pool.acme/bi.", "import", "qod_pool.bi", "acme/bi")
}

func TestDescribedArguments(t *testing.T) {
	for _, k := range schema.Kinds() {
		for in, want := range map[string]string{
			"changes[3].spec." + k.Attrs[0].Name: k.Attrs[0].Name, "spec." + k.Attrs[0].Name: k.Attrs[0].Name,
			"changes[0].protected": attrProtected, "changes[0]": "", "/v1/apply": "", "spec.nonsense": "", "": "",
		} {
			if got := argument(k, in).String(); got != want {
				t.Errorf("%s: %q is %q, want %q", k.Name, in, got, want)
			}
		}
		for _, b := range k.Blocks {
			want := b.Name
			if b.Single {
				want += "." + b.Attrs[0].Name
			}
			if got := argument(k, "changes[0].spec."+b.Name+"[1]."+b.Attrs[0].Name).String(); got != want {
				t.Errorf("%s: %q, want %q", k.Name, got, want)
			}
		}
	}
}
