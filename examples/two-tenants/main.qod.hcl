# Two tenants of one shape, from one list. Nobody of one sees anything of the other.
qod {
  stack = "two-tenants"
}

variable "passwords" {
  description = "Password of each tenant's user, by tenant."
  type        = map(string)
  sensitive   = true
}

locals {
  tenants = {
    acme   = { title = "Acme", nodes = 1 }
    globex = { title = "Globex", nodes = 1 }
  }
}

tenant "all" {
  for_each     = local.tenants
  name         = each.key
  display_name = each.value.title
}

tenant_db "main" {
  for_each      = local.tenants
  tenant        = tenant.all[each.key]
  name          = "warehouse"
  kind          = "ducklake"
  allow_destroy = true
}

pool "main" {
  for_each  = local.tenants
  tenant_db = tenant_db.main[each.key]
  name      = "bi"
  memory    = "512MiB"
  threads   = 1

  nodes {
    dual = each.value.nodes
  }
}

role "owner" {
  for_each = local.tenants
  tenant   = tenant.all[each.key]
  name     = "owner"

  permission {
    privileges = ["all"]
  }
}

group "staff" {
  for_each = local.tenants
  tenant   = tenant.all[each.key]
  name     = "staff"
  roles    = [role.owner[each.key]]
}

user "ana" {
  for_each = local.tenants
  tenant   = tenant.all[each.key]
  name     = "ana"
  groups   = [group.staff[each.key]]
  password = var.passwords[each.key]
}

pool_grant "staff" {
  for_each = local.tenants
  pool     = pool.main[each.key]
  group    = group.staff[each.key]
}
