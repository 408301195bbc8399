package config_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/qod-io/qod/engine/config"
)

// estates are two ways to write an estate of 300 objects per tenant: a block for each object, or blocks
// with for_each over all tenants.
func estates(tenants int) map[string]string {
	return map[string]string{"blocks": estateOfBlocks(tenants), "for_each": estateForEach(tenants)}
}

const (
	rolesPerTenant  = 50
	groupsPerTenant = 20
	usersPerTenant  = 126
	grantsPerTenant = 100
	perTenant       = 1 + 1 + 2 + rolesPerTenant + groupsPerTenant + usersPerTenant + grantsPerTenant
)

func estateOfBlocks(tenants int) string {
	out := bytes.NewBufferString("qod {\n  stack = \"s\"\n}\n")
	for t := range tenants {
		fmt.Fprintf(out, "tenant \"t%d\" {}\ntenant_db \"t%d\" {\n  tenant = tenant.t%d\n  kind   = \"ducklake\"\n}\n", t, t, t)
		for i := range 2 {
			fmt.Fprintf(out, "pool \"t%d_%d\" {\n  tenant_db = tenant_db.t%d\n  name      = \"p%d\"\n"+
				"  nodes {\n    dual = 0\n  }\n}\n", t, i, t, i)
		}
		for i := range rolesPerTenant {
			fmt.Fprintf(out, "role \"t%d_%d\" {\n  tenant = tenant.t%d\n  name   = \"r%d\"\n"+
				"  permission {\n    privileges = [\"all\"]\n  }\n}\n", t, i, t, i)
		}
		for i := range groupsPerTenant {
			fmt.Fprintf(out, "group \"t%d_%d\" {\n  name  = \"g%d\"\n  roles = [role.t%d_%d]\n}\n", t, i, i, t, i)
		}
		for i := range usersPerTenant {
			fmt.Fprintf(out, "user \"t%d_%d\" {\n  name   = \"u%d\"\n  roles  = [role.t%d_%d]\n  groups = [group.t%d_%d]\n"+
				"  email  = \"u%d@t%d.org\"\n}\n", t, i, i, t, i%rolesPerTenant, t, i%groupsPerTenant, i, t)
		}
		for i := range grantsPerTenant {
			fmt.Fprintf(out, "pool_grant \"t%d_%d\" {\n  pool = pool.t%d_%d\n  user = user.t%d_%d\n}\n", t, i, t, i%2, t, i)
		}
	}
	return out.String()
}

func estateForEach(tenants int) string {
	return fmt.Sprintf(`qod {
  stack = "s"
}
locals {
  tenants = [for t in range(%d) : "t${t}"]
  pools   = merge([for t in local.tenants : { for i in range(2) : "${t}-${i}" => { tenant = t, i = i } }]...)
  roles   = merge([for t in local.tenants : { for i in range(%d) : "${t}-${i}" => { tenant = t, i = i } }]...)
  groups  = merge([for t in local.tenants : { for i in range(%d) : "${t}-${i}" => { tenant = t, i = i } }]...)
  users   = merge([for t in local.tenants : { for i in range(%d) : "${t}-${i}" => { tenant = t, i = i } }]...)
  grants  = merge([for t in local.tenants : { for i in range(%d) : "${t}-${i}" => { tenant = t, i = i } }]...)
}
tenant "t" {
  for_each = toset(local.tenants)
}
tenant_db "db" {
  for_each = tenant.t
  tenant   = each.value
  kind     = "ducklake"
}
pool "p" {
  for_each  = local.pools
  tenant_db = tenant_db.db[each.value.tenant]
  name      = "p${each.value.i}"
  nodes {
    dual = 0
  }
}
role "r" {
  for_each = local.roles
  tenant   = tenant.t[each.value.tenant]
  name     = "r${each.value.i}"
  permission {
    privileges = ["all"]
  }
}
group "g" {
  for_each = local.groups
  name     = "g${each.value.i}"
  roles    = [role.r[each.key]]
}
user "u" {
  for_each = local.users
  name     = "u${each.value.i}"
  roles    = [role.r["${each.value.tenant}-${each.value.i %% %d}"]]
  groups   = [group.g["${each.value.tenant}-${each.value.i %% %d}"]]
  email    = "u${each.value.i}@${each.value.tenant}.org"
}
pool_grant "g" {
  for_each = local.grants
  pool     = pool.p["${each.value.tenant}-${each.value.i %% 2}"]
  user     = user.u[each.key]
}
`, tenants, rolesPerTenant, groupsPerTenant, usersPerTenant, grantsPerTenant, rolesPerTenant, groupsPerTenant)
}

// BenchmarkEstate reads and evaluates 1,500 and 15,000 objects.
func BenchmarkEstate(b *testing.B) {
	for _, tenants := range []int{5, 50} {
		for name, src := range estates(tenants) {
			b.Run(fmt.Sprintf("%s/%d", name, tenants*perTenant), func(b *testing.B) {
				b.Chdir(b.TempDir())
				if err := os.WriteFile("main.qod.hcl", []byte(src), 0o644); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					c, diags := config.Load(".")
					desired, more := c.Evaluate(config.Inputs{})
					if diags = append(diags, more...); diags.HasErrors() {
						b.Fatal(diags)
					}
					if len(desired.Objects) != tenants*perTenant {
						b.Fatalf("%d objects", len(desired.Objects))
					}
				}
			})
		}
	}
}
