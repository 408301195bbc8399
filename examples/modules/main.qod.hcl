# A platform for several tenants: what each of them gets is the module in ./tenant.
qod {
  stack = "modules"
}

variable "tenants" {
  description = "Tenants by name: who works there, and which pools they have."
  type = map(object({
    title = optional(string)
    staff = optional(set(string), [])
    pools = optional(map(object({
      memory  = optional(string, "512MiB")
      threads = optional(number, 1)
      nodes   = optional(number, 0)
    })), { bi = {} })
  }))

  validation {
    condition     = length(var.tenants) > 0
    error_message = "Name at least one tenant."
  }
}

module "tenant" {
  source   = "./tenant"
  for_each = var.tenants
  name     = each.key
  title    = each.value.title
  staff    = each.value.staff
  pools    = each.value.pools
}

check "host" {
  assert {
    condition     = sum([for m in module.tenant : m.threads]) <= 16
    error_message = "All pools together have ${sum([for m in module.tenant : m.threads])} threads, and the host has 16 cores."
  }
}

output "logins" {
  description = "Pools as clients name them."
  value       = { for name, m in module.tenant : name => m.logins }
}
