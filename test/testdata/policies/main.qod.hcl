# TPC-H with the policies of policies.qod.hcl, to be compared with copies that were filtered and masked by hand.
qod {
  stack = "policies"
}

variable "loader_password" {
  type      = string
  sensitive = true
}

variable "analyst_password" {
  type      = string
  sensitive = true
}

tenant "acme" {}

tenant_db "tpch" {
  tenant        = tenant.acme
  kind          = "ducklake"
  allow_destroy = true
}

pool "bi" {
  tenant_db = tenant_db.tpch
  memory    = "2GiB"
  threads   = 1

  nodes {
    dual = 1
  }
}

role "reader" {
  tenant = tenant.acme

  permission {
    schema     = "main"
    privileges = ["select"]
  }
}

user "analyst" {
  tenant   = tenant.acme
  roles    = [role.reader, role.restricted]
  groups   = [group.staff]
  password = var.analyst_password
}

user "loader" {
  tenant   = tenant.acme
  roles    = ["qod:admin"]
  password = var.loader_password
}

pool_grant "analyst" {
  pool = pool.bi
  user = user.analyst
}

pool_grant "loader" {
  pool = pool.bi
  user = user.loader
}
