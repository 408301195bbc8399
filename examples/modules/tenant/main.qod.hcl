# What every tenant has: a lake, pools on it, and a group of people that owns everything and may use all pools.
variable "name" {
  type = string
}

variable "title" {
  type = string
}

variable "staff" {
  type = set(string)
}

variable "pools" {
  type = map(object({
    memory  = string
    threads = number
    nodes   = number
  }))
}

tenant "this" {
  name         = var.name
  display_name = var.title
}

tenant_db "lake" {
  tenant        = tenant.this
  kind          = "ducklake"
  allow_destroy = true
}

pool "each" {
  for_each  = var.pools
  tenant_db = tenant_db.lake
  memory    = each.value.memory
  threads   = each.value.threads

  nodes {
    dual = each.value.nodes
  }
}

role "owner" {
  tenant = tenant.this

  permission {
    privileges = ["all"]
  }
}

group "staff" {
  tenant = tenant.this
  roles  = [role.owner]
}

user "staff" {
  for_each = var.staff
  tenant   = tenant.this
  groups   = [group.staff]
}

pool_grant "staff" {
  for_each = pool.each
  pool     = each.value
  group    = group.staff
}

output "logins" {
  value = [for p in pool.each : "${tenant.this.name}/${p.name}"]
}

output "threads" {
  value = sum([for p in pool.each : p.threads])
}
