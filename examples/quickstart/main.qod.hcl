# One tenant with a lake, two nodes that serve it, someone who loads and someone who asks.
qod {
  stack = "quickstart"
}

variable "loader_password" {
  description = "Password of the user that writes."
  type        = string
  sensitive   = true
}

variable "analyst_password" {
  description = "Password of the user that asks."
  type        = string
  sensitive   = true
}

variable "memory" {
  description = "Memory of each node."
  type        = string
  default     = "1GiB"
}

tenant "acme" {
  display_name = "Acme"
}

tenant_db "tpch" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db = tenant_db.tpch
  memory    = var.memory
  threads   = 1

  nodes {
    dual = 2
  }
}

role "owner" {
  tenant      = tenant.acme
  description = "May do all in the database."

  permission {
    catalog    = tenant_db.tpch.name
    privileges = ["all"]
  }
}

user "loader" {
  tenant   = tenant.acme
  roles    = [role.owner]
  password = var.loader_password
}

user "analyst" {
  tenant   = tenant.acme
  roles    = [role.owner]
  password = var.analyst_password
}

pool_grant "owners" {
  pool = pool.bi
  role = role.owner
}
