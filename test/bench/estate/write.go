package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// What one tenant has, in blocks of its own and by for_each in equal parts.
const (
	databases = 1
	pools     = 2
	roles     = 56
	groups    = 40
	users     = 120
	grants    = 80

	objectsPerTenant = 1 + databases + pools + roles + groups + users + grants
)

// verifier is of the password "estate". Hashing is not what is measured here.
const verifier = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zm9ydHktdHdvIGJ5dGVzIG9mIGEgaGFzaCBoZXI"

// writeEstate writes the configuration of an estate, one file per tenant.
func writeEstate(dir string, tenants int) error {
	head := "qod {\n  stack = \"estate\"\n}\n\nvariable \"title\" {\n  default = \"Tenant\"\n}\n\n" +
		"variable \"verifier\" {\n  sensitive = true\n  default = \"" + verifier + "\"\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.qod.hcl"), []byte(head), 0o644); err != nil {
		return err
	}
	for t := range tenants {
		name := filepath.Join(dir, fmt.Sprintf("tenant-%03d.qod.hcl", t))
		if err := os.WriteFile(name, []byte(tenant(t)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func tenant(n int) string {
	id := fmt.Sprintf("t%03d", n)
	b := &strings.Builder{}
	title := `"Tenant"`
	if n == 0 {
		title = "var.title"
	}
	fmt.Fprintf(b, "tenant %q {\n  display_name = %s\n}\n\n", id, title)
	fmt.Fprintf(b, "tenant_db %q {\n  tenant = tenant.%s\n  kind = \"ducklake\"\n}\n\n", id, id)
	for p := range pools {
		fmt.Fprintf(b, "pool \"%s-%d\" {\n  tenant_db = tenant_db.%s\n  nodes {\n    dual = 0\n  }\n}\n\n", id, p, id)
	}
	for r := range roles {
		fmt.Fprintf(b, "role \"%s-%d\" {\n  tenant = tenant.%s\n  permission {\n    privileges = [\"all\"]\n  }\n}\n\n", id, r, id)
	}
	for g := range groups {
		fmt.Fprintf(b, "group \"%s-%d\" {\n  tenant = tenant.%s\n  roles = [role.%s-%d, role.%s-%d]\n}\n\n", id, g, id, id, g%roles, id, (g+roles-groups)%roles)
	}
	for u := range users / 2 {
		fmt.Fprintf(b, "user \"%s-%d\" {\n  tenant = tenant.%s\n  email = \"u%d@%s.example\"\n  password_verifier = var.verifier\n"+
			"  groups = [group.%s-%d]\n}\n\n", id, u, id, u, id, id, u%groups)
	}
	fmt.Fprintf(b, "user \"%s\" {\n  for_each = toset([for n in range(%d, %d) : \"m${n}\"])\n  tenant = tenant.%s\n"+
		"  password_verifier = var.verifier\n  groups = [group.%s-1]\n  roles = [role.%s-2]\n}\n\n", id, users/2, users, id, id, id)
	for g := range grants / 2 {
		fmt.Fprintf(b, "pool_grant \"%s-%d\" {\n  pool = pool.%s-%d\n  group = group.%s-%d\n}\n\n", id, g, id, g%pools, id, g%groups)
	}
	fmt.Fprintf(b, "pool_grant \"%s\" {\n  for_each = { for n in range(%d) : \"g${n}\" => \"%s-${n}\" }\n  tenant = tenant.%s\n  pool = pool.%s-1\n  user = each.value\n}\n",
		id, grants/2, id, id, id)
	return b.String()
}
