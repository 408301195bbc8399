# Thirty objects, or eight: a change of one variable makes and destroys a database, its pool and twenty
# more objects, beside a pool that must not notice.
qod {
  stack = "thirty"
}

variable "more" {
  type    = bool
  default = true
}

locals {
  verifier = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$Zm9ydHktdHdvIGJ5dGVzIG9mIGEgaGFzaCBoZXI"
  extra    = toset(var.more ? ["more"] : [])
  teams    = toset(var.more ? ["red", "green", "blue", "grey", "pink"] : [])
}

tenant "acme" {
  display_name = var.more ? "Acme and more" : "Acme"
}

tenant_db "lake" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "main" {
  tenant_db = tenant_db.lake
  memory    = "512MiB"
  threads   = 1
}

role "owner" {
  tenant = tenant.acme
  permission {
    privileges = ["all"]
  }
}

group "staff" {
  tenant = tenant.acme
  roles  = [role.owner]
}

user "ana" {
  tenant            = tenant.acme
  groups            = [group.staff]
  password_verifier = local.verifier
}

user "bob" {
  tenant            = tenant.acme
  groups            = concat([group.staff], [for g in group.team : g])
  password_verifier = local.verifier
}

pool_grant "staff" {
  pool  = pool.main
  group = group.staff
}

tenant_db "extra" {
  for_each      = local.extra
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "extra" {
  for_each  = local.extra
  tenant_db = tenant_db.extra[each.key]
  memory    = "512MiB"
  threads   = 1
}

role "team" {
  for_each = local.teams
  tenant   = tenant.acme
}

group "team" {
  for_each = local.teams
  tenant   = tenant.acme
  roles    = [role.team[each.key]]
}

user "team" {
  for_each          = local.teams
  tenant            = tenant.acme
  groups            = [group.team[each.key]]
  password_verifier = local.verifier
}

pool_grant "team" {
  for_each = local.teams
  pool     = pool.extra["more"]
  group    = group.team[each.key]
}
